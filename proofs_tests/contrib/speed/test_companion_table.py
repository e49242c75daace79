"""Profiled acceptance tables: adaptive bins, empty cells, calibration, information gain."""

import itertools
from fractions import Fraction
from functools import partial
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref import Vocabulary, is_lossless
from specref.algorithms import companion
from specref.algorithms.companion import rejecting
from specref.algorithms.companion.companion import companion_acceptance, similarity
from specref.contrib.speed.companion_table import (
    AcceptanceTable,
    EmptyBinError,
    Gain,
    Observation,
    accepted_length_law,
    entropy,
    expected_accepted,
    information_gain,
    profile,
    truncated_law,
)
from specref.distributions import as_distribution
from specref.models import hashed_model
from specref.theory.goodput import greedy_length, greedy_lengths, optimal_length

F = Fraction
UNIT = st.integers(0, 8).map(lambda eighths: F(eighths, 8))
RUNS = st.lists(st.builds(Observation, UNIT, UNIT, UNIT), min_size=1, max_size=15)
BINS = st.tuples(st.integers(1, 6), st.integers(1, 6))
DIAGONAL = [Observation(F(k, 4), F(k, 4), int(k > 2)) for k in (1, 2, 3, 4)]


@given(RUNS, BINS)
def test_cells_are_the_means_of_what_fell_into_them(run, bins):
    """Recomputed from the edges alone, for every observation; totals are kept."""
    table = profile(run, bins)
    edges = ((*table.similarity_edges, 2), (*table.acceptance_edges, 2))

    def cell(observation):
        pairs = zip(edges, observation, strict=False)
        return tuple(sum(value >= edge for edge in axis) for axis, value in pairs)

    for one in run:
        same = [other.accepted for other in run if cell(other) == cell(one)]
        row = [other.accepted for other in run if cell(other)[0] == cell(one)[0]]
        assert table(one.similarity, one.companion_acceptance) == sum(same) / F(len(same))
        assert table.before_drawing(one.similarity) == sum(row) / F(len(row))
    assert sum(map(sum, table.counts)) == len(run)
    assert sum(map(sum, table.accepted)) == sum(one.accepted for one in run)


@given(RUNS, BINS)
def test_bins_are_adaptive(run, bins):
    """At most as many as asked for, strictly increasing edges, and no empty row or column."""
    table = profile(run, bins)
    for axis, edges in enumerate((table.similarity_edges, table.acceptance_edges)):
        assert len(edges) < bins[axis]
        assert list(edges) == sorted(set(edges))
    counts = np.array(table.counts)
    assert counts.sum(axis=0).min() > 0
    assert counts.sum(axis=1).min() > 0


def test_distinct_values_fill_the_bins_equally():
    run = [Observation(F(k, 12), F(1), 1) for k in range(12)]
    table = profile(run, (4, 4))
    assert table.counts == ((3,), (3,), (3,), (3,))
    assert table.similarity_edges == (F(1, 4), F(1, 2), F(3, 4))


def test_a_cell_without_observations_is_named_or_has_a_given_value():
    """Rows and columns are full, the product of bins is not."""
    table = profile(DIAGONAL, (2, 2))
    assert (table.counts, table(0, 0), table(1, 1)) == (((2, 0), (0, 2)), 0, 1)
    with pytest.raises(EmptyBinError, match=r"no observation in bin \(0, 1\)"):
        table(F(1, 4), F(1))
    assert profile(DIAGONAL, (2, 2), otherwise=F(1, 3))(F(1, 4), F(1)) == F(1, 3)
    assert issubclass(EmptyBinError, ValueError)


def test_a_table_by_hand_may_have_an_empty_row():
    table = AcceptanceTable((F(1, 2),), (), ((0,), (4,)), ((F(0),), (F(3),)))
    assert table.before_drawing(F(1, 2)) == F(3, 4)
    with pytest.raises(EmptyBinError, match=r"no observation in bin \(0,\)"):
        table.before_drawing(0)


def test_tables_drive_the_rules():
    """Profiled on every context, both repairs are lossless with the table, step is lossy."""
    vocabulary = Vocabulary("abc")
    target, drafter, third = (hashed_model(vocabulary, f"{role} table") for role in "pqc")
    run = []
    for context in [(), (0,), (1,), (2,)]:
        p, q, c = (model.next_token(context) for model in (target, drafter, third))
        run += [
            Observation(similarity(q, c), companion_acceptance(q, c, x), min(p[x] / q[x], 1))
            for x in np.flatnonzero(q)
        ]
    table = profile(run, (3, 3), otherwise=F(1, 2))
    told = {"companion": third, "length": partial(greedy_length, latencies=(0, 1, F(3, 2), 2))}
    for rule, estimate, lossless in (
        (companion.step, table, False),
        (companion.predictable_step, table.before_drawing, True),
        (rejecting.step, table, True),
    ):
        step = partial(rule, estimate=estimate, **told)
        assert is_lossless(step, target, drafter, (), 2).lossless == lossless


def test_entropy_and_gain_by_hand():
    """H(1/4) before, no doubt in one bin, a fair coin in the other."""
    gain = information_gain([2, 2], [0, 1])
    before = -0.25 * log2(0.25) - 0.75 * log2(0.75)
    assert gain == pytest.approx(Gain(before, 0.5, before - 0.5, (before - 0.5) / before))
    assert entropy(F(1, 4)) == pytest.approx(before)
    assert information_gain([3, 0], [3, 0]) == Gain(0, 0, 0, 0)
    assert profile(DIAGONAL, (2, 2)).gain() == Gain(1, 0, 1, 1)
    assert profile(DIAGONAL, (1, 1)).gain().information == 0


@given(RUNS, BINS)
def test_gain_is_between_nothing_and_everything(run, bins):
    gain = profile(run, bins).gain()
    assert -1e-12 <= gain.information <= gain.entropy + 1e-12


HALF = as_distribution(["1/2", "1/2"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: profile([], (1, 1)), "observations is empty"),
        (lambda: profile([*DIAGONAL, Observation(0, 2, 0)], (1, 1)), r"\[4\].companion_acc.* = 2"),
        (lambda: profile([Observation(0, 0, -1)], (1, 1)), r"observations\[0\].accepted = -1"),
        (lambda: profile([Observation(float("nan"), 0, 0)], (1, 1)), r"\[0\].similarity = nan"),
        (lambda: profile(DIAGONAL, (0, 1)), r"bins = \(0, 1\): expected two integers >= 1"),
        (lambda: profile(DIAGONAL, (1, -1)), "expected an integer >= 0"),
        (lambda: profile(DIAGONAL, (1, 1), otherwise=2), "otherwise = 2"),
        (lambda: profile(DIAGONAL, (1, 1))(F(5, 4), 0), "similarity = 5/4"),
        (lambda: profile(DIAGONAL, (1, 1))(0, -1), "companion_acceptance = -1"),
        (lambda: information_gain([0], [0]), "expected observations"),
        (lambda: information_gain([1], [1, 1]), "one count for each bin"),
        (lambda: information_gain([1, 2], [1, 3]), r"accepted\[1\] = 3: expected 0 to 2"),
        (lambda: entropy(F(3, 2)), "acceptance = 3/2"),
        (lambda: similarity(HALF, as_distribution([1])), "laws of 2 and 1 tokens"),
        (lambda: companion_acceptance(as_distribution([0, 1]), HALF, 0), "token = 0 has q = 0"),
        (lambda: companion_acceptance(HALF, HALF, 2), "token = 2: expected 0 <= id < 2"),
        (lambda: truncated_law(HALF, HALF, np.array([1, 2])), r"kept\[1\] = 2"),
        (lambda: accepted_length_law([F(1, 2)], 2), "has 1 positions: expected lookahead = 2"),
        (lambda: expected_accepted([F(3, 2)], 1), r"acceptance\[0\] = 3/2"),
        (lambda: expected_accepted([], -1), "-1: expected an integer >= 0"),
        (lambda: greedy_length([F(1, 2)], [0, 1]), "latencies end at 1 tokens: expected 2"),
        (lambda: greedy_lengths([], [0, 1]), "requests is empty"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_no_drafts_no_length():
    assert greedy_length([], [0, 1]) == optimal_length([], [0, 1]) == 0
    assert (accepted_length_law([], 0), expected_accepted([], 0)) == ((1,), 0)


def test_a_walk_is_causal():
    """Whether draft k is passed is a function of the acceptances up to k, on any latencies."""
    rates = (F(0), F(1, 2), F(1))
    for latencies in ((0, 1, 1, 2, 2), (0, 1, F(3, 2), F(19, 10), 3), (0, 2, 3, 3, 4)):
        walks = {row: greedy_length(row, latencies) for row in itertools.product(rates, repeat=3)}
        for row, length in walks.items():
            prefixes = [greedy_length(row[:k], latencies) == k for k in range(1, 4)]
            assert length == sum(itertools.takewhile(bool, prefixes))
