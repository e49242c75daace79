"""Goodput on staircases: exact counterexamples to stopping early, and exact optima."""

from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref.contrib.speed.latency import optimal_policy, staircase
from specref.contrib.speed.speedup import expected_block_length
from specref.theory.goodput import (
    allocation,
    best,
    checked_latencies,
    first_decline,
    goodputs,
    survival,
)

RATES = st.lists(st.fractions(0, 1, max_denominator=8), min_size=1, max_size=3)
BATCHES = st.lists(RATES, min_size=1, max_size=3)
COSTS = st.fractions(0, 1, max_denominator=4)
NINE_TENTHS = Fraction(9, 10)


def profiles(steps):
    """Latencies of up to 12 tokens whose increments are drawn, then sorted if convex."""
    increments = st.lists(st.integers(0, 3), min_size=12, max_size=12)
    return increments.map(steps).map(lambda rises: [sum(rises[:n]) + 1 for n in range(13)])


STAIRS, CONVEX = profiles(list), profiles(sorted)


def expected(requests, lengths, latencies, draft_cost):
    """Expected goodput if these lengths are verified: the definition."""
    tokens = sum(expected_block_length(r, v) for r, v in zip(requests, lengths, strict=True))
    return tokens / (latencies[len(requests) + sum(lengths)] + sum(lengths) * draft_cost)


def choices(requests):
    return product(*(range(len(rates) + 1) for rates in requests))


def test_goodput_on_a_staircase_has_many_maxima():
    """Waves of 2 tokens over a fixed part: the first decline is at 1 draft, the best at 5."""
    values = goodputs([[NINE_TENTHS] * 6], staircase(7, 2, base=1))
    assert values[1] > values[2] < values[3] > values[4] < values[5] > values[6]
    assert (first_decline(values), best(values)) == (1, 5)
    assert values[1] / values[5] == Fraction(380000, 468559)  # 19 % of the goodput is lost


def test_ledger_v6_goodput_is_not_concave_and_its_first_decline_is_not_the_best():
    """The numbers of row V.6, which count accepted drafts only, and latencies 1, 2, 2, 2."""
    accepted = [expected_block_length(NINE_TENTHS, v) - 1 for v in range(1, 5)]
    values = [a / latency for a, latency in zip(accepted, (1, 2, 2, 2), strict=True)]
    assert [round(float(value), 3) for value in values] == [0.9, 0.855, 1.220, 1.548]
    assert (first_decline(values), best(values)) == (0, 3)
    linear = goodputs([[Fraction(1, 2)] * 6], [1 + Fraction(n, 4) for n in range(8)])
    slopes = [after - now for now, after in pairwise(linear)]
    bends = [after - now for now, after in pairwise(slopes)]
    assert max(bends) > 0  # even for linear latencies


@pytest.mark.parametrize("base", [1, 3, 10])
def test_stopping_at_the_first_decline_can_lose_any_factor(base):
    """Waves of base + 2 tokens, all accepted: one wave is taken, 1 / (base + 1) of the best."""
    wave, waves = base + 2, 40 * (base + 1)
    tokens = wave * waves
    values = goodputs([[Fraction(1)] * (tokens - 1)], staircase(tokens, wave, base=base))
    assert (first_decline(values), best(values)) == (wave - 1, tokens - 1)
    ratio = values[first_decline(values)] / max(values)
    assert ratio == Fraction(base + waves, waves * (base + 1)) < Fraction(42, 40 * (base + 1))


@given(BATCHES, CONVEX, COSTS)
def test_first_decline_is_best_for_convex_latencies(requests, latencies, cost):
    values = goodputs(requests, latencies, cost)
    assert first_decline(values) == best(values)


@given(BATCHES, STAIRS, COSTS)
def test_scan_over_totals_is_the_best_of_all_choices(requests, latencies, cost):
    """For every total, no choice of lengths beats the likeliest drafts; nor over all totals."""
    values = goodputs(requests, latencies, cost)
    by_total = {}
    for lengths in choices(requests):
        goodput = expected(requests, lengths, latencies, cost)
        by_total[sum(lengths)] = max(goodput, by_total.get(sum(lengths), 0))
    assert values == tuple(by_total[total] for total in range(len(values)))
    lengths = allocation(requests, best(values))
    assert expected(requests, lengths, latencies, cost) == max(values)


@given(BATCHES, st.data())
def test_allocation_is_causal(requests, data):
    """One draft more never takes a draft away: no verified length shrinks."""
    drafts = data.draw(st.integers(0, sum(map(len, requests)) - 1))
    fewer, more = allocation(requests, drafts), allocation(requests, drafts + 1)
    assert sum(more) - sum(fewer) == 1
    assert all(b >= a for a, b in zip(fewer, more, strict=True))


def round_robin(requests, drafts):
    """A planted bug: drafts are dealt in turn, whatever their acceptance."""
    dealt = sorted((k, r) for r, rates in enumerate(requests) for k in range(len(rates)))
    taken = [r for _, r in dealt[:drafts]]
    return tuple(taken.count(r) for r in range(len(requests)))


def test_dealing_in_turn_is_worse():
    requests = [[Fraction(1, 10)] * 2, [NINE_TENTHS] * 2]
    assert allocation(requests, 2) == (0, 2)
    assert round_robin(requests, 2) == (1, 1)
    latencies = staircase(6, 1)
    assert expected(requests, (1, 1), latencies, 0) < goodputs(requests, latencies)[2]


def brute_force(weights, classes, latencies, cost):
    """The best ratio of expected tokens to expected time over all policies."""

    def ratio(policy):
        tokens = [expected_block_length(r, v) for r, v in zip(classes, policy, strict=True)]
        times = [latencies[v + 1] + v * cost for v in policy]
        return sum(w * t for w, t in zip(weights, tokens, strict=True)) / sum(
            w * time for w, time in zip(weights, times, strict=True)
        )

    return max(map(ratio, choices(classes)))


@given(BATCHES, STAIRS, COSTS, st.data())
def test_optimal_policy_is_the_best_of_all(classes, latencies, cost, data):
    weights = data.draw(st.lists(st.integers(1, 5), min_size=len(classes), max_size=len(classes)))
    policy = optimal_policy(weights, classes, latencies, cost)
    assert policy.goodput == brute_force(weights, classes, latencies, cost)


def test_best_of_each_iteration_is_not_best_in_the_long_run():
    """Two classes; each class's own best makes 51/40 tokens per unit of time, not 9/7."""
    classes, latencies = [[Fraction(1)], [Fraction(2, 5)]], [0, 1, Fraction(4, 3)]
    own = [best(goodputs([rates], latencies)) for rates in classes]
    assert own == [1, 1]
    assert Fraction(2 + Fraction(7, 5), 2 * Fraction(4, 3)) == Fraction(51, 40)
    policy = optimal_policy([1, 1], classes, latencies)
    assert policy == ((1, 0), Fraction(9, 7))
    assert policy.goodput == brute_force([1, 1], classes, latencies, 0) > Fraction(51, 40)


def test_staircase_counts_waves_that_have_begun():
    assert staircase(6, 3, base=2, per_wave=5) == (2, 7, 7, 7, 12, 12, 12)
    rises = [b - a for a, b in pairwise(staircase(60, 7, base=Fraction(1, 3)))]
    assert [n for n, rise in enumerate(rises) if rise] == list(range(0, 60, 7))


def test_flat_latencies_are_leviathans_model():
    cost, rates = Fraction(1, 20), [Fraction(7, 10)] * 16
    values = goodputs([rates], [1] * 18, cost)
    assert best(values) == first_decline(values) == 6
    assert values[3] == sum(survival(rates, 3)) / (1 + 3 * cost)


@pytest.mark.parametrize(
    ("latencies", "message"),
    [
        ([0, 2, 1], r"latencies\[2\] = 1 is less than latencies\[1\] = 2"),
        ([1], "latencies has length 1"),
        ([0, 0], r"latencies\[1\] = 0: expected a finite positive"),
        ([-1, 1], r"latencies\[0\] = -1: expected a finite non-negative"),
        ([0, float("nan")], r"latencies\[1\] = nan"),
        ([0, float("inf")], r"latencies\[1\] = inf"),
    ],
)
def test_bad_latencies_are_named(latencies, message):
    with pytest.raises(ValueError, match=message):
        checked_latencies(latencies)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: goodputs([], [0, 1]), "requests is empty"),
        (lambda: goodputs([[]], [0, 1]), "acceptance is empty"),
        (lambda: goodputs([[2]], [0, 1, 1]), r"acceptance\[0\] = 2"),
        (lambda: goodputs([[1, 1]], [0, 1, 1]), "latencies end at 2 tokens: expected 3"),
        (lambda: goodputs([[1]], [0, 1, 1], -1), "draft_cost = -1"),
        (lambda: allocation([[1]], 2), "drafts = 2: expected 0 to 1"),
        (lambda: allocation([[1]], -1), "drafts = -1"),
        (lambda: staircase(0, 1), "tokens = 0"),
        (lambda: staircase(4, 0), "wave = 0"),
        (lambda: staircase(4, 2, base=-1), "base = -1"),
        (lambda: staircase(4, 2, per_wave=0), r"latencies\[1\] = 0"),
        (lambda: optimal_policy([1], [[1], [1]], [0, 1, 1]), "weights = "),
        (lambda: optimal_policy([-1], [[1]], [0, 1, 1]), "weights = "),
    ],
)
def test_other_misuse_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
