"""What a diagnosis says, and what it leaves out, of candidates that are made by hand."""

import math
from dataclasses import replace

import pytest

from specref.conformance.diagnosis.ranking import Candidate, Diagnosis
from specref.zoo import CONTROLS, MUTANTS

BUG, OTHER = MUTANTS["residual-is-q"], MUTANTS["stale-q-row"]
CONTROL = next(iter(CONTROLS.values()))
FITS = Candidate((BUG,), (1.0,), 2.0, 123.45, 0.0, True, False, 0.01)
LESS = Candidate((OTHER,), (1.0,), math.inf, 3.0, 9.0, False, False, 0.1234)
FOUND = Diagnosis((FITS, LESS), "blocks", trials=20_000, cases=3, enough=20_000)


def test_what_fits_is_known_and_what_comes_near_resembles() -> None:
    assert (FOUND.known, FOUND.resembling) == (True, False)
    some = replace(FITS, fits=False, resembles=True, strengths=(0.3,), no_law_on=("deep", "eos"))
    found = replace(FOUND, candidates=(some,), trials=19_999, cases=1)
    assert (found.known, found.resembling) == (False, True)
    for part in ("residual-is-q", "30%", BUG.symptom, BUG.hint, "deep, eos"):
        assert part in str(found)
        assert (part in str(FOUND)) == (part not in ("30%", "deep, eos"))


def test_a_lossless_rule_that_looks_like_a_bug_is_called_lossless() -> None:
    control = replace(FITS, entries=(CONTROL,))
    assert control.lossless
    assert "lossless" in str(replace(FOUND, candidates=(control,)))
    assert "lossless" not in str(FOUND)
    assert not replace(FITS, entries=(CONTROL, BUG)).lossless


def test_no_bug_is_named_where_nothing_can_be_compared() -> None:
    for found in (
        replace(FOUND, clean_fits=True),
        replace(FOUND, candidates=(), cases=0),
        replace(FOUND, dependent=("wide", "deep")),
    ):
        assert BUG.id not in str(found)
    assert "3. " in str(replace(FOUND, candidates=(LESS,) * 5))
    assert "4. " not in str(replace(FOUND, candidates=(LESS,) * 5))


@pytest.mark.parametrize(
    ("log10", "said"),
    [
        (0.0, "about"),
        (0.49, "about"),
        (-0.49, "about"),
        (0.5, "10^0.5 times"),
        (-0.5, "10^-0.5 times"),
        (100.0, "10^100.0 times"),
        (100.1, "more than 10^100 times"),
        (-100.1, "under 10^-100 times"),
    ],
)
def test_likelihoods_are_rounded_where_they_say_nothing(log10: float, said: str) -> None:
    last = replace(FITS, log10_over_clean=log10, log10_ratio=math.inf)
    assert f"likelihood: {said} as likely" in str(replace(FOUND, candidates=(last,)))


def test_bugs_that_cannot_be_told_apart_share_a_line() -> None:
    both = replace(FITS, entries=(BUG, OTHER), strengths=(1.0, 0.25))
    assert both.ids == ("residual-is-q", "stale-q-row")
    assert both.title == "residual-is-q or stale-q-row in 25% of blocks"
    assert both.symptom == f"{BUG.symptom} / {OTHER.symptom}"
    assert both.hint == f"{BUG.hint} / {OTHER.hint}"
    assert both.stage == f"{BUG.stage} / {OTHER.stage}"
    assert replace(both, entries=(BUG, BUG)).stage == BUG.stage
    assert both.cites == tuple(dict.fromkeys((*BUG.cites, *OTHER.cites)))


def test_what_other_situations_show_is_not_explained_by_blocks_that_are_right() -> None:
    """A bug of some blocks, weakly seen, is no explanation of a failure elsewhere."""
    some = replace(FITS, fits=False, resembles=True, strengths=(0.04,))
    found = replace(FOUND, candidates=(some,), tokens_fit=True, elsewhere=("strata/x",))
    assert found.unseen
    assert "residual-is-q" not in str(found)
    assert "strata/x" in str(found)
    assert not replace(found, candidates=(FITS,)).unseen
    assert not replace(found, elsewhere=()).unseen
    assert not replace(found, tokens_fit=False).unseen


@pytest.mark.parametrize(("distance", "small"), [(0.0012, True), (0.3, False)])
def test_a_small_exact_distance_is_called_rounding(distance: float, small: bool) -> None:
    largest = (distance, "joint/probed")
    found = replace(FOUND, tokens_fit=True, clean_fits=True, largest=largest)
    assert ("low-precision.md" in str(found)) == small
    assert ("0.0012" in str(found)) == small


def test_a_candidate_of_batches_comes_first() -> None:
    found = replace(FOUND, candidates=(LESS,)).with_first(FITS)
    assert found.known
    assert [one.ids for one in found.candidates] == [FITS.ids, LESS.ids]
