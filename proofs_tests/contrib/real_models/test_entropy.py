"""The entropy martingale: mean 1 exactly, false alarms within alpha, and what it finds.

Power is a rule stated before sampling: at a relative entropy of d nats a token, ln(1/alpha) plus
ln 12 for the share of one bet among twelve is won after (20.7 + 2.5) / d tokens at alpha 1e-9;
the tests give three times as many.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from specref.contrib.real_models.entropy import STAKES, EntropyMartingale, EntropyReport

FALSE_ALARM, RUNS = 0.05, 400


def rows(count: int, size: int, seed: int) -> np.ndarray:
    """Peaked laws, as of a language model."""
    return np.random.default_rng(seed).dirichlet(np.full(size, 0.2), size=count)


def tempered(p: np.ndarray, temperature: float) -> np.ndarray:
    powered = p ** (1 / temperature)
    return powered / powered.sum(axis=-1, keepdims=True)


def drawn(laws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (laws.cumsum(axis=1) < rng.random((len(laws), 1))).sum(axis=1)


def observed(p: np.ndarray, tokens: np.ndarray, alpha: float = 1e-9) -> EntropyMartingale:
    martingale = EntropyMartingale(alpha)
    for row, token in zip(p, tokens, strict=True):
        martingale.observe(row, token)
    return martingale


@pytest.mark.parametrize(
    "p", [[0.2, 0.3, 0.5], [0.0, 1.0], [1e-30, 0.75, 0.25 - 1e-30], [0.25] * 4]
)
def test_every_bet_has_mean_one(p: list[float]) -> None:
    mean = np.zeros(len(STAKES))
    for token, probability in enumerate(p):
        if probability:
            mean += probability * np.exp(observed([p], [token]).log_wealth)
    assert np.abs(mean - 1).max() < 1e-12


def test_bets_are_the_exponential_martingale_of_surprise() -> None:
    """exp(l (-log p - H) - log E exp(l (-log p - H))), computed as it is defined."""
    p = np.array([0.1, 0.2, 0.7])
    entropy = -(p * np.log(p)).sum()
    for token in range(3):
        gaps = -np.log(p) - entropy
        cumulants = np.log((p * np.exp(np.outer(STAKES, gaps))).sum(axis=1))
        expected = STAKES * gaps[token] - cumulants
        assert np.abs(observed([p], [token]).log_wealth - expected).max() < 1e-12


def test_what_a_bet_is_expected_to_win_is_the_relative_entropy_of_its_law() -> None:
    p = np.array([0.1, 0.2, 0.7])
    powered = p ** (1 - STAKES[:, None])
    law = powered / powered.sum(axis=1, keepdims=True)
    expected = (law * np.log(law / p)).sum(axis=1)
    assert np.abs(observed([p], [0]).expected - expected).max() < 1e-12


def false_alarms(temperature: float) -> int:
    p = rows(80, 20, 0)
    alarms = 0
    for run in range(RUNS):
        tokens = drawn(tempered(p, temperature), np.random.default_rng([1, run]))
        alarms += observed(p, tokens, FALSE_ALARM).report().lossy
    return alarms


@pytest.mark.deep
def test_false_alarms() -> None:
    """With at most alpha each, 400 runs give more than 38 once in 10,000 times."""
    most = stats.binom.ppf(1 - 1e-4, RUNS, FALSE_ALARM)
    assert most == 38
    assert false_alarms(1.0) <= most
    assert false_alarms(1.5) > most


def relative_entropy(law: np.ndarray, p: np.ndarray) -> float:
    ratio = np.divide(law, p, out=np.ones_like(p), where=law > 0)
    return float((law * np.log(ratio)).sum(axis=1).mean())


@pytest.mark.parametrize("temperature", [0.8, 1.25])
def test_a_wrong_temperature_is_found(temperature: float) -> None:
    p = rows(4_000, 100, 2)
    law = tempered(p, temperature)
    needed = math.ceil(3 * (20.7 + 2.5) / relative_entropy(law, p))
    assert needed < len(p)
    tokens = drawn(law, np.random.default_rng(3))
    report = observed(p[:needed], tokens[:needed]).report()
    assert report.lossy
    assert (report.temperature > 1) == (temperature > 1) == (report.z > 0)


def test_drift_to_the_drafter_is_found() -> None:
    """One token in four is the drafter's, as after a lenient acceptance."""
    p, other = rows(4_000, 100, 4), rows(4_000, 100, 5)
    q = 0.5 * p + 0.5 * other
    tokens = drawn(0.75 * p + 0.25 * q, np.random.default_rng(6))
    assert observed(p, tokens).report().lossy
    assert not observed(p, drawn(p, np.random.default_rng(6))).report().lossy


def test_evidence_is_the_highest_so_far() -> None:
    p = np.tile([0.9, 0.1], (60, 1))
    martingale = observed(p[:20], np.ones(20, dtype=int))
    highest = martingale.evidence
    for row in p:
        martingale.observe(row, 0)
    assert martingale.evidence == highest > 1e6
    assert martingale.report().log10_evidence == pytest.approx(math.log10(highest))


def test_an_impossible_token_decides_at_once() -> None:
    martingale = observed(np.array([[0.5, 0.5, 0.0]]), np.array([2]))
    report = martingale.report()
    assert report.lossy
    assert martingale.evidence == math.inf
    assert report.impossible == "token 2 at 0"
    assert "impossible: token 2 at 0" in str(report)


def test_report_measures_surprise_and_entropy() -> None:
    report = observed(np.array([[0.25, 0.75]] * 2), np.array([0, 1])).report()
    assert report.surprise == pytest.approx(-math.log(0.25 * 0.75) / 2)
    assert report.entropy == pytest.approx(-0.25 * math.log(0.25) - 0.75 * math.log(0.75))
    assert (report.tokens, report.lossy, report.anytime_p <= 1) == (2, False, True)


def test_single_precision_is_taken_as_it_is() -> None:
    p = rows(50, 1_000, 7).astype(np.float32)
    assert not observed(p, drawn(p.astype(float), np.random.default_rng(8))).report().lossy


@pytest.mark.parametrize(
    ("p", "token", "message"),
    [
        ([0.5, 0.6], 0, "p sums to 1.1"),
        ([0.5, 0.5], 2, "token = 2"),
        ([1.5, -0.5], 0, r"p\[1\] = -0.5"),
        ([[0.5, 0.5]], 0, r"p has shape \(1, 2\)"),
        ([0.5, math.nan], 0, r"p\[1\] = nan"),
    ],
)
def test_bad_observations(p: list[float], token: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EntropyMartingale().observe(p, token)


def test_bad_types_alpha_and_nothing() -> None:
    with pytest.raises(TypeError, match="token = 'a'"):
        EntropyMartingale().observe([1.0], "a")
    with pytest.raises(TypeError, match="p has dtype"):
        EntropyMartingale().observe(["1"], 0)
    with pytest.raises(ValueError, match="alpha = 0"):
        EntropyMartingale(alpha=0)
    with pytest.raises(ValueError, match="nothing was observed"):
        EntropyMartingale().report()


def test_a_report_is_printed() -> None:
    report = EntropyReport(
        tokens=12_345, surprise=1.23456, entropy=1.2, z=-0.126, alpha=1e-9, log10_evidence=9.5,
        temperature=1.234, impossible=None,
    )  # fmt: skip
    figures = (
        "12,345 tokens, surprise 1.2346, entropy 1.2000 nats (z -0.13), evidence 10^9.5 (LOSSY at "
        "10^9.0), fits temperature 1.23."
    )
    assert str(report) == f"LOSSY: {figures}"
    assert report.anytime_p == pytest.approx(10**-9.5)
    few = replace(report, log10_evidence=-1.0)
    assert str(few) == f"nothing found: {figures.replace('10^9.5', '10^-1.0')}"
    assert few.anytime_p == 1
    assert not replace(report, log10_evidence=8.99).lossy
    assert replace(report, log10_evidence=9.0).lossy
    seen = replace(few, impossible="token 3 at 7")
    assert str(seen).endswith("fits temperature 1.23. impossible: token 3 at 7.")
