"""Steps of the zoo that are asked in another way: it is the same step, and can be answered."""

from fractions import Fraction
from functools import partial

import pytest

from specref import Vocabulary, exact_distribution
from specref.algorithms import slem
from specref.algorithms.companion import companion
from specref.distributions import total_variation
from specref.models import Model, hashed_model
from specref.proofs.everywhere import is_lossless_everywhere
from specref.theory.goodput import greedy_length
from specref.verification.questions import (
    EXACT_PRODUCTS,
    QUESTIONS,
    TYPICAL,
    UNWRITTEN,
    after_unwritten,
    on_face,
    products_on_face,
    with_companion,
)
from specref.zoo import ALL


def hashed(tokens: str, key: str) -> Model:
    return hashed_model(Vocabulary(tokens), key)


@pytest.mark.parametrize("tokens", ["ab", "abc"])
def test_the_bound_of_typical_acceptance_is_the_constant_over_few_tokens(tokens: str) -> None:
    for key in range(8):
        models = hashed(tokens, f"p {key}"), hashed(tokens, f"q {key}")
        laws = [
            exact_distribution(partial(step, *models, (), 2))
            for step in (TYPICAL.step, ALL["typical-acceptance"].step)
        ]
        assert laws[0] == laws[1]


def test_over_four_tokens_it_is_not() -> None:
    """0.3 exp(-H) = 0.082, and a token with 0.085 passes."""
    row = [Fraction(85, 1000), *[Fraction(305, 1000)] * 3]
    p = Model(Vocabulary("abcd"), lambda text: row)
    laws = [
        exact_distribution(partial(step, p, p, (), 1))
        for step in (TYPICAL.step, ALL["typical-acceptance"].step)
    ]
    assert laws[0] != laws[1]


@pytest.mark.parametrize("key", range(4))
def test_products_without_logarithms_are_those_of_the_zoo(key: int) -> None:
    p, q = hashed("ab", f"p {key}"), hashed("ab", f"q {key}")
    exact = exact_distribution(partial(products_on_face, p, q, (), 2))
    target = on_face(p)
    sure, free = target.next_token((0,)), target.next_token(())
    drafter = Model(q.vocabulary, lambda text: free if text else sure)
    entry = ALL["block-product-of-uniforms"].step
    rounded = exact_distribution(partial(entry, target, drafter, (), 2))
    assert total_variation(exact, rounded) < 1e-12
    assert all(isinstance(weight, Fraction) for weight in exact.values())


def test_where_a_logarithm_is_needed_it_is_said() -> None:
    p, q = hashed("ab", "p"), hashed("ab", "q")
    with pytest.raises(ValueError, match="expected 0 or 1, where no logarithm is needed"):
        exact_distribution(partial(EXACT_PRODUCTS, p, q, (), 2))


@pytest.mark.deep
def test_clean_rules_are_proved_where_their_mutants_are_asked() -> None:
    (shape,) = UNWRITTEN.shapes
    assert is_lossless_everywhere(partial(after_unwritten, slem.step), *shape)
    latencies = (0, 1, Fraction(3, 2))
    told = {"estimate": lambda alike: alike, "length": partial(greedy_length, latencies=latencies)}
    step = partial(with_companion, companion.predictable_step, told)
    assert is_lossless_everywhere(step, "ab", lookahead=1)


@pytest.mark.deep
def test_what_is_said_of_where_mutants_do_nothing() -> None:
    for name in ("independent-draws-per-row", "draft-coins-not-renormalised"):
        assert is_lossless_everywhere(ALL[name].step, "ab", lookahead=2)
        assert not is_lossless_everywhere(QUESTIONS[name].step, "ab", lookahead=1)
    entry = ALL["slem-context-retokenised"].step
    assert is_lossless_everywhere(entry, ("a", "aa"), ("a",), 1)
