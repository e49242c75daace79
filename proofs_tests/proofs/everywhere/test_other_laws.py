"""Proofs against another law than the target's own: at a temperature, or of its mode."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from specref import Vocabulary, exact_distribution
from specref.algorithms import standard
from specref.distributions import Probabilities, normalise, total_variation
from specref.laws import completed
from specref.models import Model
from specref.proofs.everywhere import NotForAllError, is_lossless_everywhere
from specref.proofs.everywhere.proof import models_of
from specref.proofs.everywhere.rows import Row, Space
from specref.vocabulary import Tokens

FIRST = Row("p", ())


def sharp(target: Model) -> Model:
    """At temperature 1/2."""
    return Model(target.vocabulary, lambda text: normalise(target.next_token(text) ** 2))


def likeliest(target: Model) -> Model:
    """Certain of the token a where it is likely, and of b elsewhere."""

    def next_token(text: Tokens) -> Probabilities:
        sure = [1, 0] if 2 * target.next_token(text)[0] >= 1 else [0, 1]
        return np.array([Fraction(one) for one in sure], dtype=object)

    return Model(target.vocabulary, next_token)


def verified_against(law, *, but=lambda p: False):
    """The standard rule with another law; the target's own after the token b where `but` is."""

    def step(target, drafter, context, lookahead, chance):
        def next_token(text: Tokens) -> Probabilities:
            own = text == (1,) and but(target.next_token(()))
            return (target if own else law(target)).next_token(text)

        meant = Model(target.vocabulary, next_token)
        return standard.step(meant, drafter, context, lookahead, chance)

    return step


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("law", [sharp, likeliest])
def test_a_rule_is_proved_against_its_own_law_and_refuted_against_another(law) -> None:
    assert is_lossless_everywhere(verified_against(law), "ab", plain=law)
    assert is_lossless_everywhere(standard.step, "ab", plain=law).verdict == "lossy"
    assert is_lossless_everywhere(verified_against(law), "ab").verdict == "lossy"


@pytest.mark.deep
@pytest.mark.parametrize("law", [sharp, likeliest])
def test_a_bug_on_few_rows_is_found_and_its_distance_is_that_of_the_law(law) -> None:
    step = verified_against(law, but=lambda p: 314 < 1000 * p[0] < 315)
    found = is_lossless_everywhere(step, "ab", plain=law)
    assert found.verdict == "lossy"
    assert 0 < found.lossy < found.regions
    witness = found.witness
    assert 314 < 1000 * witness.rows[FIRST][0] < 315
    target, drafter = models_of(Space(found.target, found.drafter, 0), witness.rows)
    blocks = exact_distribution(lambda chance: step(target, drafter, (), 1, chance))
    laws = (completed(one, law(target), (), 2) for one in (blocks, {(): Fraction(1)}))
    assert witness.distance == total_variation(*laws) > 0


@pytest.mark.deep
def test_rows_that_the_law_compares_are_told_apart() -> None:
    """Sharp where a is likely, else plain: right for one of two laws in each half alone."""

    def halved(target: Model) -> Model:
        def next_token(text: Tokens) -> Probabilities:
            row = target.next_token(text)
            return normalise(row**2) if 2 * target.next_token(())[0] >= 1 else row

        return Model(target.vocabulary, next_token)

    assert is_lossless_everywhere(verified_against(halved), "ab", plain=halved)
    found = is_lossless_everywhere(verified_against(sharp), "ab", plain=halved)
    assert found.verdict == "lossy"
    assert all(
        row[0] < Fraction(1, 2) for at, row in found.witness.rows.items() if at == ("p", ())
    )


def test_a_law_of_floats_is_refused_even_where_it_hides_the_error() -> None:
    def rounded(target: Model) -> Model:
        def next_token(text: Tokens) -> Probabilities:
            try:
                return target.next_token(text).astype(float)
            except TypeError:
                return target.next_token(text)

        return Model(target.vocabulary, next_token)

    with pytest.raises(NotForAllError, match="converted"):
        is_lossless_everywhere(standard.step, "ab", plain=rounded)


@pytest.mark.deep
def test_outcomes_may_be_looked_at_apart() -> None:
    asked = verified_against(sharp), Vocabulary("ab"), None, 1
    with ThreadPoolExecutor(2) as pool:
        found = is_lossless_everywhere(*asked, plain=sharp, executor=pool)
    assert found
    assert found.regions == is_lossless_everywhere(*asked, plain=sharp).regions
