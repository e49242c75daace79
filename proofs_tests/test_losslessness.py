"""Every algorithm is lossless, proved by enumeration on random cases; planted bugs are not."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs_tests import planted
from specref import Exact, Vocabulary, completed, exact_distribution, is_lossless
from specref.algorithms import ALGORITHMS, autoregressive, decode, slem, slrs, standard, tli, union
from specref.distributions import residual, total_variation
from specref.losslessness import is_lossless_loop
from specref.models import iid_model
from specref.strategies import (
    heterogeneous_pairs,
    iterations,
    model_pairs,
    non_injective_pairs,
    token_level_pairs,
)
from specref.theory import at_most_n_max, fixed, until_determined

SAME = iterations(model_pairs(), max_lookahead=3)
TOKEN_LEVEL = iterations(token_level_pairs())
STRINGS = iterations(heterogeneous_pairs())
NON_INJECTIVE = iterations(non_injective_pairs())


def keywords(step, **options):
    """The step with its keyword arguments set, named after them in test ids."""
    shown = {key: getattr(value, "__name__", value) for key, value in options.items()}

    def configured(*arguments):
        return step(*arguments, **options)

    configured.__name__ = f"{step.__module__.split('.')[-1]}.{step.__name__}({shown})"
    return configured


def garbage(vocabulary, context, text):
    """Proposals that have nothing to do with the text; some ids do not exist."""
    return tuple((7 * len(text) + 5 * j + sum(context)) % 5 - 1 for j in range(len(text) % 4))


def mixed(target, drafter, context, lookahead, chance):
    """Another algorithm and lookahead in each iteration, chosen from accepted tokens only."""
    steps = [slrs.step, autoregressive.step, slem.step, union.step, tli.step]
    step = steps[(lookahead + 2 * sum(context) + len(context)) % len(steps)]
    return step(target, drafter, context, (lookahead + len(context)) % 3, chance)


REALIGNED = [keywords(slem.step, propose=slem.realigned(n)) for n in (1, 3)]
GARBAGE = keywords(slem.step, propose=garbage)
SLRS = [
    keywords(slrs.step, rule=rule, ending=ending)
    for rule in (fixed, until_determined, at_most_n_max)
    for ending in ("residual", "bonus")
]
SINGLE = [
    keywords(slrs.single_token_step, rule=rule)
    for rule in (fixed, until_determined, at_most_n_max)
]
STEPS_AND_CASES = {
    "autoregressive": ([autoregressive.step], TOKEN_LEVEL),
    "standard": ([standard.step], SAME),
    "union": ([union.step], TOKEN_LEVEL),
    "tli": ([tli.step], TOKEN_LEVEL),
    "slem": ([slem.step, GARBAGE], STRINGS),
    "slem, not injective": ([slem.step, *REALIGNED, GARBAGE], NON_INJECTIVE),
    "slrs": (SLRS, STRINGS),
    "slrs, not injective": (SLRS[:4], NON_INJECTIVE),
    "slrs, one token": (SINGLE, STRINGS.filter(lambda case: case[3] > 0)),
}


@pytest.mark.parametrize(("steps", "cases"), STEPS_AND_CASES.values(), ids=STEPS_AND_CASES)
@given(data=st.data())
def test_iteration_and_decode_loop_are_lossless(steps, cases, data):
    case, looped = data.draw(cases), data.draw(st.sampled_from(steps))
    for step in steps:
        proof = is_lossless(step, *case)
        assert proof, f"one iteration of {step.__name__}: {proof.difference}"
    proof = is_lossless_loop(looped, *case, length=3)
    assert proof, f"decode loop of {looped.__name__}: {proof.difference}"


@given(STRINGS)
def test_decode_loop_that_mixes_algorithms_is_lossless(case):
    proof = is_lossless_loop(mixed, *case, length=4)
    assert proof, proof.difference


def lossy(proof, *arguments):
    """Whether the proof fails; a crash of the step is no verdict."""
    try:
        return not proof(*arguments)
    except (ValueError, ZeroDivisionError):
        return False


PLANTED = {
    "drafter_token": SAME,
    "always_accepted": SAME,
    "residual_is_target": SAME,
    "residual_is_absolute": SAME,
    "lenient": SAME,
    "lenient_with_its_residual": SAME,
    "argmax_match": SAME,
    "residual_bonus": SAME,
    "drafter_bonus": SAME,
    "argmax_bonus": SAME,
    "stale_bonus": SAME,
    "one_coin": SAME,
    "unlikely_draft_dropped": SAME,
    "argmax_drafted_soft_q_tested": SAME,
    "longer_of_two": SAME,
    "foreign_draft_dropped": TOKEN_LEVEL,
    "intersection_drafted_raw_q_tested": TOKEN_LEVEL,
    "slem_first_match": STRINGS,
    "slem_proposal_kept": NON_INJECTIVE,
    "slrs_first_psi_everywhere": STRINGS,
    "slrs_psi_by_decompositions": STRINGS,
    "slrs_psi_of_fixed_q": STRINGS,
    "slrs_one_draft_more": STRINGS,
    "slrs_falls_through": STRINGS,
}


planted_bugs = pytest.mark.parametrize(("name", "cases"), PLANTED.items(), ids=PLANTED)


@planted_bugs
def test_planted_bug_is_refuted_in_one_iteration(name, cases, counterexample):
    step = getattr(planted, name)
    assert counterexample(cases, lambda case: not lossy(is_lossless, step, *case))


@planted_bugs
def test_planted_bug_is_refuted_in_the_decode_loop(name, cases, counterexample):
    step = getattr(planted, name)
    assert counterexample(cases, lambda case: not lossy(is_lossless_loop, step, *case, 3))


def test_bug_between_iterations_is_refuted_in_the_decode_loop(counterexample):
    def holds(case):
        return is_lossless_loop(planted.slem_context_retokenised, *case, 3)

    assert counterexample(STRINGS, holds)


def test_float_models_are_lossless_up_to_rounding():
    p, q = np.array([0.1, 0.7, 0.2]), np.array([0.5, 0.2, 0.3])
    target, drafter = (iid_model(Vocabulary("abc"), row) for row in (p, q))
    for step in ALGORITHMS.values():
        blocks = exact_distribution(partial(step, target, drafter, (), 2))
        length = max(map(len, blocks))
        law = completed(blocks, target, (), length)
        assert total_variation(law, completed({(): 1.0}, target, (), length)) < 1e-15


def test_step_that_asks_for_float_coins_gets_no_proof():
    """accepts_half is lossless; so is this, but 1 / 2 is a float in Python."""
    halved = planted.standard_with(
        accept=lambda p, q, token: standard.acceptance(p, q, token) / 2,
        correct=lambda p, q: residual(p, np.minimum(p, q) / 2),
    )
    target = iid_model(Vocabulary("ab"), ["1/5", "4/5"])
    drafter = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    with pytest.raises(TypeError):
        is_lossless(halved, target, drafter, (), 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"context": "ab"}, "context = 'ab': expected a tuple of token ids"),
        ({"context": b"ab"}, "context = b'ab': expected a tuple of token ids"),
        ({"context": 2}, "context = 2: expected a tuple of token ids"),
        ({"context": (0, "b")}, r"context\[1\] = 'b': expected a token id"),
        ({"drafter": "ab"}, "drafter = 'ab': expected a Model"),
        ({"step": standard}, r"step = <module .*>: expected a function, such as standard\.step"),
    ],
)
def test_arguments_of_the_wrong_type(changed, message):
    model = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    arguments = {"step": standard.step, "target": model, "drafter": model, "context": ()}
    with pytest.raises(TypeError, match=message):
        is_lossless(**(arguments | changed))


def test_decode_refuses_a_context_of_text():
    model = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    with pytest.raises(TypeError, match=r"context\[0\] = 'a': expected a token id"):
        decode(standard.step, model, model, "ab", 1, 2, Exact())


def test_decode_refuses_empty_blocks():
    model, calls = iid_model(Vocabulary("a"), [1]), iter(range(3))

    def emits_nothing(*arguments):
        next(calls)
        return ()

    with pytest.raises(ValueError, match="empty block"):
        decode(emits_nothing, model, model, (), 1, 2, Exact())


@settings(max_examples=50)
@given(STRINGS, st.sampled_from([1, 2, 3]))
def test_decode_loop_of_the_house_has_the_proved_law(case, length):
    """`decode`, path by path, where `is_lossless_loop` merges contexts."""
    target, drafter, context, lookahead = case
    law = exact_distribution(
        lambda chance: decode(
            slem.step, target, drafter, context, min(lookahead, 1), length, chance
        )
    )
    assert law == completed({(): Fraction(1)}, target, context, length)
