"""What follows from the numbers of a two-sample report."""

import math
from dataclasses import replace

import pytest

from specref.statistics.campaign.verdict import Suspect, Verdict
from specref.statistics.two_sample.test import TwoSampleReport

REPORT = TwoSampleReport(
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


def test_only_a_certified_law_is_a_pass() -> None:
    truths = {one: bool(replace(REPORT, verdict=one)) for one in Verdict}
    assert [one for one, passed in truths.items() if passed] == [Verdict.LOSSLESS_WITHIN_EPS]


@pytest.mark.parametrize(("log10", "p"), [(-2.0, 1.0), (0.0, 1.0), (2.0, 0.01), (math.inf, 0.0)])
def test_the_p_value_is_one_over_the_evidence_and_at_most_1(log10: float, p: float) -> None:
    assert replace(REPORT, log10_evidence=log10).anytime_p == pytest.approx(p)
