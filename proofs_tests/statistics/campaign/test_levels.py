"""Tests at a fixed sample size: they keep their alpha, and reject what they say they detect."""

from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from specref.statistics.campaign.levels import (
    expected_total_variation,
    total_variation_test,
)

LAW = {0: 0.4, 1: 0.3, 2: 0.2, 3: 0.1}


def sample(probabilities: np.ndarray, trials: int, rng: np.random.Generator) -> dict[int, int]:
    return dict(enumerate(rng.multinomial(trials, probabilities)))


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


def test_false_alarms_stay_below_alpha() -> None:
    # 2,000 correct samplers at alpha 0.01: at most 48 alarms with probability 1 - 1e-7.
    rng = np.random.default_rng(1)
    law = np.array(list(LAW.values()))
    alarms = sum(
        total_variation_test(sample(law, 2_000, rng), LAW, alpha=0.01).rejected
        for _ in range(2_000)
    )
    assert alarms <= 48


def test_detects_what_it_says() -> None:
    # 200 samplers at the stated distance, beta 0.01: more than 12 misses has chance 1e-6.
    rng = np.random.default_rng(2)
    law = np.array(list(LAW.values()))
    detectable = total_variation_test(sample(law, 20_000, rng), LAW, beta=0.01).detectable
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    # Evenly spread: +-eps p, rescaled to sum 1, so the distance is the detectable one.
    shift = law * signs
    shift[signs > 0] *= law[signs < 0].sum() / law[signs > 0].sum()
    biased = law + shift * detectable / (np.abs(shift).sum() / 2)
    misses = sum(
        not total_variation_test(sample(biased, 20_000, rng), LAW, beta=0.01).rejected
        for _ in range(200)
    )
    assert misses <= 12


def test_an_impossible_outcome_rejects_at_once() -> None:
    result = total_variation_test({0: 40, 1: 30, 2: 20, 3: 10, 4: 1}, LAW)
    assert result.rejected
    assert result.impossible == (4,)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="at least one trial"):
        total_variation_test({}, LAW)
    with pytest.raises(ValueError, match=r"counts\[2\] = -1"):
        total_variation_test({0: 10, 2: -1}, LAW)
    with pytest.raises(ValueError, match="law sums to"):
        total_variation_test({0: 10}, {0: 0.5})


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
