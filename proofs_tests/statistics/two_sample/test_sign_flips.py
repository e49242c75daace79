"""The tail bound of sign flips: exact tails are below it, and it is near those of chi-square."""

import itertools
import math

import numpy as np
import pytest
import scipy

from specref.statistics.two_sample.sign_flips import (
    detectable_square,
    least_value,
    log_tail,
    spectrum,
    statistic,
)


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
