"""Bounds on the distance of two unknown laws, checked by enumeration: no sampling here."""

import itertools
import math

import numpy as np
import pytest
import scipy
from scipy import stats

from specref.statistics.two_sample.bounds import (
    LOOKS,
    PARTS,
    Distance,
    detectable_distance,
    detectable_square,
    least_trials,
    least_value,
    log_tail,
    measure,
    relabelled_deviation,
    relabelled_mean,
    shortfall,
    spectrum,
    statistic,
    trials_to_find,
    width,
)

POOLED = ([3, 3], [2, 2, 2], [1] * 6, [4, 1, 1], [5, 5], [4, 4, 2], [3, 3, 2, 2], [8])


def deals(pooled: list[int]) -> np.ndarray:
    """The distance of the two sides, for every deal of half of the texts to one side."""
    copies = np.array(pooled)
    texts = np.repeat(np.arange(len(copies)), copies)
    half = len(texts) // 2
    sides = (
        np.bincount(hand, minlength=len(copies)) for hand in itertools.combinations(texts, half)
    )
    return np.array([np.abs(2 * side - copies).sum() / (2 * half) for side in sides])


@pytest.mark.parametrize("pooled", POOLED)
def test_the_mean_deal_is_exact(pooled: list[int]) -> None:
    mean = relabelled_mean(np.array(pooled), sum(pooled) // 2)
    assert mean == pytest.approx(deals(pooled).mean(), abs=1e-12)


def exceeded(factor: float) -> list[bool]:
    """Whether deals exceed their mean by a part of the bound more often than they may."""
    found = []
    for pooled, alpha in itertools.product(POOLED, (0.3, 0.1, 0.03, 0.01)):
        distances = deals(pooled)
        limit = distances.mean() + factor * relabelled_deviation(sum(pooled) // 2, alpha) + 1e-12
        found.append(bool((distances > limit).mean() > alpha))
    return found


def test_deals_keep_to_the_threshold() -> None:
    assert not any(exceeded(1.0))
    assert any(exceeded(0.5))


def crossing(alpha: float, factor: float) -> float:
    """P(a mean of [X] - [Y] ever exceeds a part of the width) for fair coins, in 2,000 trials."""
    trials = 2_000
    law = np.array([0.25, 0.5, 0.25])
    chance = np.zeros(2 * trials + 1)
    chance[trials] = 1
    crossed = 0.0
    sums = np.arange(-trials, trials + 1)
    for n in range(1, trials + 1):
        chance = np.convolve(chance, law)[1:-1]
        out = sums > factor * width(n, alpha) * n
        crossed += chance[out].sum()
        chance[out] = 0
    return crossed


@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_the_width_holds_at_every_number_of_trials(alpha: float) -> None:
    assert 0 < crossing(alpha, 1.0) <= alpha
    assert crossing(alpha, 0.7) > alpha


def missed(distance: float, factor: float) -> float:
    """P(distance >= detectable, and the threshold is not exceeded), for 60 throws of two coins."""
    trials, missed = 60, 0.0
    first, second = (
        stats.binom.pmf(np.arange(trials + 1), trials, 0.5 + sign * distance / 2)
        for sign in (1, -1)
    )
    for a, b in itertools.product(range(trials + 1), repeat=2):
        weight = first[a] * second[b]
        if weight > 1e-9:
            found = measure(np.array([[a, trials - a], [b, trials - b]]), alpha=0.05)
            detectable = found.threshold + factor * (found.detectable - found.threshold)
            if distance >= detectable and found.estimate <= found.threshold:
                missed += weight
    return missed


@pytest.mark.parametrize("distance", [0.5, 0.6, 0.7, 0.8])
def test_what_is_detectable_is_rarely_missed(distance: float) -> None:
    assert missed(distance, 1.0) <= 0.001


def test_halving_the_shortfall_is_noticed() -> None:
    assert missed(0.5, 0.5) > 0.001


def test_the_planned_distance_covers_the_measured_one() -> None:
    rng = np.random.default_rng(1)
    for texts, trials in ((2, 50), (5, 400), (125, 3_000)):
        law = rng.dirichlet(np.ones(texts))
        counts = np.array([rng.multinomial(trials, law) for _ in range(2)])
        found = measure(counts, alpha=1e-3 / PARTS)
        planned = detectable_distance(trials, texts, alpha=1e-3)
        assert found.detectable <= planned < 1.3 * found.detectable


def test_bounds_shrink_with_trials_and_looks_cost() -> None:
    counts = np.array([[50, 50], [50, 50]])
    assert measure(counts, 0.01).estimate == 0
    assert measure(10 * counts, 0.01).threshold < measure(counts, 0.01).threshold
    assert measure(counts, 0.01, look=2).threshold > measure(counts, 0.01).threshold
    assert measure(counts, 0.01, look=2).threshold == measure(counts, 0.01 / 4).threshold
    assert measure(counts[:, :0], 0.01).threshold == 1
    assert width(0, 0.1) == detectable_distance(1, 2) == 1
    assert relabelled_deviation(100, 0.01 / LOOKS) < shortfall(100, 1e-9)


def test_the_least_trials_are_the_least() -> None:
    trials = least_trials(0.05, 1e-9)
    assert width(trials, 1e-9) <= 0.05 < width(trials - 1, 1e-9)


def test_without_texts_any_distance_is_possible():
    assert measure(np.zeros((2, 3)), alpha=1e-3) == Distance(0.0, 1.0, 1.0, 1.0)


def test_bounds_by_their_formulas() -> None:
    """Of 400 texts on each side, where a sum of variances is 1/2 a trial."""
    log = math.log(1e4)
    v = 400 / 2 + 100
    assert width(400, 1e-4) == pytest.approx(math.sqrt(v * (2 * log + math.log(v / 100))) / 400)
    squares = sum((2 / 400 * 400 / (800 - i)) ** 2 for i in range(1, 401))
    assert math.sqrt(log * squares / 2) <= relabelled_deviation(400, 1e-4)
    assert relabelled_deviation(400, 1e-4) == pytest.approx(
        math.sqrt(log * 4 * 400 / (399.5 * 799.5) / 2)
    )
    assert shortfall(400, 1e-4) == pytest.approx(math.sqrt(log / 400))
    assert shortfall(400) == pytest.approx(math.sqrt(math.log(1e3) / 400))
    assert detectable_distance(400, 5, 1e-4, 1e-2) == pytest.approx(
        math.sqrt(4 / 799)
        + relabelled_deviation(400, 1e-4 / 6 / (math.pi**2 / 6))
        + shortfall(400, 1e-2)
    )


def test_texts_that_would_find_a_distance_by_their_formula() -> None:
    found = Distance(0.1, 0.08, 0.2, 0.3)
    needed = trials_to_find(0.05, 500, found, 1e-9, 3)

    def detectable(n: int) -> float:
        share = 1e-9 / (math.pi**2 / 6) / 9
        return 0.08 * math.sqrt(500 / n) + relabelled_deviation(n, share) + shortfall(n)

    assert detectable(needed) <= 0.05 < detectable(needed - 1)


# The tail bound of sign flips: exact tails are below it, and it is near those of chi-square.


def test_the_bound_is_above_the_exact_tail():
    """All 2^10 signs of ten pairs with three features."""
    rng = np.random.default_rng(1)
    for _ in range(6):
        apart = rng.integers(-2, 3, (10, 3)).astype(float)
        second = apart.T @ apart
        signs = np.array(list(itertools.product((1, -1), repeat=10)))
        values = np.array([statistic(one @ apart, np.diag(second)) for one in signs])
        for value in np.unique(values):
            exact = math.log(float((values >= value - 1e-9).mean()))
            assert log_tail(float(value), spectrum(second)) >= exact - 1e-9


def test_a_bound_without_the_covariance_would_be_below_it():
    """Ten features that are one: as independent ones they would seem ten times as sure."""
    apart = np.ones((10, 10))
    second = apart.T @ apart
    value = statistic(apart.sum(0), np.diag(second))
    exact = math.log(2 / 2**10)
    assert log_tail(value, np.ones(10)) < exact < log_tail(value, spectrum(second))


@pytest.mark.parametrize(
    ("cells", "alpha", "most"), [(1, 1e-9, 1.25), (49, 1e-9, 1.1), (256, 1e-3, 1.1)]
)
def test_it_needs_little_more_than_chi_square(cells, alpha, most):
    least = least_value(alpha, np.ones(cells))
    assert math.isclose(log_tail(least, np.ones(cells)), math.log(alpha), abs_tol=1e-6)
    assert 1 < least / scipy.stats.chi2.isf(alpha, cells) < most


def test_what_is_detectable_is_found_in_999_of_1000():
    """At least 990 of 1,000: fewer have probability 1e-6 if the probability is 0.998."""
    rng, cells = np.random.default_rng(2), 49
    needed = least_value(1e-9, np.ones(cells))
    square = detectable_square(1e-9, np.ones(cells))
    z = rng.standard_normal((1_000, cells))
    z[:, 0] += math.sqrt(square)
    assert ((z**2).sum(1) >= needed).sum() >= 990


def test_features_that_no_pair_tells_apart_are_left_out():
    second = np.diag([4.0, 0.0])
    assert spectrum(second).tolist() == [1.0]
    assert statistic(np.array([2.0, 0.0]), np.diag(second)) == 1.0
