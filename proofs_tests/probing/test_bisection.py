"""Cells of random numbers that are searched for."""

import numpy as np
import pytest

from specref.probing.bisection import searched_cells
from specref.probing.points import Point
from specref.probing.probe import MAX_RUNS, probe
from specref.probing.program import Program
from specref.probing.source import CannotInterpretError

rng = np.random.default_rng(1)


def below_a_diagonal() -> tuple[int, ...]:
    first, second = float(rng.random()), float(rng.random())
    return (int(first + second < 1.3),)


def below_a_curve() -> tuple[int, ...]:
    first, second, third = (float(rng.random()) for _ in range(3))
    return (int(first * second < 0.5), int(third < 0.25))


@pytest.mark.parametrize("sampler", [below_a_diagonal, below_a_curve])
def test_a_threshold_that_moves_with_another_number_is_no_side_of_a_box(sampler) -> None:
    """This is seen at the first threshold, and not after hundreds of them (10,000 runs)."""
    found = probe(sampler)
    assert found.uninterpreted is not None
    assert found.uninterpreted.endswith("its cells are neither boxes nor a race")
    assert found.runs < 2_000


@pytest.mark.parametrize("other", [2, 3])
def test_a_run_that_differs_from_one_on_equal_numbers_is_noticed(other: int) -> None:
    """The second run is on the numbers of the first; no change of the third's makes it differ."""
    runs = 0

    def forgetful() -> tuple[int, ...]:
        nonlocal runs
        runs += 1
        return (int(rng.random() < 2), int(runs == other))

    program = Program(lambda source: forgetful(), forgetful, MAX_RUNS)
    with pytest.raises(CannotInterpretError, match="not intercepted: equal numbers differ"):
        searched_cells(program)
    assert runs >= other


def test_points_are_moved_by_shares_of_their_range_and_stay_in_it() -> None:
    """A request without a range of its own has (0, 1)."""
    point = Point({1: (0.25, 0.5)}, probe=3)
    moved = point.shifted([0, 1], 0.125)
    assert moved.uniform(0) == pytest.approx(point.uniform(0) + 0.125)
    assert moved.uniform(1) == pytest.approx(point.uniform(1) + 0.125 / 4)
    assert (moved.pace, moved.arrival(0)) == (1.125, 1.125)
    assert moved.uniform(2) == point.uniform(2)
    far = point.shifted([0, 1], 1.0), point.shifted([0, 1], -1.0)
    assert [(one.uniform(0), one.uniform(1)) for one in far] == [(1.0, 0.5), (0.0, 0.25)]
