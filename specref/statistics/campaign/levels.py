"""A test of counted outcomes against a known law, at a sample size fixed beforehand.

It states what a pass is worth: the total variation that it would have detected.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy

from specref.arrays import Floats, Ints
from specref.distributions import Probability, is_one

Outcome = TypeVar("Outcome")
ALPHA = 1e-9
BETA = 1e-3
LARGEST_EXACT = 10**9


@dataclass(frozen=True)
class TestResult:
    """The result of a test at a fixed sample size.

    * `total_variation`: Of the observed frequencies; positive even for a correct sampler.
    * `detectable`: A sampler at least this far is rejected with probability 0.999.
    * `impossible`: Outcomes that were seen though the law excludes them; one is enough to reject.
    """

    __test__ = False  # not a pytest class

    trials: int
    alpha: float
    statistic: float
    threshold: float
    total_variation: float
    detectable: float
    impossible: tuple[Any, ...] = ()

    @property
    def rejected(self) -> bool:
        return bool(self.impossible) or self.statistic > self.threshold


def total_variation_test(
    counts: Mapping[Outcome, int],
    law: Mapping[Outcome, Probability],
    alpha: float = ALPHA,
    beta: float = BETA,
) -> TestResult:
    """Reject iff the empirical total variation is provably too large for the law.

    TV of n draws has mean at most `expected_total_variation`, and changes by at most 1/n with
    a draw, so by McDiarmid's inequality it exceeds its mean by sqrt(ln(1/alpha) / 2n) with
    probability at most alpha: for every n, every law, without an asymptotic approximation.

    `beta` is the rate of missing a law at distance `detectable`.
    """
    observed, expected, impossible = _aligned(counts, law)
    trials = int(observed.sum()) + sum(counts[outcome] for outcome in impossible)
    statistic = _empirical_distance(observed, expected, trials)
    mean = expected_total_variation(expected, trials)
    threshold = mean + math.sqrt(math.log(1 / alpha) / (2 * trials))
    detectable = threshold + math.sqrt(math.log(1 / beta) / (2 * trials))
    return TestResult(trials, alpha, statistic, threshold, statistic, detectable, impossible)


def expected_total_variation(law: Floats, trials: int) -> float:
    """The mean total variation between a law and the frequencies of `trials` draws from it.

    By de Moivre: E|X - np| = 2 k (1 - p) P(X = k) for X binomial(n, p) and k = floor(np) + 1.
    Beyond 1e9 trials the bound sqrt(np (1 - p)) takes its place.
    """
    if trials > LARGEST_EXACT:
        return float(np.sqrt(law * (1 - law) / trials).sum() / 2)
    law = law[law < 1]
    k = np.floor(trials * law) + 1
    # Not by differences of `scipy.special.betainc`: before SciPy 1.16 it has no value where k is
    # all trials; by 1.11 they are off by 6 % at 1e7 trials, and of no use at 1e8.
    powers = scipy.special.xlogy(k, law) + scipy.special.xlog1py(trials - k, -law)
    deviations = 2 * k * (1 - law) * np.exp(log_choose(trials, k) + powers)
    return float(deviations.sum() / (2 * trials))


def log_choose(n: int | Ints, k: Ints | Floats) -> Floats:
    """The logarithm of how many ways there are to choose k of n; -inf for k = -1 and k = n + 1.

    `scipy.stats` has the laws that are made of it, but is slow to import.

    >>> np.exp(log_choose(4, np.array([-1, 0, 2, 4, 5]))).round(9)
    array([0., 1., 6., 1., 0.])
    """
    return np.asarray(-scipy.special.betaln(k + 1, n - k + 1) - np.log1p(n))


def _aligned(
    counts: Mapping[Outcome, int], law: Mapping[Outcome, Probability]
) -> tuple[Floats, Floats, tuple[Outcome, ...]]:
    for outcome, count in counts.items():
        if count < 0:
            raise ValueError(f"counts[{outcome!r}] = {count}: expected a count >= 0")
    if not sum(counts.values()):
        raise ValueError("counts is empty: expected at least one trial")
    if not is_one(sum(law.values())):
        raise ValueError(f"law sums to {sum(law.values())}: expected 1")
    support = [outcome for outcome, probability in law.items() if probability > 0]
    possible = set(support)
    impossible = [seen for seen, count in counts.items() if count and seen not in possible]
    observed = np.array([counts.get(outcome, 0) for outcome in support], dtype=np.float64)
    expected = np.array([float(law[outcome]) for outcome in support])
    return observed, expected, tuple(impossible)


def _empirical_distance(observed: Floats, expected: Floats, trials: int) -> float:
    # Mass on impossible outcomes is what the observed frequencies lack.
    return float(np.maximum(expected - observed / trials, 0).sum())
