"""What a two-sample report says of its numbers, word by word."""

import math
from dataclasses import replace

import pytest

from specref.statistics.campaign.verdict import Suspect, Verdict
from specref.statistics.two_sample.report import TwoSampleReport

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
OPEN = replace(REPORT, verdict=Verdict.INCONCLUSIVE, needed=12_345, to_find=(0.05, 23_456))
FIGURES = """2,000 texts on each side, 12,345 tokens, alpha 2e-09, seed 7, 1.3 s
  evidence 10^3.0 (LOSSY at 10^9.0), anytime p 0.001
"""
SAID = (
    "  compared whole texts: TV from 0.0100 to 0.2000 "
    "(seen 0.1235; 0.1000 is sampling noise alone)"
)
DISTANCE = f"{SAID}; TV >= 0.1500 would have been found"
SUSPECTED = """
  suspect prefix: token 2 after (3, 1), more often: 10^12.3
  suspect other: 10^2.0"""


def of(noise: float) -> str:
    return DISTANCE.replace("; 0.1000", f"; {noise:.4f}")


def wanted(about: str) -> str:
    return (
        f"\n  {about} 12,345 texts on each side would certify one law within 0.05"
        f"\n  {about} 23,456 texts on each side would find a total variation of 0.05"
    )


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (REPORT, f"LOSSY: {FIGURES}{SAID}{SUSPECTED}"),
        (
            replace(REPORT, detectable=None, suspects=(), stopped="out of memory\nline"),
            f"LOSSY: {FIGURES}  stopped early: out of memory\n    line\n{SAID}",
        ),
        (OPEN, f"INCONCLUSIVE: {FIGURES}{DISTANCE}{wanted('about')}"),
        (replace(OPEN, noise=0.5), f"INCONCLUSIVE: {FIGURES}{of(0.5)}{wanted('about')}"),
        (replace(OPEN, noise=0.51), f"INCONCLUSIVE: {FIGURES}{of(0.51)}{wanted('at least')}"),
        (
            replace(OPEN, trials=0),
            f"INCONCLUSIVE: 0{FIGURES[5:]}{DISTANCE}{wanted('at least')}",
        ),
        (
            replace(OPEN, eps=None, needed=None),
            f"INCONCLUSIVE: {FIGURES}{DISTANCE}\n"
            "  about 23,456 texts on each side would find a total variation of 0.05\n"
            "  without eps no number of texts certifies one law",
        ),
        (replace(REPORT, eps=None), f"LOSSY: {FIGURES}{SAID}{SUSPECTED}"),
        (
            replace(REPORT, verdict=Verdict.LOSSLESS_WITHIN_EPS),
            f"LOSSLESS_WITHIN_EPS: {FIGURES}{DISTANCE}",
        ),
    ],
)
def test_a_report_is_printed(report: TwoSampleReport, text: str) -> None:
    assert str(report) == text


def test_only_a_certified_law_is_a_pass() -> None:
    truths = {one: bool(replace(REPORT, verdict=one)) for one in Verdict}
    assert [one for one, passed in truths.items() if passed] == [Verdict.LOSSLESS_WITHIN_EPS]


@pytest.mark.parametrize(("log10", "p"), [(-2.0, 1.0), (0.0, 1.0), (2.0, 0.01), (math.inf, 0.0)])
def test_the_p_value_is_one_over_the_evidence_and_at_most_1(log10: float, p: float) -> None:
    assert replace(REPORT, log10_evidence=log10).anytime_p == pytest.approx(p)
