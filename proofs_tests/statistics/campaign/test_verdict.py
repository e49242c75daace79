"""What follows from the numbers of a report."""

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
