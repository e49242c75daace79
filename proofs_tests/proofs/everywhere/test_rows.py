"""Charts know the signs of what is an entry of a row there."""

from fractions import Fraction

from specref import Vocabulary
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.rows import Chart, Row, Space

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
