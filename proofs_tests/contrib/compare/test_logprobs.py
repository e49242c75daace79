"""Log-probabilities that a server reports of its own tokens."""

import numpy as np

from specref.contrib.compare.logprobs import TOLERANCE, agreement
from specref.contrib.compare.records import Texts

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])


def texts(rng, reported, number=60):
    rows = rng.choice(3, (number, 2), p=P)
    prompts = np.zeros(number, dtype=int)
    starts = np.arange(0, rows.size + 1, 2)
    logs = np.log(reported)[rows.ravel()]
    return Texts("t", rows.ravel(), starts, prompts, ["a"], [None] * number, logs, 0)


def test_equal_reports_agree_and_rounding_is_no_difference():
    rng = np.random.default_rng(1)
    one, other = texts(rng, P), texts(rng, P)
    found = agreement(one, other, TOLERANCE)
    assert found.agree
    assert found.repeated == 2 * 120 - 3 - 9  # but for each token and pair seen first
    other.logprobs += 0.1
    assert agreement(one, other, TOLERANCE).agree
    assert not agreement(one, other, tolerance=0.05).agree


def test_reports_of_the_drafter_are_found():
    rng = np.random.default_rng(2)
    found = agreement(texts(rng, Q), texts(rng, P), TOLERANCE)
    assert found.apart == 12
    assert found.largest > 1
    assert "position" in found.example


def test_what_adds_up_to_more_than_one_is_found():
    """Both files report residuals alike, so they do not differ from each other."""
    rng = np.random.default_rng(3)
    found = agreement(texts(rng, 1.5 * P), texts(rng, 1.5 * P), TOLERANCE)
    assert found.apart == 0
    assert found.above == 4


def test_without_reports_there_is_nothing_to_compare():
    rng = np.random.default_rng(4)
    one, other = texts(rng, P), texts(rng, P)
    other.logprobs = None
    assert agreement(one, other, TOLERANCE) is None
