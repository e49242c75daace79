"""The text of a diagnosis, line by line, from candidates that are made by hand."""

import math
from dataclasses import replace

import pytest

from specref.conformance.diagnosis.report import Candidate, Diagnosis
from specref.zoo import CONTROLS, MUTANTS

BUG, OTHER = MUTANTS["residual-is-q"], MUTANTS["stale-q-row"]
CONTROL = next(iter(CONTROLS.values()))
FITS = Candidate((BUG,), (1.0,), 2.0, 123.45, 0.0, True, False, 0.01)
LESS = Candidate((OTHER,), (1.0,), math.inf, 3.0, 9.0, False, False, 0.1234)
FOUND = Diagnosis((FITS, LESS), "blocks", trials=20_000, cases=3, alpha=1e-6, enough=20_000)
MORE = "more than 10^100 times"
SEEN = "20,000 blocks on 3 cases"


def lines(diagnosis: Diagnosis) -> list[str]:
    return str(diagnosis).splitlines()


def test_a_bug_that_fits() -> None:
    assert lines(FOUND) == [
        f"Looks like a known bug, judging by {SEEN}.",
        "1. residual-is-q [residual], fits",
        f"   symptom: {BUG.symptom}",
        f"   fix: {BUG.hint}",
        f"   likelihood: {MORE} as likely as the clean rule, 10^2.0 times as likely as the next",
        *([f"   seen in {', '.join(BUG.cites)}"] if BUG.cites else []),
        f"2. stale-q-row [{OTHER.stage}], does not fit (off by 0.123)",
    ]
    assert (FOUND.known, FOUND.resembling) == (True, False)


def test_a_bug_that_resembles_what_was_seen() -> None:
    some = replace(FITS, fits=False, resembles=True, strengths=(0.3,), no_law_on=("deep", "eos"))
    found = replace(FOUND, candidates=(some,), trials=19_999, cases=1, basis="next tokens")
    assert (found.known, found.resembling) == (False, True)
    assert lines(found)[:8] == [
        "Resembles a known bug, judging by 19,999 blocks on 1 case.",
        "Lengths aside: the tokens could be its, the block lengths are not.",
        "It would have to touch a share of the blocks, not all of them.",
        "Fewer than 20,000 blocks are too few to say that it fits.",
        "1. residual-is-q in 30% of blocks [residual], resembles it",
        f"   symptom: {BUG.symptom}",
        f"   fix, if it were that: {BUG.hint}",
        f"   likelihood: {MORE} as likely as the clean rule, 10^2.0 times as likely as the next",
    ]
    assert lines(found)[-1] == "   says nothing about deep, eos"
    whole = replace(found, candidates=(replace(some, strengths=(1.0,)),), trials=20_000)
    assert lines(whole)[1:3] == [
        "Lengths aside: the tokens could be its, the block lengths are not.",
        "1. residual-is-q [residual], resembles it",
    ]


def test_what_fits_is_not_doubted() -> None:
    few = replace(FOUND, candidates=(replace(FITS, strengths=(0.5,)),), trials=10, tokens_fit=True)
    assert lines(few)[:2] == [
        "Looks like a known bug, judging by 10 blocks on 3 cases.",
        "Block lengths are not the clean rule's; the tokens show no difference here.",
    ]


def test_a_lossless_rule_that_looks_like_a_bug() -> None:
    control = replace(FITS, entries=(CONTROL,))
    found = lines(replace(FOUND, candidates=(control,)))
    assert found[0] == f"Looks like a known lossless rule, judging by {SEEN}."
    assert found[1] == f"1. {CONTROL.id} [{CONTROL.stage}, lossless], fits"
    assert found[3] == f"   exact because: {CONTROL.hint}"
    assert control.lossless
    assert not replace(FITS, entries=(CONTROL, BUG)).lossless


def test_nothing_that_is_known() -> None:
    assert lines(replace(FOUND, candidates=(LESS,))) == [
        f"Unlike anything known, judging by {SEEN}.",
        f"1. stale-q-row [{OTHER.stage}], does not fit (off by 0.123)",
    ]
    assert lines(replace(FOUND, candidates=())) == [
        f"No known bug differs from the clean rule, judging by {SEEN}."
    ]
    assert lines(replace(FOUND, candidates=(LESS,) * 5))[-1].startswith("3. ")


def test_nothing_to_diagnose() -> None:
    assert lines(replace(FOUND, clean_fits=True)) == [
        f"No known bug is named: {SEEN} fit the clean rule.",
        "What failed is above: these blocks do not show it.",
    ]
    assert lines(replace(FOUND, candidates=(), cases=0)) == [
        "Nothing can be compared: the clean rule has no exact law on any case."
    ]
    assert lines(replace(FOUND, dependent=("wide", "deep"))) == [
        "Blocks depend on each other (wide, deep).",
        "Look for shared random numbers, and for decisions made for the whole batch.",
        "No known bug is named: laws are told apart by independent blocks.",
    ]


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
    assert f"   likelihood: {said} as likely as the clean rule" in lines(
        replace(FOUND, candidates=(last,))
    )


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
