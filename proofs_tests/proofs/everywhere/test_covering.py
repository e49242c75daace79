"""Regions cover all rows, whatever is asked of them: no test is statistical."""

import random
import time
from fractions import Fraction

from specref import Vocabulary
from specref.proofs.everywhere import covering, polynomials, signs
from specref.proofs.everywhere.covering import At, Cover, Covering, Piece
from specref.proofs.everywhere.rows import Chart, Clause, Row, Sample, Space
from specref.proofs.everywhere.solver import Counts, Solver

LETTERS = Vocabulary("ab")


class Recording(Covering):
    """Regions by the signs of p(a) - q(a), of p(a) - 1/3, and of p(a) q(a) - 1/4."""

    def __init__(self, budget: float = 60) -> None:
        space = Space(LETTERS, LETTERS, 0)
        super().__init__(space, Solver(Counts()))
        self.deadline = time.process_time() + budget
        p, q = (space.entries(Row(letter, ()))[0] for letter in "pq")
        third, quarter = (polynomials.constant(Fraction(1, size)) for size in (3, 4))
        self.asked = [
            polynomials.sign_polynomial(form)[0]
            for form in (
                polynomials.difference(p, q),
                polynomials.difference(p, third),
                polynomials.difference(polynomials.times(p, q), quarter),
            )
        ]
        self.regions: list[tuple[Clause, ...]] = []

    def cover(self) -> Cover:
        found, samples = Cover((), self.space), list[Sample]()

        def look(at: At) -> list[Piece]:
            found.regions += 1
            samples.append(at.sample)
            region = self.region(at)
            for polynomial in self.asked:
                if not polynomial.variables & at.chart.solved.keys():
                    region.require(polynomial, signs.of(at.sample.sign(polynomial)) | signs.ZERO)
            equations = list(at.chart.solved.items())
            self.regions.append(((*at.clauses, *region.clauses), equations))
            return self.without(at, region.clauses, found)

        self.cover_pieces([self.start([])], found, look, samples, "")
        return found


def test_every_row_is_in_a_region() -> None:
    recording = Recording()
    found = recording.cover()
    assert found.open == 0
    assert found.regions >= 5
    rng = random.Random(3)
    for _ in range(200):
        drawn = {
            row: rng.choice([Fraction(0), Fraction(1), Fraction(1, 3), Fraction(rng.random())])
            for row in (Row("p", ()), Row("q", ()))
        }

        def value(v: int, drawn=drawn) -> Fraction:
            return drawn[recording.space.variables[v][0]]

        assert any(
            all(form.at(value) == value(v) for v, form in equations)
            and all(
                signs.of((x > 0) - (x < 0)) & allowed
                for polynomial, allowed in clauses
                for x in [polynomial.at(value)]
            )
            for clauses, equations in recording.regions
        )


def test_without_time_everything_is_open() -> None:
    found = Recording(budget=1e-9).cover()
    assert (found.regions, found.open) == (0, 1)


def test_a_condition_that_no_entry_meets_where_an_equation_holds_leaves_nothing() -> None:
    space = Space(LETTERS, LETTERS, 0)
    p, q = (space.entries(Row(letter, ()))[0] for letter in "pq")
    product, _ = polynomials.sign_polynomial(polynomials.times(p, q))
    (fixed,) = polynomials.sign_polynomial(q)[0].variables
    values = {fixed: polynomials.constant(Fraction(1, 3))}

    def moved(allowed: int) -> tuple[Clause, ...] | None:
        return covering._moved(Chart(space, {}), [(product, allowed)], values)

    below = signs.opposite(signs.of(1))
    assert moved(below) is None
    assert moved(signs.of(1)) == ((polynomials.sign_polynomial(p)[0], signs.of(1)),)


def test_a_product_of_entries_is_zero_where_one_of_them_is() -> None:
    """Of p(a) q(a) and of p(b) q(a), whose p(b) is 1 - p(a): each piece excludes those before."""
    recording = Recording()
    p, q = (recording.space.entries(Row(letter, ()))[0] for letter in "pq")
    for entry in (p, polynomials.difference(polynomials.ONE, p)):
        product, _ = polynomials.sign_polynomial(polynomials.times(entry, q))
        first, second = (polynomials.sign_polynomial(one)[0] for one in (entry, q))
        pieces = recording._corners(recording.start([]), product)
        zero = (product, signs.ZERO)
        expected = [
            {(first, signs.ZERO), zero},
            {(first, signs.NONZERO), (second, signs.ZERO), zero},
        ]
        assert [set(one.clauses) for one in pieces] == expected


def test_an_equation_is_solved_for_a_variable_whose_slope_is_no_zero() -> None:
    """Of p(a) + p(a|a) q(a|a) = 1/2, which is linear in three, p(a) has the slope 1."""
    recording = Recording()
    space = recording.space
    first, *later = (space.entries(Row(*row))[0] for row in (("p", ()), ("p", (0,)), ("q", (0,))))
    half = polynomials.difference(first, polynomials.constant(Fraction(1, 2)))
    form = polynomials.plus(polynomials.times(*later), half)
    (piece,) = recording._on(
        recording.start([]), polynomials.sign_polynomial(form)[0], Cover((), space)
    )
    (solved,) = piece.chart.solved
    assert space.variables[solved] == (Row("p", ()), 0)
