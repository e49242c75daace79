"""Accepted lengths against the closed form: conformance, a verdict of its own.

Lossless rules differ in it and lossy ones can keep it, so it says nothing about losslessness.
Deviation in either direction is wrong: inflated acceptance is a symptom, not a success.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from specref.statistics.campaign.verdict import AcceptanceResult, Conformance

Cdf: TypeAlias = NDArray[np.float64]


def compare_lengths(
    case: str, counts: NDArray[np.int64], law: Sequence[float], alpha: float
) -> AcceptanceResult:
    """Compare accepted lengths with their law by the Dvoretzky–Kiefer–Wolfowitz–Massart bound.

    Lengths are ordered, so the distribution function is the right thing to look at; the bound
    sqrt(ln(2/alpha) / 2n) holds for every n.

    `counts` says how often 0, 1, … tokens were accepted, `law` is the `accepted_lengths` of the
    rule, and a conforming sampler deviates with probability at most `alpha`.
    """
    observed, expected = _distribution_functions(counts, law)
    gaps = expected - observed
    largest = float(gaps[np.argmax(np.abs(gaps))])
    allowed = _allowed_gap(int(counts.sum()), alpha)
    mean, formula = (float((1 - cdf[:-1]).sum()) for cdf in (observed, expected))
    return AcceptanceResult(case, _judge(gaps, allowed), mean, formula, largest, allowed)


def _distribution_functions(counts: NDArray[np.int64], law: Sequence[float]) -> tuple[Cdf, Cdf]:
    size = max(len(counts), len(law))
    expected = np.cumsum(np.pad(np.asarray(law, dtype=np.float64), (0, size - len(law))))
    observed = np.cumsum(np.pad(counts, (0, size - len(counts)))) / counts.sum()
    return observed, expected


def _allowed_gap(trials: int, alpha: float) -> float:
    return math.sqrt(math.log(2 / alpha) / (2 * trials))


@dataclass(frozen=True)
class MeasuredAcceptance:
    """Acceptance on one case: measured, with exact intervals, beside the closed form.

    Attributes
    ----------
    rate, mean : float
        How often the first draft was accepted; the mean number of accepted tokens.
    rate_interval, mean_interval : tuple of float
        Clopper–Pearson; Dvoretzky–Kiefer–Wolfowitz–Massart. They hold for every number of
        trials, and miss the truth with probability at most `alpha`, both together.
    rate_formula, mean_formula : float
        The closed forms.
    """

    case: str
    trials: int
    alpha: float
    rate: float
    rate_interval: tuple[float, float]
    rate_formula: float
    mean: float
    mean_interval: tuple[float, float]
    mean_formula: float

    @property
    def agrees(self) -> bool:
        """Whether both intervals contain their closed form."""
        pairs = (self.rate_interval, self.rate_formula), (self.mean_interval, self.mean_formula)
        return all(low <= formula <= high for (low, high), formula in pairs)

    def __str__(self) -> str:
        (low, high), (short, long) = self.rate_interval, self.mean_interval
        return (
            f"{self.case}: first draft accepted {self.rate:.4f} [{low:.4f}, {high:.4f}], closed "
            f"form {self.rate_formula:.4f}; mean number of accepted tokens {self.mean:.4f} "
            f"[{short:.4f}, {long:.4f}], closed form {self.mean_formula:.4f}"
        )


def measure_acceptance(
    case: str, counts: NDArray[np.int64], law: Sequence[float], alpha: float
) -> MeasuredAcceptance:
    """The acceptance of the first draft and the mean accepted length, with exact intervals.

    `counts` and `law` as in `compare_lengths`; each interval has half of `alpha`.
    """
    trials, accepted = int(counts.sum()), int(counts[1:].sum())
    rate_interval = binomial_interval(accepted, trials, alpha / 2)
    observed, expected = (1 - cdf[:-1] for cdf in _distribution_functions(counts, law))
    slack = _allowed_gap(trials, alpha / 2)
    low, high = (float(np.clip(observed + gap, 0, 1).sum()) for gap in (-slack, slack))
    return MeasuredAcceptance(
        case=case,
        trials=trials,
        alpha=alpha,
        rate=accepted / trials,
        rate_interval=rate_interval,
        rate_formula=1 - law[0],
        mean=float(observed.sum()),
        mean_interval=(low, high),
        mean_formula=float(expected.sum()),
    )


def _judge(gaps: NDArray[np.float64], allowed: float) -> Conformance:
    longer, shorter = bool((gaps > allowed).any()), bool((gaps < -allowed).any())
    if longer and shorter:
        return Conformance.DEVIATES
    if longer or shorter:
        return Conformance.INFLATED if longer else Conformance.DEFLATED
    return Conformance.CONFORMS


def binomial_interval(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """The exact (Clopper–Pearson) interval of a probability."""
    if not 0 <= successes <= trials or not trials:
        raise ValueError(f"successes = {successes}: expected 0 to trials = {trials}, at least 1")
    return (
        lower_rate(successes, trials, alpha / 2),
        1 - lower_rate(trials - successes, trials, alpha / 2),
    )


def lower_rate(events: int, trials: int, alpha: float) -> float:
    """The exact one-sided lower confidence bound on a probability (Clopper and Pearson 1934)."""
    return float(scipy.special.betaincinv(events, trials - events + 1, alpha)) if events else 0.0
