"""Sets of signs, against the numbers that have them."""

from collections.abc import Callable
from itertools import product
from operator import add, mul

import pytest

from specref.proofs.everywhere import signs

NUMBERS = range(-3, 4)


def some(allowed: int) -> list[int]:
    """Numbers of each sign of a set, small ones and large ones."""
    return [x for x in NUMBERS if signs.of((x > 0) - (x < 0)) & allowed]


def union(numbers: list[int]) -> int:
    found = 0
    for x in numbers:
        found |= signs.of((x > 0) - (x < 0))
    return found


@pytest.mark.parametrize(("operation", "tabled"), [(add, signs.plus), (mul, signs.times)])
def test_the_signs_of_an_operation_are_those_that_its_numbers_have(
    operation: Callable[[int, int], int], tabled: Callable[[int, int], int]
) -> None:
    for a, b in product(range(8), repeat=2):
        found = union([operation(x, y) for x in some(a) for y in some(b)])
        assert tabled(a, b) == found, (a, b)


@pytest.mark.parametrize("a", range(8))
def test_a_set_has_its_members_and_an_opposite(a: int) -> None:
    assert union(list(signs.members(a))) == a
    assert signs.opposite(a) == union([-x for x in some(a)])
