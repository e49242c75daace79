"""What drafts gain in time: the closed forms against enumeration, brute force and algebra."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref import Vocabulary, exact_distribution
from specref.contrib.speed.speedup import (
    break_even_acceptance,
    expected_block_length,
    is_faster,
    operations_increase,
    optimal_lookahead,
    walltime_improvement,
)
from specref.models import hashed_model, iid_model
from specref.rules import RULES
from specref.theory import expected_tokens
from specref.theory.goodput import survival

RATES = st.fractions(0, 1, max_denominator=12)
COSTS = st.fractions(Fraction(1, 40), Fraction(3, 2), max_denominator=40)
LISTS = st.lists(RATES, min_size=1, max_size=6)
GRID = [Fraction(k, 20) for k in range(21)]


def scanned(acceptance, cost, most, improvement=walltime_improvement):
    """The first argmax, by trying every lookahead."""
    return max(range(most + 1), key=lambda g: improvement(acceptance, g, cost))


@given(RATES, st.integers(0, 8))
def test_one_number_is_leviathans_equation_1(rate, lookahead):
    length = expected_block_length(rate, lookahead)
    assert length == expected_tokens(rate, lookahead)
    if rate < 1:
        assert length == (1 - rate ** (lookahead + 1)) / (1 - rate)
    else:
        assert length == lookahead + 1
    assert length == expected_block_length([rate] * max(lookahead, 1), lookahead)


@given(LISTS, st.data())
def test_one_number_each_position_is_the_mean_of_the_accepted_length(rates, data):
    lookahead = data.draw(st.integers(0, len(rates)))
    mean = 0
    for coins in product([True, False], repeat=lookahead):
        weight = math.prod(r if coin else 1 - r for r, coin in zip(rates, coins, strict=False))
        mean += weight * (1 + [*coins, False].index(False))
    assert expected_block_length(rates, lookahead) == mean


@pytest.mark.parametrize("algorithm", ["standard", "slrs"])
@pytest.mark.parametrize("key", range(4))
def test_rates_by_position_are_exact_for_models_with_memory(algorithm, key):
    """The average is not: it misses the mean block length of every one of these pairs."""
    abc = Vocabulary("abc")
    target, drafter = hashed_model(abc, f"p{key}"), hashed_model(abc, f"q{key}")
    step = RULES[algorithm].step
    blocks = exact_distribution(lambda chance: step(target, drafter, (), 3, chance))
    mean = sum(len(block) * weight for block, weight in blocks.items())
    rates = RULES[algorithm].acceptance_by_position(target, drafter, lookahead=3)
    assert expected_block_length(rates, len(rates)) == mean
    assert expected_tokens(sum(rates) / len(rates), 3) != mean


def test_independent_acceptances_need_one_number():
    target, drafter = (
        iid_model(Vocabulary("ab"), row) for row in (["1/3", "2/3"], ["1/2", "1/2"])
    )
    rates = RULES["standard"].acceptance_by_position(target, drafter, lookahead=3)
    assert set(rates) == {RULES["standard"].acceptance_rate(target, drafter)}


def test_correlated_acceptances_need_more():
    """Half the contexts accept everything, half nothing: a = 1/2 gives 31/16, and it is 3."""
    assert expected_block_length(Fraction(1, 2), 4) == Fraction(31, 16)
    assert expected_block_length([Fraction(1, 2), *[Fraction(1)] * 3], 4) == 3


@given(LISTS, COSTS)
def test_improvement_is_tokens_over_time(rates, cost):
    lookahead = len(rates)
    improvement = walltime_improvement(rates, lookahead, cost)
    assert improvement * (1 + lookahead * cost) == expected_block_length(rates, lookahead)
    operations = operations_increase(rates, lookahead, cost)
    assert operations * expected_block_length(rates, lookahead) == lookahead * (1 + cost) + 1


@given(LISTS, COSTS)
def test_optimum_is_the_first_argmax(rates, cost):
    assert optimal_lookahead(rates, cost) == scanned(rates, cost, len(rates))


@given(RATES, COSTS, st.integers(0, 12))
def test_optimum_for_one_number(rate, cost, most):
    assert optimal_lookahead(rate, cost, most) == scanned(rate, cost, most)


@pytest.mark.parametrize("rate", [rate for rate in GRID if rate <= Fraction(9, 10)])
@pytest.mark.parametrize("cost", [Fraction(1, 20), Fraction(1, 5), Fraction(1)])
def test_optimum_without_a_limit(rate, cost):
    assert optimal_lookahead(rate, cost) == scanned(rate, cost, 60)


def test_ties_go_to_the_smallest():
    """Equal improvements, exactly: the optimum of a pair, and of a plateau without end."""
    rates, cost = [Fraction(1, 2), Fraction(1, 2)], Fraction(1, 5)
    one, two = (walltime_improvement(rates, g, cost) for g in (1, 2))
    assert one == two == Fraction(5, 4)
    assert optimal_lookahead(rates, cost) == 1
    assert walltime_improvement(Fraction(1), 7, Fraction(1)) == 1
    assert optimal_lookahead(Fraction(1), Fraction(1)) == 0


def no_bonus(acceptance, lookahead, cost):
    """A planted bug: the bonus token is forgotten."""
    lost = survival(acceptance, lookahead)[-1] if lookahead else 0
    return (expected_block_length(acceptance, lookahead) - lost) / (1 + lookahead * cost)


def drafts_are_tokens(acceptance, lookahead, cost):
    """A planted bug: one draft too many is paid."""
    return expected_block_length(acceptance, lookahead) / (1 + (lookahead + 1) * cost)


@pytest.mark.parametrize("bug", [no_bonus, drafts_are_tokens])
def test_planted_formulas_have_another_optimum(bug):
    differing = [
        (rate, cost)
        for rate in GRID[1:-1]
        for cost in (Fraction(1, 10), Fraction(1, 4))
        if optimal_lookahead(rate, cost) != scanned(rate, cost, 30, bug)
    ]
    assert differing


@given(LISTS, COSTS)
def test_some_lookahead_is_faster_iff_the_first_rate_exceeds_the_cost(rates, cost):
    """Corollary 3.9 in both directions, for rates that vary with the position."""
    faster = any(walltime_improvement(rates, g, cost) > 1 for g in range(1, len(rates) + 1))
    assert is_faster(rates, cost) == faster == (rates[0] > cost)
    if faster:
        best = walltime_improvement(rates, optimal_lookahead(rates, cost), cost)
        assert best >= (1 + rates[0]) / (1 + cost) > 1


@given(RATES, COSTS)
def test_faster_at_one_lookahead_is_faster_at_all_smaller_ones(rate, cost):
    """The proof of Corollary 3.9: sums of fewer powers have the greater mean."""
    faster = [walltime_improvement(rate, g, cost) > 1 for g in range(1, 13)]
    assert faster == sorted(faster, reverse=True)


@pytest.mark.parametrize("lookahead", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("cost", [0.01, 0.2, 0.9])
def test_break_even_acceptance_separates(lookahead, cost):
    rate = break_even_acceptance(lookahead, cost)
    assert cost <= rate < 1
    assert walltime_improvement(rate + 1e-9, lookahead, cost) > 1
    assert walltime_improvement(rate - 1e-9, lookahead, cost) < 1


def test_break_even_of_two_drafts_solves_its_quadratic():
    cost = 0.1
    exact = (math.sqrt(1 + 8 * cost) - 1) / 2
    assert math.isclose(break_even_acceptance(2, cost), exact, rel_tol=1e-14)


def test_floats_and_arrays_give_floats():
    rates = np.array([0.9, 0.5])
    assert isinstance(expected_block_length(0.7, 3), float)
    assert expected_block_length(rates, 2) == pytest.approx(2.35, rel=1e-15)
    assert optimal_lookahead(rates, 0.1) == 2
    assert optimal_lookahead(np.float64(0.7), 0.05) == 6


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, Fraction(3, 2), [0.5, -1], [0.5, math.nan]])
def test_acceptance_outside_the_interval_is_refused(bad):
    index = r"acceptance\[1\] = " if isinstance(bad, list) else "acceptance = "
    with pytest.raises(ValueError, match=rf"{index}.*: expected a number in \[0, 1\]"):
        expected_block_length(bad, 1)


@pytest.mark.parametrize("cost", [0, -1, math.nan, math.inf])
@pytest.mark.parametrize(
    "function",
    [
        lambda cost: walltime_improvement(0.5, 1, cost),
        lambda cost: optimal_lookahead(0.5, cost),
        lambda cost: is_faster(0.5, cost),
        lambda cost: break_even_acceptance(2, cost),
    ],
)
def test_cost_that_is_not_positive_is_refused(function, cost):
    with pytest.raises(ValueError, match=r"cost = .*: expected a number > 0"):
        function(cost)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: survival(0.5, -1), "lookahead = -1"),
        (lambda: survival([], 0), "acceptance is empty"),
        (lambda: survival([0.5], 2), "acceptance has 1 positions: expected lookahead = 2"),
        (lambda: optimal_lookahead([0.5], 0.1, 2), "acceptance has 1 positions"),
        (lambda: optimal_lookahead(0.5, 0.1, -1), "lookahead = -1"),
        (lambda: optimal_lookahead(1, 0.5), "lookahead_max is needed"),
        (lambda: operations_increase(0.5, 1, -0.1), r"operations_ratio = -0.1"),
        (lambda: break_even_acceptance(0, 0.1), "lookahead = 0"),
        (lambda: break_even_acceptance(2, 1), "cost = 1: expected less than 1"),
    ],
)
def test_other_misuse_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("text", ["0.5", ["0.5"], [None]])
def test_what_is_no_number_is_named(text):
    with pytest.raises(TypeError, match=r"acceptance\[0\] = .*: expected a number"):
        survival(text, 1)
