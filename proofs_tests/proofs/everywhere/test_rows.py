"""Charts know the signs of entries of a row; conditions say what a product's signs ask."""

import itertools
from fractions import Fraction

import pytest

from specref import Vocabulary
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.polynomials import Polynomial, Product
from specref.proofs.everywhere.rows import Chart, Row, Space, conditions, size_of

LETTERS = Vocabulary("abc")


def test_an_entry_is_not_negative_whatever_it_is_on_a_chart() -> None:
    space = Space(LETTERS, LETTERS, 0)
    p, q = space.entries(Row("p", ())), space.entries(Row("q", ()))
    twice = polynomials.times(polynomials.constant(Fraction(2)), q[0])
    (solved,) = next(iter(p[0].powers)).variables
    chart = Chart(space, {solved: twice})  # p(a) = 2 q(a), so p(c) = 1 - 2 q(a) - p(b)
    last, sign = polynomials.sign_polynomial(chart.entries(Row("p", ()))[2])
    expected = signs.AT_LEAST_ZERO if sign > 0 else signs.AT_MOST_ZERO
    assert chart.known(last) == expected
    assert space.signs(last) == signs.ANY
    # What is no entry has the signs that it may have over rows.
    loose, _ = polynomials.sign_polynomial(polynomials.difference(p[1], q[1]))
    assert chart.known(loose) == space.signs(loose) == signs.ANY


def test_the_domain_of_a_row_is_that_its_entries_are_not_negative() -> None:
    space = Space(LETTERS, LETTERS, 0)
    row = Row("p", ())
    clauses = Chart(space, {}).domain(row)
    assert clauses is not None
    for polynomial, allowed in clauses:
        # At the uniform row, every entry is positive.
        value = polynomial.at(lambda v: Fraction(1, 3))
        assert allowed == signs.of((value > 0) - (value < 0)) | signs.ZERO
    assert len(clauses) == 3


def test_symbols_are_those_of_the_signs() -> None:
    named = (
        (signs.NEGATIVE, "<"),
        (signs.ZERO, "="),
        (signs.AT_MOST_ZERO, "<="),
        (signs.POSITIVE, ">"),
        (signs.NONZERO, "!="),
        (signs.AT_LEAST_ZERO, ">="),
        (signs.ANY, "any"),
    )
    assert {allowed: said for allowed, said in signs.SYMBOLS.items() if allowed} == dict(named)


X, Y = (next(iter(polynomials.variable(v).powers)) for v in (0, 1))
SETS = range(1, 8)


def sign_at(form: Product, point: dict[Polynomial, int]) -> int | None:
    """The sign of a product where its factors have these values; None at a pole."""
    value = form.coefficient
    for factor, exponent in form.powers.items():
        if exponent < 0 and not point[factor]:
            return None
        value *= Fraction(point[factor]) ** exponent
    return signs.of((value > 0) - (value < 0))


@pytest.mark.deep(one_in=5)
@pytest.mark.parametrize("coefficient", [-2, Fraction(-1, 2), 0, Fraction(1, 3), 1])
@pytest.mark.parametrize("powers", [(1, 0), (2, 0), (-1, 0), (1, 1), (2, 1), (3, 2), (1, -1)])
def test_conditions_hold_where_the_sign_is_allowed(coefficient, powers):
    form = Product(
        Fraction(coefficient),
        {one: power for one, power in zip((X, Y), powers, strict=True) if power},
    )
    for allowed, x_signs, y_signs in itertools.product(SETS, repeat=3):
        known = {X: x_signs, Y: y_signs}
        found = conditions(form, allowed, known.__getitem__)
        for x, y in itertools.product((-1, 0, 1), repeat=2):
            point = {X: x, Y: y}
            sign = sign_at(form, point)
            if sign is None or not all(signs.of(point[one]) & known[one] for one in known):
                continue
            told = False
            if found is not None:
                told = all(signs.of(point[one]) & wanted for one, wanted in found.clauses)
                if told and found.rest:
                    rest = sign_at(found.rest[0], point)
                    told = rest is not None and bool(rest & found.rest[1])
            assert told == bool(sign & allowed), (allowed, known, point)


def test_the_size_of_a_form_bounds_its_degree_and_its_coefficients() -> None:
    x, y = polynomials.variable(0), polynomials.variable(1)
    seven = polynomials.constant(Fraction(7))
    for power in (1, 2, 3):
        form = polynomials.difference(x, polynomials.times(seven, y))
        whole = form
        for _ in range(power - 1):
            whole = polynomials.times(whole, form)
        expanded, _ = polynomials.sign_polynomial(
            polynomials.plus(whole, polynomials.constant(Fraction(1)))
        )
        degree = max(len(monomial) for monomial, _ in expanded.terms)
        bits = sum(abs(number) for _, number in expanded.terms).bit_length()
        assert degree == power
        assert size_of(whole) >= max(degree, bits - 1)
    assert size_of(polynomials.constant(Fraction(1, 1 << 20))) == 21
    assert size_of(polynomials.constant(Fraction(1 << 20))) == 21
    assert size_of(polynomials.ratio(polynomials.constant(Fraction(1)), x)) == 2
