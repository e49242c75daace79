"""What the solver says of conditions on rows: rows at which they hold, or that there are none."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from specref import Vocabulary
from specref.proofs.everywhere import polynomials, signs, solver
from specref.proofs.everywhere.rows import Chart, Clause, Row, Sample, Space, clause
from specref.proofs.everywhere.solver import Counts, Solver, joined

pytest.importorskip("z3", reason="not_run (z3 is not installed)")
LETTERS = Vocabulary("abc")
SIGNS = {
    "negative": signs.NEGATIVE,
    "zero": signs.ZERO,
    "at most zero": signs.AT_MOST_ZERO,
    "positive": signs.POSITIVE,
    "nonzero": signs.NONZERO,
    "at least zero": signs.AT_LEAST_ZERO,
}


def that(less: Fraction, allowed: int) -> tuple[Chart, Clause]:
    """The clause that p(a) q(b) - `less` has one of these signs, in rows of three tokens."""
    space = Space(LETTERS, LETTERS, 0)
    p, q = (space.entries(Row(letter, ())) for letter in "pq")
    product = polynomials.difference(polynomials.times(p[0], q[1]), polynomials.constant(less))
    return Chart(space, {}), clause(product, allowed)


@pytest.mark.parametrize("allowed", SIGNS.values(), ids=SIGNS)
@pytest.mark.parametrize("key", ["one", "two"])
def test_a_product_of_entries_may_have_any_sign(allowed: int, key: str) -> None:
    chart, (polynomial, possible) = that(Fraction(1, 10), allowed)
    found = Solver(Counts()).find(chart, [(polynomial, possible)], [], key)
    assert isinstance(found, Sample)
    assert signs.of(found.sign(polynomial)) & possible
    (a, *_), (_, b, _) = (found.row(Row(letter, ())) for letter in "pq")
    assert signs.of((a * b > Fraction(1, 10)) - (a * b < Fraction(1, 10))) & allowed
    for letter in "pq":
        row = found.row(Row(letter, ()))
        assert sum(row) == 1
        assert min(row) >= 0


# p(a) q(b) <= 1, and = 1 at one point of the rows alone.
@pytest.mark.parametrize(
    ("less", "allowed"),
    [
        (Fraction(1), signs.POSITIVE),
        (Fraction(2), signs.AT_LEAST_ZERO),
        (Fraction(2), signs.ZERO),
        (Fraction(0), signs.NEGATIVE),
        (Fraction(-1, 10), signs.AT_MOST_ZERO),
        (Fraction(-1, 10), signs.ZERO),
    ],
)
def test_signs_that_a_product_cannot_have(less: Fraction, allowed: int) -> None:
    chart, asked = that(less, allowed)
    solver = Solver(Counts())
    assert solver.find(chart, [asked], [], "") == "none"
    assert solver.excluded(chart, [asked])


@pytest.mark.parametrize("allowed", [signs.ZERO, signs.AT_LEAST_ZERO])
def test_the_largest_product_is_taken_at_one_point(allowed: int) -> None:
    chart, asked = that(Fraction(1), allowed)
    solver = Solver(Counts())
    assert not solver.excluded(chart, [asked])
    found = solver.find(chart, [asked], [], "")
    assert isinstance(found, Sample)
    assert found.row(Row("p", ()))[0] == found.row(Row("q", ()))[1] == 1


def test_questions_are_counted_from_none() -> None:
    chart, small = that(Fraction(1, 10), signs.NEGATIVE)
    _, large = that(Fraction(1, 5), signs.POSITIVE)
    assert Counts() == Counts(0, 0, 0, 0)
    solver = Solver(Counts())
    solver.find(chart, [small], [], "")
    assert solver.counts == Counts(questions=1, samples=1)
    assert solver.find(chart, [small, large], [], "") == "none"
    assert solver.counts.questions == 2
    assert solver.counts.samples == 1
    assert solver.counts.implied + solver.counts.calls == 1
    total = Counts(1, 2, 3, 4)
    total += Counts(10, 20, 30, 40)
    assert total == Counts(11, 22, 33, 44)


def test_what_is_known_before_is_counted_as_implied() -> None:
    chart, (polynomial, _) = that(Fraction(1, 10), signs.POSITIVE)
    solver = Solver(Counts())
    contrary = [(polynomial, signs.POSITIVE), (polynomial, signs.NEGATIVE)]
    assert solver.find(chart, contrary, [], "") == "none"
    assert solver.counts == Counts(questions=1, implied=1)
    assert solver.excluded(chart, contrary)
    assert solver.counts == Counts(questions=2, implied=2)
    # p(a) p(b) > 1/3: entries alone do not exclude it, their sum does.
    p = chart.space.entries(Row("p", ()))
    third = polynomials.constant(Fraction(1, 3))
    product = polynomials.difference(polynomials.times(p[0], p[1]), third)
    impossible, solver = clause(product, signs.POSITIVE), Solver(Counts())
    assert [solver.find(chart, [impossible], [], "") for _ in range(2)] == ["none"] * 2
    assert solver.counts == Counts(questions=2, implied=1, calls=1)


def test_a_square_is_not_negative_and_zero_where_its_root_is() -> None:
    space = Space(LETTERS, LETTERS, 0)
    root = polynomials.difference(space.entries(Row("p", ()))[0], space.entries(Row("q", ()))[1])
    square = polynomials.plus(polynomials.times(root, root), polynomials.constant(Fraction(0)))
    expanded = polynomials.difference(square, polynomials.constant(Fraction(1, 100)))
    chart, solver = Chart(space, {}), Solver(Counts())
    # (p(a) - q(b))² - 1/100, and what it is at least.
    lower = polynomials.plus(expanded, polynomials.constant(Fraction(1, 100)))
    assert solver.find(chart, [clause(lower, signs.NEGATIVE)], [], "") == "none"
    more = polynomials.difference(expanded, polynomials.constant(Fraction(99, 100)))
    assert solver.find(chart, [clause(more, signs.POSITIVE)], [], "") == "none"
    assert not solver.excluded(chart, [clause(more, signs.AT_LEAST_ZERO)])


def test_what_is_solved_for_has_a_domain_that_may_exclude_a_clause() -> None:
    """Where p(b) = p(a), p(c) = 1 - 2 p(a) is not negative."""
    space = Space(LETTERS, LETTERS, 0)
    row = Row("p", ())
    p = space.entries(row)
    (b,) = space.of_row(row)[1:]
    chart = Chart(space, {b: p[0]})
    last = chart.entries(row)[2]
    (below, _), (above, _) = clause(last, signs.NEGATIVE), clause(last, signs.POSITIVE)
    assert below == above
    assert joined(chart, [clause(last, signs.NEGATIVE)]) is None
    system = joined(chart, [clause(last, signs.POSITIVE)])
    assert system[above] == signs.POSITIVE


def test_a_sample_of_another_chart_may_have_a_pole() -> None:
    """There q(a) = p(a) / q(b), and q(b) is 0."""
    space = Space(LETTERS, LETTERS, 0)
    p, q = (space.entries(Row(letter, ())) for letter in "pq")
    (a, b), (of_a, of_b) = (space.of_row(Row(letter, ())) for letter in "pq")
    other = Chart(space, {of_a: polynomials.ratio(p[0], q[1])})
    given = {a: Fraction(1, 2), b: Fraction(1, 4), of_b: Fraction(0)}
    pole, wish = Sample(other, given, ""), clause(q[0], signs.POSITIVE)
    with pytest.raises(ZeroDivisionError):
        pole.value(of_a)
    found = Solver(Counts()).find(Chart(space, {}), [wish], [pole], "")
    assert isinstance(found, Sample)
    assert found.row(Row("q", ()))[0] > 0


def test_z3_leaves_ctrl_c_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would answer "unknown", and what was asked would go on without it."""
    import z3

    given = {}
    monkeypatch.setattr(z3.Solver, "set", lambda self, name, value: given.update({name: value}))
    _chart, asked = that(Fraction(1, 10), signs.ZERO)
    Solver(Counts())._model({asked[0]: asked[1]})
    assert given["ctrl_c"] is False
    assert given.keys() == {"rlimit", "timeout", "ctrl_c"}


def test_a_point_with_roots_is_approximated_until_it_fits() -> None:
    """p(a) q(b) = 1/10 where p(a) is a root: no rational fits, with however many digits."""
    asked = []

    class Root:
        def approx(self, digits: int) -> Any:
            asked.append(digits)
            return SimpleNamespace(numerator_as_long=lambda: 1, denominator_as_long=lambda: 3)

    model = SimpleNamespace(eval=lambda unknown, model_completion: Root())
    _, (polynomial, _) = that(Fraction(1, 10), signs.ZERO)
    variables = sorted(polynomial.variables)
    assert solver._rational(model, variables, variables, {polynomial: signs.ZERO}) == "open"
    assert asked == [digits for digits in (3, 9, 20, 60) for _ in variables]
