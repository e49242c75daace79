"""Signs by Bernstein coefficients: never fewer than a polynomial takes, and all if it is large."""

from fractions import Fraction

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
from specref.proofs.everywhere.simplex import MOST_TERMS, homogeneous, signs_over_rows

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
def test_no_sign_that_rows_give_is_left_out(
    terms: list[tuple[int, list[int]]], weights: list[list[int]]
) -> None:
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
