"""What follows from the numbers of a report, of blocks or of two samples of texts."""

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
from specref.statistics.two_sample.test import TwoSampleReport

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


OF_TEXTS = TwoSampleReport(
    verdict=Verdict.LOSSY,
    trials=2_000,
    tokens=12_345,
    alpha=2e-9,
    eps=0.05,
    log10_evidence=3.0,
    estimate=0.12345,
    noise=0.1,
    lower=0.01,
    upper=0.2,
    threshold=0.1,
    detectable=0.15,
    suspects=(Suspect("prefix: token 2 after (3, 1), more often", 12.34), Suspect("other", 2.0)),
    needed=None,
    to_find=None,
    seed=7,
    seconds=1.26,
)
both = pytest.mark.parametrize("report", [REPORT, OF_TEXTS], ids=["blocks", "texts"])


@both
def test_only_a_certified_law_is_a_pass(report: CampaignReport | TwoSampleReport) -> None:
    truths = {one: bool(replace(report, verdict=one)) for one in Verdict}
    assert [one for one, passed in truths.items() if passed] == [Verdict.LOSSLESS_WITHIN_EPS]


@both
@pytest.mark.parametrize(("log10", "p"), [(-2.0, 1.0), (0.0, 1.0), (2.0, 0.01), (math.inf, 0.0)])
def test_the_p_value_is_one_over_the_evidence_and_at_most_1(
    report: CampaignReport | TwoSampleReport, log10: float, p: float
) -> None:
    assert replace(report, log10_evidence=log10).anytime_p == pytest.approx(p)


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
