"""What a report says of its numbers, word by word."""

import math
from dataclasses import replace

import pytest

from specref.statistics.campaign.verdict import (
    AcceptanceResult,
    CampaignReport,
    Conformance,
    Interval,
    Suspect,
    Verdict,
    describe,
)

FAR = Interval("c", 1_000, 0.12345, 0.01, 0.2, 0.05, 0.06, 0.04)
NEAR = replace(FAR, case="m", estimate=0.00004, lower=0.0, upper=0.01, detectable=1.0)
LENGTHS = AcceptanceResult("c", Conformance.CONFORMS, 1.23456, 1.2, 0.01, 0.1)
SUSPECTS = (Suspect("residual-is-p", 12.34), Suspect("q > p", 10.0))
REPORT = CampaignReport(
    verdict=Verdict.LOSSY,
    trials=2_000,
    tokens=12_345,
    alpha=2e-9,
    eps=None,
    tolerance=0.0,
    view="boundary",
    log10_evidence=3.0,
    impossible=None,
    intervals=(FAR, NEAR),
    suspects=SUSPECTS,
    acceptance=(LENGTHS, replace(LENGTHS, case="m", conformance=Conformance.INFLATED)),
    needed=None,
    seed=7,
    seconds=1.26,
)
FIGURES = """2,000 trials, 12,345 tokens, view boundary, alpha 2e-09, seed 7, 1.3 s
  evidence 10^3.0 (LOSSY at 10^9.0), anytime p 0.001
  c: TV from 0.0100 to 0.2000 (seen 0.1235; 0.0400 is sampling noise alone)
  m: TV at most 0.0100 (seen 0.0000; 0.0400 is sampling noise alone)
"""
C, M = FIGURES.splitlines()[2:]
UNDECIDED = FIGURES.replace(C, f"{C}; TV >= 0.0600 would have been found").replace(
    M, f"{M}; no difference would surely have been found yet"
)
AT_C = FIGURES.splitlines(keepends=True)[2]
SUSPECTED = """  suspect residual-is-p: 10^12.3
  suspect q > p: 10^10.0
"""
ACCEPTED = """  accepted lengths of c: conforms, mean 1.2346, closed form 1.2000
  accepted lengths of m: inflated, mean 1.2346, closed form 1.2000"""
OPEN = replace(REPORT, verdict=Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (REPORT, f"LOSSY: {FIGURES}{SUSPECTED}{ACCEPTED}"),
        (
            replace(REPORT, intervals=(NEAR,), acceptance=(), suspects=()),
            f"LOSSY: {FIGURES.replace(AT_C, '')}"
            "  LOSSY by the evidence: bounds on TV take more blocks before they exclude 0",
        ),
        (
            replace(REPORT, impossible="token 3", stopped="the sampler raised\nline", left_out=2),
            f"LOSSY: {FIGURES}{SUSPECTED}{ACCEPTED}\n  stopped early: the sampler raised\n"
            "    line\n  impossible: token 3\n  2 known bugs not bet on (left_out of the cases)",
        ),
        (
            OPEN,
            f"INCONCLUSIVE: {UNDECIDED}{ACCEPTED}\n"
            "  without eps no number of trials certifies the law",
        ),
        (
            replace(OPEN, eps=0.02, needed=12_345),
            f"INCONCLUSIVE: {UNDECIDED}{ACCEPTED}\n"
            "  12,345 trials on each case would decide (eps 0.02)",
        ),
        (
            replace(REPORT, verdict=Verdict.LOSSLESS_WITHIN_EPS, eps=0.02),
            f"LOSSLESS_WITHIN_EPS: {UNDECIDED}{ACCEPTED}",
        ),
    ],
)
def test_a_report_is_printed(report: CampaignReport, text: str) -> None:
    assert str(report) == text


def test_only_a_certified_law_is_a_pass() -> None:
    truths = {one: bool(replace(REPORT, verdict=one)) for one in Verdict}
    assert [one for one, passed in truths.items() if passed] == [Verdict.LOSSLESS_WITHIN_EPS]


@pytest.mark.parametrize(("log10", "p"), [(-2.0, 1.0), (0.0, 1.0), (2.0, 0.01), (math.inf, 0.0)])
def test_the_p_value_is_one_over_the_evidence_and_at_most_1(log10: float, p: float) -> None:
    assert replace(REPORT, log10_evidence=log10).anytime_p == pytest.approx(p)


def test_what_is_detectable_is_so_on_every_case() -> None:
    assert REPORT.detectable == 1.0
    assert replace(REPORT, intervals=(FAR,)).detectable == 0.06
    assert replace(REPORT, intervals=()).detectable is None


def test_the_first_deviation_of_lengths_is_that_of_the_report() -> None:
    assert REPORT.conformance == Conformance.INFLATED
    assert replace(REPORT, acceptance=(LENGTHS,)).conformance == Conformance.CONFORMS
    assert replace(REPORT, acceptance=()).conformance == Conformance.NOT_RUN


def test_an_impossible_event_is_described() -> None:
    assert describe((1, 2), 3, "c") == "token 3 after (1, 2) on c: the target excludes it"
