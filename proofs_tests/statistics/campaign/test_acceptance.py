"""Accepted lengths against their law: verdicts, gaps and intervals, by hand and by formula."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from specref.statistics.campaign.acceptance import (
    binomial_interval,
    compare_lengths,
    measure_acceptance,
)
from specref.statistics.campaign.verdict import Conformance

LAW = (0.5, 0.3, 0.2)


def allowed(trials: int, alpha: float) -> float:
    """The bound of Dvoretzky, Kiefer, Wolfowitz and Massart."""
    return math.sqrt(math.log(2 / alpha) / (2 * trials))


def test_a_comparison_by_hand() -> None:
    found = compare_lengths("c", np.array([60, 20, 20]), LAW, 0.1)
    assert found.mean == pytest.approx(0.6)
    assert found.expected == pytest.approx(0.7)
    assert found.largest_gap == pytest.approx(-0.1)  # 0.5 - 0.6: shorter than by the law
    assert found.allowed_gap == pytest.approx(allowed(100, 0.1))
    longer = compare_lengths("c", np.array([40, 30, 30]), LAW, 0.1)
    assert longer.largest_gap == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("counts", "conformance"),
    [
        ([500, 300, 200], Conformance.CONFORMS),
        ([400, 400, 200], Conformance.INFLATED),
        ([600, 200, 200], Conformance.DEFLATED),
        ([600, 0, 400], Conformance.DEVIATES),
        ([300, 600, 100], Conformance.DEVIATES),
        ([500, 300, 100, 100], Conformance.INFLATED),  # beyond the longest of the law
        ([500, 500], Conformance.DEFLATED),  # never the longest
    ],
)
def test_gaps_in_either_direction_deviate(counts: list[int], conformance: Conformance) -> None:
    assert compare_lengths("c", np.array(counts), LAW, 1e-2).conformance == conformance


def test_a_gap_decides_beyond_what_is_allowed() -> None:
    gap = allowed(10_000, 1e-3)
    for excess, conformance in ((-1, Conformance.CONFORMS), (1, Conformance.INFLATED)):
        fewer = math.floor(10_000 * gap) + max(excess, 0)
        found = compare_lengths("c", np.array([5_000 - fewer, 5_000 + fewer]), (0.5, 0.5), 1e-3)
        assert found.conformance == conformance


def test_measured_acceptance_by_its_formulas() -> None:
    found = measure_acceptance("c", np.array([40, 30, 30]), LAW, 0.02)
    assert (found.trials, found.rate, found.rate_formula) == (100, 0.6, 0.5)
    assert found.rate_interval == binomial_interval(60, 100, 0.01)
    assert (found.mean, found.mean_formula) == pytest.approx((0.9, 0.7))
    slack = allowed(100, 0.01)
    assert found.mean_interval == pytest.approx((0.6 - slack + 0.3 - slack, 0.6 + 0.3 + 2 * slack))
    assert found.agrees
    assert str(found).startswith("c: first draft accepted 0.6000 [")
    assert not measure_acceptance("c", np.array([4_000, 3_000, 3_000]), LAW, 0.02).agrees
    certain = measure_acceptance("c", np.array([0, 0, 5]), (0.0, 0.0, 1.0), 0.02)
    assert certain.mean_interval[1] == 2  # no distribution function is above 1, or below 0
    assert measure_acceptance("c", np.array([5, 0, 0]), (1.0,), 0.02).mean_interval[0] == 0


def test_either_interval_may_disagree() -> None:
    counts = np.array([5_000, 0, 5_000])  # the first draft as often as by the law, then too often
    assert not measure_acceptance("c", counts, LAW, 0.02).agrees
    rare = measure_acceptance("c", np.array([5_000, 5_000]), (0.0, 1.0), 0.02)
    assert not rare.agrees


def test_binomial_intervals_are_those_of_clopper_and_pearson() -> None:
    for successes in (0, 1, 7, 10):
        exact = stats.binomtest(successes, 10).proportion_ci(0.95, "exact")
        assert binomial_interval(successes, 10, 0.05) == pytest.approx(tuple(exact))


def test_an_interval_contains_its_ends() -> None:
    """No draft of 100 was accepted, nor may one be: the interval begins at the closed form."""
    measured = measure_acceptance("none", np.array([100, 0]), [1.0, 0.0], 1e-9)
    assert measured.rate_interval[0] == measured.rate_formula == 0
    assert measured.agrees
    assert not replace(measured, rate_formula=-1e-9).agrees


def test_nothing_counted_is_an_error() -> None:
    with pytest.raises(ValueError, match="trials = 0"):
        measure_acceptance("coin", np.array([0, 0]), [0.5, 0.5], 1e-9)


LAWS = [[0.5, 0.3, 0.2], [0.02, 0.0, 0.98], [1.0, 0.0, 0.0], [0.97, 0.02, 0.01]]


def coverage(law, covers, trials=12):
    """The exact probability, over all counts of so many trials, that an interval covers."""
    counts = [c for c in product(range(trials + 1), repeat=len(law)) if sum(c) == trials]
    return sum(stats.multinomial.pmf(c, trials, law) for c in counts if covers(np.array(c), law))


def rate_covered(counts, law):
    low, high = measure_acceptance("", counts, law, 0.2).rate_interval
    return low <= 1 - law[0] <= high


def mean_covered(counts, law):
    low, high = measure_acceptance("", counts, law, 0.2).mean_interval
    return low <= law[1] + 2 * law[2] <= high


def normal_covered(counts, law):
    rate = counts[1:].sum() / counts.sum()
    width = stats.norm.ppf(0.95) * math.sqrt(rate * (1 - rate) / counts.sum())
    return abs(rate - (1 - law[0])) <= width


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("covered", [rate_covered, mean_covered])
def test_intervals_of_acceptance_cover_at_least_as_often_as_they_say(covered, law):
    """Exact, no sampling: half of alpha = 0.2 is for each interval."""
    assert coverage(law, covered) >= 0.9


def test_the_coverage_check_rejects_a_normal_interval():
    assert min(coverage(law, normal_covered) for law in LAWS) < 0.9
