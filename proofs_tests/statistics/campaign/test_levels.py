"""Tests at a fixed sample size: they keep their alpha, and reject what they say they detect."""

from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from specref.statistics.campaign.levels import (
    chi_square_test,
    expected_total_variation,
    total_variation_test,
)

TESTS = [total_variation_test, chi_square_test]
LAW = {0: 0.4, 1: 0.3, 2: 0.2, 3: 0.1}


def sample(probabilities: np.ndarray, trials: int, rng: np.random.Generator) -> dict[int, int]:
    return dict(enumerate(rng.multinomial(trials, probabilities)))


def test_expected_total_variation_by_enumeration() -> None:
    # Three draws from (1/3, 2/3): the count of the first is 0, 1, 2, 3.
    chances = [Fraction(8, 27), Fraction(12, 27), Fraction(6, 27), Fraction(1, 27)]
    mean = sum(c * abs(Fraction(k, 3) - Fraction(1, 3)) for k, c in enumerate(chances))
    assert expected_total_variation(np.array([1 / 3, 2 / 3]), 3) == pytest.approx(float(mean))


@pytest.mark.parametrize("trials", [1, 2, 5, 40])
@pytest.mark.parametrize(
    "first", [Fraction(1, 2), Fraction(1, 10), Fraction(1, 1000), Fraction(0)]
)
def test_expected_total_variation_is_its_sum(first: Fraction, trials: int) -> None:
    # SciPy before 1.16 has no value of betainc(c, 0, x), so that the mean could be NaN.
    mean = sum(
        comb(trials, k) * first**k * (1 - first) ** (trials - k) * abs(k - trials * first)
        for k in range(trials + 1)
    )
    law = np.array([float(first), float(1 - first)])
    expected = pytest.approx(float(mean / trials), abs=1e-15)
    assert expected_total_variation(law, trials) == expected


@pytest.mark.parametrize("test", TESTS)
def test_false_alarms_stay_near_alpha(test) -> None:
    # 2,000 correct samplers at alpha 0.01: at most 48 alarms with probability 1 - 1e-7.
    rng = np.random.default_rng(1)
    law = np.array(list(LAW.values()))
    alarms = sum(test(sample(law, 2_000, rng), LAW, alpha=0.01).rejected for _ in range(2_000))
    assert alarms <= 48


@pytest.mark.parametrize("test", TESTS)
def test_detects_what_it_says(test) -> None:
    # 200 samplers at the stated distance, beta 0.01: more than 12 misses has chance 1e-6.
    rng = np.random.default_rng(2)
    law = np.array(list(LAW.values()))
    detectable = test(sample(law, 20_000, rng), LAW, beta=0.01).detectable
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    # Evenly spread: +-eps p, rescaled to sum 1, so the distance is the detectable one.
    shift = law * signs
    shift[signs > 0] *= law[signs < 0].sum() / law[signs > 0].sum()
    biased = law + shift * detectable / (np.abs(shift).sum() / 2)
    misses = sum(
        not test(sample(biased, 20_000, rng), LAW, beta=0.01).rejected for _ in range(200)
    )
    assert misses <= 12


@pytest.mark.parametrize("test", TESTS)
def test_an_impossible_outcome_rejects_at_once(test) -> None:
    result = test({0: 40, 1: 30, 2: 20, 3: 10, 4: 1}, LAW)
    assert result.rejected
    assert result.impossible == (4,)


@pytest.mark.parametrize("test", TESTS)
def test_bad_input(test) -> None:
    with pytest.raises(ValueError, match="at least one trial"):
        test({}, LAW)
    with pytest.raises(ValueError, match=r"counts\[2\] = -1"):
        test({0: 10, 2: -1}, LAW)
    with pytest.raises(ValueError, match="law sums to"):
        test({0: 10}, {0: 0.5})


def test_chi_square_needs_two_cells() -> None:
    with pytest.raises(ValueError, match="expected at least 2"):
        chi_square_test({0: 3, 1: 1}, LAW)


def test_chi_square_pools_rare_outcomes() -> None:
    law = {0: 0.5, 1: 0.4999, 2: 0.0001}
    result = chi_square_test({0: 5000, 1: 4995, 2: 5}, law, alpha=0.5)
    assert result.statistic < 1


def test_chi_square_by_hand() -> None:
    """Outcomes expected exactly 5 times are cells of their own; a pool of so many is one, too."""
    law = {0: 0.85, 1: 0.05, 2: 0.06, 3: 0.02, 4: 0.02}
    result = chi_square_test({0: 80, 1: 9, 2: 6, 3: 1, 4: 4}, law)  # 3 and 4 are expected 4 times
    assert result.statistic == pytest.approx(25 / 85 + 16 / 5)
    assert result.total_variation == pytest.approx(0.05 + 0.01)
    wider = {0: 0.84, 1: 0.05, 2: 0.06, 3: 0.025, 4: 0.025}
    pooled = chi_square_test({0: 80, 1: 9, 2: 6, 3: 1, 4: 4}, wider)
    assert pooled.statistic == pytest.approx(16 / 84 + 16 / 5)
    for found, freedom in ((result, 2), (pooled, 3)):
        assert found.threshold == pytest.approx(stats.chi2.isf(1e-9, freedom))
        missed = stats.ncx2.cdf(found.threshold, freedom, 4 * 100 * found.detectable**2)
        assert missed == pytest.approx(1e-3)
        assert found.rejected == (found.statistic > found.threshold)


def test_a_statistic_at_its_threshold_does_not_reject() -> None:
    result = total_variation_test({0: 40, 1: 30, 2: 20, 3: 10}, LAW)
    assert replace(result, statistic=0.25, threshold=0.25).rejected is False
    assert replace(result, statistic=0.26, threshold=0.25).rejected is True


@pytest.mark.parametrize("trials", [10**6, 10**8])
def test_the_mean_of_many_trials_is_that_of_the_normal_law(trials: int) -> None:
    # Berry-Esseen: the mean absolute deviation is sqrt(2 / pi) of the standard deviation, nearly.
    law = np.array([0.5, 0.3, 0.2])
    mean = np.sqrt(law * (1 - law) / trials).sum() / np.sqrt(2 * np.pi)
    assert expected_total_variation(law, trials) == pytest.approx(mean, rel=1e-5)


def test_the_bound_of_many_trials_takes_over_where_the_mean_is_no_longer_computed() -> None:
    law = np.array([0.5, 0.3, 0.2])
    at, beyond = (expected_total_variation(law, trials) for trials in (10**9, 10**9 + 1))
    bound = np.sqrt(law * (1 - law) / 10**9).sum() / 2
    assert at == pytest.approx(bound * np.sqrt(2 / np.pi), rel=1e-4)
    assert beyond == pytest.approx(bound)


def test_thresholds_by_their_formulas() -> None:
    result = total_variation_test({0: 40, 1: 30, 2: 20, 3: 10}, LAW, alpha=1e-4, beta=1e-2)
    mean = expected_total_variation(np.array([LAW[i] for i in range(4)], dtype=float), 100)
    slack = [np.sqrt(np.log(1 / rate) / 200) for rate in (1e-4, 1e-2)]
    assert result.threshold == pytest.approx(mean + slack[0])
    assert result.detectable == pytest.approx(mean + sum(slack))
