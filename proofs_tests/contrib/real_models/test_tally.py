"""The declared intervals of accepted drafts hold as often as they say, exactly."""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import numpy as np

from specref.contrib.real_models.tally import COUNT_ALPHA, Place


def test_intervals_hold():
    """For 40 random numbers of two kinds the law of the number accepted is a convolution."""
    chances, law, place = np.array([0.2] * 20 + [0.9] * 20), np.ones(1), Place()
    place.add(np.zeros(40), chances, chances)
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    low, high = place.interval
    outside = law[:low].sum() + law[high + 1 :].sum()
    assert COUNT_ALPHA / 1e4 < outside <= COUNT_ALPHA


def test_drafts_one_by_one_are_those_of_a_call():
    one, all_ = Place(), Place()
    accepted, least = [True, False, True], [0.1, 0.5, 0.9]
    for each in zip(accepted, least, [1.5, 0.5, 1.0], strict=True):
        one.add(*each)
    all_.add(accepted, least, [1.5, 0.5, 1.0])
    assert (one.reached, one.accepted, one.interval) == (3, 2, all_.interval)
    np.testing.assert_allclose([one.low, one.high], [all_.low, all_.high])
    assert (one.least, one.most) == pytest.approx((all_.least, all_.most)) == (1.5, 3.0)
