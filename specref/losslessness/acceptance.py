"""Accepted lengths against the closed form: conformance, a verdict of its own.

Lossless rules differ in it and lossy ones can keep it, so it says nothing about losslessness.
Deviation in either direction is wrong: inflated acceptance is a symptom, not a success.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from specref.losslessness.verdict import AcceptanceResult, Conformance


def compare_lengths(
    case: str, counts: NDArray[np.int64], law: Sequence[float], alpha: float
) -> AcceptanceResult:
    """Compare accepted lengths with their law by the Dvoretzky–Kiefer–Wolfowitz–Massart bound.

    Lengths are ordered, so the distribution function is the right thing to look at; the bound
    sqrt(ln(2/alpha) / 2n) holds for every n.

    Parameters
    ----------
    counts : ndarray of int, shape (longest + 1,)
        How often 0, 1, … tokens were accepted.
    law : sequence of float
        The closed form, from `specref.theory.accepted_length_distribution`.
    alpha : float
        The chance that a conforming sampler deviates.

    Examples
    --------
    >>> str(compare_lengths("coin", np.array([5000, 5000]), [0.5, 0.5], 1e-9).conformance)
    'conforms'
    >>> str(compare_lengths("coin", np.array([1000, 9000]), [0.5, 0.5], 1e-9).conformance)
    'inflated'
    """
    trials = int(counts.sum())
    size = max(len(counts), len(law))
    expected = np.cumsum(np.pad(np.asarray(law, dtype=np.float64), (0, size - len(law))))
    observed = np.cumsum(np.pad(counts, (0, size - len(counts)))) / trials
    gaps = expected - observed
    largest = float(gaps[np.argmax(np.abs(gaps))])
    allowed = math.sqrt(math.log(2 / alpha) / (2 * trials))
    mean, formula = (float((1 - cdf[:-1]).sum()) for cdf in (observed, expected))
    return AcceptanceResult(case, _judge(gaps, allowed), mean, formula, largest, allowed)


def _judge(gaps: NDArray[np.float64], allowed: float) -> Conformance:
    longer, shorter = bool((gaps > allowed).any()), bool((gaps < -allowed).any())
    if longer and shorter:
        return Conformance.DEVIATES
    if longer or shorter:
        return Conformance.INFLATED if longer else Conformance.DEFLATED
    return Conformance.CONFORMS


def binomial_interval(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """The exact (Clopper–Pearson) interval of a probability.

    Raises
    ------
    ValueError
        Not 0 <= successes <= trials, or no trials.

    Examples
    --------
    >>> [round(bound, 3) for bound in binomial_interval(5, 10, 0.05)]
    [0.187, 0.813]
    """
    if not 0 <= successes <= trials or not trials:
        raise ValueError(f"successes = {successes}: expected 0 to trials = {trials}, at least 1")
    low = stats.beta.ppf(alpha / 2, successes, trials - successes + 1) if successes else 0.0
    failures = trials - successes
    high = stats.beta.ppf(1 - alpha / 2, successes + 1, failures) if failures else 1.0
    return float(low), float(high)
