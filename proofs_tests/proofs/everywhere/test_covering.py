"""Regions cover all rows, whatever is asked of them: no test is statistical."""

import random
from fractions import Fraction

from specref import Vocabulary
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.covering import Cover, Covering
from specref.proofs.everywhere.region import Region
from specref.proofs.everywhere.rows import Clause, Row, Sample, Space
from specref.proofs.everywhere.slices import Piece
from specref.proofs.everywhere.solver import Counts, Solver

LETTERS = Vocabulary("ab")


class Recording(Covering[Cover]):
    """Regions by the signs of p(a) - q(a), of p(a) - 1/3, and of p(a) q(a) - 1/4."""

    def __init__(self, budget: float = 60) -> None:
        space = Space(LETTERS, LETTERS, 0)
        super().__init__(space, Solver(Counts()), budget)
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

    def look_at(self, piece: Piece, sample: Sample, found: Cover) -> Region:
        found.regions += 1
        region = self.region(piece.chart, sample, piece.clauses)
        for polynomial in self.asked:
            if polynomial.variables & piece.chart.solved.keys():
                continue
            region.require(polynomial, signs.of(sample.sign(polynomial)) | signs.ZERO)
        equations = [(v, form) for v, form in piece.chart.solved.items()]
        self.regions.append(((*piece.clauses, *region.clauses), equations))
        return region


def test_every_row_is_in_a_region() -> None:
    covering = Recording()
    found = Cover((), covering.space)
    covering.cover_rows(found, [])
    assert found.open == 0
    assert found.regions >= 5
    rng = random.Random(3)
    for _ in range(200):
        drawn = {
            row: rng.choice([Fraction(0), Fraction(1), Fraction(1, 3), Fraction(rng.random())])
            for row in (Row("p", ()), Row("q", ()))
        }

        def value(v: int, drawn=drawn) -> Fraction:
            return drawn[covering.space.variables[v][0]]

        assert any(
            all(form.at(value) == value(v) for v, form in equations)
            and all(
                signs.of((x > 0) - (x < 0)) & allowed
                for polynomial, allowed in clauses
                for x in [polynomial.at(value)]
            )
            for clauses, equations in covering.regions
        )


def test_without_time_everything_is_open() -> None:
    covering = Recording(budget=1e-9)
    found = Cover((), covering.space)
    covering.cover_rows(found, [])
    assert (found.regions, found.open) == (0, 1)
