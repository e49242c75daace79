"""Sets of signs, against numbers that have them; linear combinations that exclude conditions."""

import random
from fractions import Fraction
from itertools import product
from operator import add, mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref.proofs.everywhere import signs
from specref.proofs.everywhere.polynomials import (
    Polynomial,
    Product,
    constant,
    plus,
    times,
    variable,
)
from specref.proofs.everywhere.signs import (
    MOST_TERMS,
    contradiction,
    homogeneous,
    signs_over_rows,
)

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
def test_the_signs_of_an_operation_are_those_that_its_numbers_have(operation, tabled):
    for a, b in product(range(8), repeat=2):
        found = union([operation(x, y) for x in some(a) for y in some(b)])
        assert tabled(a, b) == found, (a, b)


@pytest.mark.parametrize("a", range(8))
def test_a_set_has_its_members_and_an_opposite(a: int) -> None:
    assert union(list(signs.members(a))) == a
    assert signs.opposite(a) == union([-x for x in some(a)])


X, Y, Z, ONE = (0,), (1,), (2,), ()


def clause(allowed: int, **coefficients: int) -> tuple[Polynomial, int]:
    names = {"one": ONE, "x": X, "y": Y, "z": Z, "xy": (0, 1)}
    return Polynomial(tuple(sorted((names[n], c) for n, c in coefficients.items()))), allowed


@pytest.mark.parametrize(
    ("clauses", "excluding"),
    [
        ([clause(signs.POSITIVE, x=1), clause(signs.NEGATIVE, x=1)], {0, 1}),
        ([clause(signs.POSITIVE, x=1), clause(signs.AT_MOST_ZERO, x=1)], {0, 1}),
        ([clause(signs.AT_LEAST_ZERO, x=1), clause(signs.AT_MOST_ZERO, x=1)], None),
        ([clause(signs.POSITIVE, x=1), clause(signs.ZERO, x=1)], {0, 1}),
        ([clause(signs.NONZERO, x=1), clause(signs.ZERO, x=1)], None),
        (
            [
                clause(signs.POSITIVE, x=1, y=-2),
                clause(signs.POSITIVE, z=5),
                clause(signs.POSITIVE, y=2, z=-3),
                clause(signs.AT_LEAST_ZERO, z=3, x=-1),
            ],
            {0, 2, 3},
        ),
        (
            [
                clause(signs.AT_LEAST_ZERO, one=-1, x=2),
                clause(signs.AT_LEAST_ZERO, one=-1, y=2),
                clause(signs.NEGATIVE, one=-1, x=1, y=1),
            ],
            {0, 1, 2},
        ),
        ([clause(signs.POSITIVE, xy=1, x=-1), clause(signs.POSITIVE, x=1, xy=-1)], {0, 1}),
        # Both factors are positive, which no linear combination says of the product.
        (
            [
                clause(signs.POSITIVE, x=1),
                clause(signs.POSITIVE, y=1),
                clause(signs.NEGATIVE, xy=1),
            ],
            None,
        ),
    ],
)
def test_systems(clauses, excluding) -> None:
    assert contradiction(clauses) == (None if excluding is None else frozenset(excluding))


def drawn(rng: random.Random) -> list[tuple[Polynomial, int]]:
    products = [ONE, X, Y, Z, (0, 1), (1, 1)]
    return [
        (
            Polynomial(tuple(sorted((one, rng.choice((-2, -1, 1, 2))) for one in some))),
            rng.randint(1, 6),
        )
        for some in (rng.sample(products, rng.randint(1, 4)) for _ in range(rng.randint(2, 8)))
    ]


def holds(clauses: list[tuple[Polynomial, int]], point: dict[int, Fraction]) -> bool:
    values = (polynomial.at(point.__getitem__) for polynomial, _ in clauses)
    return all(
        signs.of((value > 0) - (value < 0)) & allowed
        for value, (_, allowed) in zip(values, clauses, strict=True)
    )


def test_what_holds_somewhere_is_not_excluded_and_what_excludes_is_enough() -> None:
    """600 random systems, of which some exclude each other and some hold at a drawn point."""
    rng = random.Random(7)
    excluded = held = 0
    for _ in range(600):
        clauses = drawn(rng)
        found = contradiction(clauses)
        point = {v: Fraction(rng.randint(-6, 6), rng.randint(1, 4)) for v in range(3)}
        if holds(clauses, point):
            held += 1
            assert found is None
        if found is not None:
            excluded += 1
            some = [clauses[number] for number in sorted(found)]
            assert contradiction(some) is not None
            others = [{v: Fraction(rng.randint(-9, 9), 3) for v in range(3)} for _ in range(20)]
            assert not any(holds(some, other) for other in others)
    assert excluded > 60
    assert held > 30


def test_large_eliminations_are_not_tried() -> None:
    """30 lower bounds of x above 30 upper ones would lead to 900 conditions."""
    below = [clause(signs.POSITIVE, one=-number, x=1, y=-1) for number in range(1, 31)]
    above = [clause(signs.NEGATIVE, one=number, x=1, y=-1) for number in range(1, 31)]
    assert contradiction([*below, *above]) is None
    assert contradiction([below[0], *above]) == frozenset([0, 1])


def test_eliminations_lead_to_100_conditions_at_most() -> None:
    below = [clause(signs.POSITIVE, one=-number, x=1, y=-1) for number in range(1, 11)]
    above = [clause(signs.NEGATIVE, one=number, x=1, y=-1) for number in range(1, 11)]
    assert contradiction([*below, *above]) == frozenset([0, 10])
    assert contradiction([*below, *above, clause(signs.POSITIVE, one=1)]) is None


SIZES = (2, 2, 1)
"""Of the rows of some variables, without their last entries."""
ROW_OF = [row for row, size in enumerate(SIZES) for _ in range(size)]


def summed(terms: list[tuple[int, list[int]]]) -> Product:
    """The sum of products of variables with their coefficients."""
    total = constant(Fraction(0))
    for coefficient, factors in terms:
        product = constant(Fraction(coefficient))
        for v in factors:
            product = times(product, variable(v))
        total = plus(total, product)
    return total


def only(form: Product) -> Polynomial:
    ((polynomial, _),) = form.powers.items()
    return polynomial


@given(
    st.lists(
        st.tuples(st.integers(-6, 6), st.lists(st.integers(0, len(ROW_OF) - 1), max_size=3)),
        min_size=2,
        max_size=5,
    ),
    st.lists(
        st.lists(st.integers(0, 4), min_size=len(ROW_OF) + 3, max_size=len(ROW_OF) + 3),
        min_size=1,
        max_size=8,
    ),
)
def test_no_sign_that_rows_give_is_left_out(terms, weights):
    for polynomial in summed(terms).powers:
        possible = signs_over_rows(polynomial, ROW_OF.__getitem__)
        for drawn in weights:
            value = polynomial.at(entries(drawn).__getitem__)
            assert signs.of((value > 0) - (value < 0)) & possible


def entries(weights: list[int]) -> list[Fraction]:
    """The free entries of rows with these weights; the first of a row without any is 1."""
    found, given_ = list[Fraction](), iter(weights)
    for size in SIZES:
        row = [next(given_) for _ in range(size + 1)]
        row[0] += not any(row)
        found += [Fraction(one, sum(row)) for one in row[:-1]]
    return found


def test_of_a_polynomial_with_too_many_terms_nothing_is_said() -> None:
    """x0^6 + x1 + … + x11 >= 0; made homogeneous in one row it has 18,564 terms."""
    large = only(summed([(1, [0] * 6), *((1, [v]) for v in range(1, 12))]))
    assert homogeneous(large, lambda v: "row") is None
    assert signs_over_rows(large, lambda v: "row") == signs.ANY
    small = only(summed([(1, [0] * 2), *((1, [v]) for v in range(1, 12))]))
    assert len(homogeneous(small, lambda v: "row") or ()) < MOST_TERMS
    assert signs_over_rows(small, lambda v: "row") == signs.AT_LEAST_ZERO
