"""All rows are covered by regions, whatever is looked at in each.

From a sample, the conditions of its region are flipped one by one, in the order in which they
were met, keeping those before: what is not in the region has one of these. Each such piece is
empty, or has a sample whose region is cut off it in turn, or is open. A piece on which something
is 0 that is not 0 everywhere is looked at on a chart of its own.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.deadline import OutOfTimeError, until
from specref.proofs.everywhere.number import TieError
from specref.proofs.everywhere.polynomials import Polynomial, Product
from specref.proofs.everywhere.region import Region
from specref.proofs.everywhere.rows import Chart, Clause, Row, Sample, Space, clause, conditions
from specref.proofs.everywhere.signs import homogeneous
from specref.proofs.everywhere.solver import Solver, joined
from specref.vocabulary import Tokens

TRIES = 32
MOST_POINTS = 8


@dataclass(frozen=True)
class Piece:
    """A part of the space of rows: a chart, and conditions on its free variables."""

    chart: Chart
    clauses: tuple[Clause, ...]
    sample: Sample | None = None


@dataclass(frozen=True)
class At:
    chart: Chart
    clauses: tuple[Clause, ...]
    sample: Sample


@dataclass
class Cover:
    """How all rows were covered, for what is asked of one text.

    * `space`: Whose variables the conditions have.
    * `regions`, `paths`, `flips`, `charts`, `open`: Sets of rows on which some paths run alike,
      with these paths; conditions that were flipped; charts with an equation; pieces that are left
      open.
    * `mistakes`: The sum of the sizes of numbers told apart by residues.
    * `points`: Rows of pieces that are left open, where an equation is linear in no variable.
    """

    outcome: Tokens
    space: Space
    regions: int = 0
    paths: int = 0
    flips: int = 0
    charts: int = 0
    open: int = 0
    mistakes: int = 0
    points: list[Sample] = field(default_factory=list)


class Covering:
    """Covers the rows with regions.

    * `deadline`: In seconds of the processor; what is not done by then is open.
    """

    def __init__(self, space: Space, solver: Solver) -> None:
        self.space, self.solver = space, solver
        self.deadline = 0.0
        self.whole = Chart(space, {})
        self._charts: dict[tuple[tuple[int, str], ...], Chart] = {}

    def start(self, clauses: Sequence[Clause]) -> Piece:
        """All rows at which some conditions hold, to be looked at first."""
        return Piece(
            self.whole, tuple(clauses), Sample(self.whole, {}, f"{self.space.seed} start")
        )

    def cover_pieces(
        self,
        pending: list[Piece],
        found: Cover,
        look: Callable[[At], list[Piece] | None],
        samples: Sequence[Sample],
        name: str,
    ) -> None:
        """Cut regions off pieces until nothing is left.

        * `look`: Looks at a sample of a piece: the pieces that its region leaves; None if another
          sample is to be looked at.
        * `samples`: Those that were looked at; the caller adds to it.
        * `name`: Of what is random.
        """
        while pending:
            piece = pending.pop()
            try:
                with until(self.deadline):
                    self.check()
                    pending += self._next(piece, found, look, samples, name)[::-1]
            except OutOfTimeError:
                found.open += 1

    def said(self, outcome: Tokens) -> list[Product]:
        """The target's probabilities of the tokens of a text."""
        return [
            self.whole.entries(Row("p", outcome[:index]))[token]
            for index, token in enumerate(outcome)
        ]

    def check(self) -> None:
        if time.process_time() > self.deadline:
            raise OutOfTimeError

    def region(self, at: At) -> Region:
        """The region of a sample, with no conditions yet but those of its piece."""

        def excluded(clauses: Sequence[Clause]) -> bool:
            return self.solver.excluded(at.chart, clauses)

        return Region(at.chart, at.sample, at.clauses, excluded)

    def without(self, at: At, clauses: Sequence[Clause], found: Cover) -> list[Piece]:
        """What is left of a piece without the rows where all clauses hold."""
        before = self.region(at)
        kept = at.clauses
        left: list[Piece] = []
        for polynomial, allowed in clauses:
            flipped = before.known(polynomial) & ~allowed
            if flipped:
                found.flips += 1
                left.append(Piece(at.chart, (*kept, (polynomial, flipped))))
            kept = (*kept, (polynomial, allowed))
            before.require(polynomial, allowed)
        return left

    def _next(
        self,
        piece: Piece,
        found: Cover,
        look: Callable[[At], list[Piece] | None],
        samples: Sequence[Sample],
        name: str,
    ) -> list[Piece]:
        """Cut a region off a piece; the pieces that are left."""
        together = joined(piece.chart, piece.clauses)
        if together is None:
            return []
        for polynomial, allowed in together.items():
            if allowed == signs.ZERO:
                others = [one for one in piece.clauses if one[0] != polynomial]
                return self._on(replace(piece, clauses=tuple(others)), polynomial, found)
        sample: Sample | str | None = piece.sample
        key = f"{self.space.seed} {found.outcome} {name} {found.flips} {len(samples)}"
        if sample is None:
            sample = self.solver.find(piece.chart, piece.clauses, samples, key)
        untied: tuple[Clause, ...] = ()
        for attempt in range(TRIES):
            if sample == "none":
                return []
            if not isinstance(sample, Sample):
                break
            try:
                left = look(At(piece.chart, piece.clauses, sample))
            except TieError as tie:
                # Numbers know it; through a frame with an array of them no cycle is ever freed.
                tie.__traceback__ = None
                powers = piece.chart.form(tie.number).powers
                zero = next(factor for factor in powers if sample.sign(factor) == 0)
                untied = (*untied, (zero, signs.NONZERO))
                apart = (*piece.clauses, *untied)
                sample = self.solver.find(piece.chart, apart, [], f"{key} {attempt}")
                if sample == "none":
                    beside = Piece(piece.chart, (*piece.clauses, untied[-1]))
                    return [*self._on(piece, zero, found), *([beside] if untied[1:] else [])]
                continue
            if left is not None:
                return left
            other = f"{key} elsewhere {attempt}"
            sample = self.solver.find(piece.chart, piece.clauses, [], other)
        found.open += 1
        return []

    def _on(self, piece: Piece, polynomial: Polynomial, found: Cover) -> list[Piece]:
        """The part of a piece on which a polynomial is 0, on charts of its own."""
        solutions = [
            (v, *both)
            for v in sorted(polynomial.variables)
            if (both := polynomials.linear_in(polynomial, v))
        ]
        whole = self.space.signs(polynomial)
        if whole != signs.ANY and all(slope.powers for _, slope, _ in solutions):
            return self._corners(piece, polynomial)
        if not solutions:
            asked = (*piece.clauses, (polynomial, signs.ZERO))
            if not self.solver.excluded(piece.chart, asked):
                found.open += 1
                self._note_point(piece.chart, asked, found)
            return []
        # A slope that is constant leaves no case in which it is 0; else the simplest, and among
        # these a variable of a late row, which other conditions are unlikely to have.
        v, slope, rest = min(
            solutions,
            key=lambda one: (*_complexity(one[1]), -len(self.space.variables[one[0]][0].context)),
        )
        value = {v: polynomials.ratio(polynomials.opposite(rest), slope)}
        left: list[Piece] = []
        apart: list[Clause] = []
        for factor in slope.powers:
            flat = (factor, signs.ZERO), (polynomial, signs.ZERO)
            left.append(Piece(piece.chart, (*piece.clauses, *apart, *flat)))
            apart.append((factor, signs.NONZERO))
        solved = {w: polynomials.replaced(form, value) for w, form in piece.chart.solved.items()}
        chart = self._chart(solved | value, found)
        clauses = _moved(chart, (*piece.clauses, *apart), value)
        if clauses is not None:
            left.append(Piece(chart, clauses))
        return left

    def _note_point(self, chart: Chart, clauses: Sequence[Clause], found: Cover) -> None:
        """Keep rows of a piece that is left open, if z3 has any that are rational."""
        if len(found.points) < MOST_POINTS:
            key = f"{self.space.seed} {found.outcome} point {found.open}"
            point = self.solver.find(chart, clauses, [], key)
            if isinstance(point, Sample):
                found.points.append(point)

    def _corners(self, piece: Piece, polynomial: Polynomial) -> list[Piece]:
        """Where a polynomial is 0 that is a sum of products of entries: where one of them is."""
        terms = homogeneous(polynomial, self.space.row_of)
        assert terms is not None
        apart: list[Clause] = []
        left: list[Piece] = []
        for v in sorted(set(min(terms, key=lambda term: (len(set(term)), term)))):
            if v >= 0:
                entry = polynomials.variable(v)
            else:
                row = self.space.row_of(-1 - v)
                others = (w for w in sorted(polynomial.variables) if self.space.row_of(w) == row)
                entry = reduce(
                    polynomials.difference, map(polynomials.variable, others), polynomials.ONE
                )
            (factor,) = entry.powers
            zeros = (factor, signs.ZERO), (polynomial, signs.ZERO)
            left.append(Piece(piece.chart, (*piece.clauses, *apart, *zeros)))
            apart.append((factor, signs.NONZERO))
        return left

    def _chart(self, solved: Mapping[int, Product], found: Cover) -> Chart:
        key = tuple(sorted((v, form.show(str)) for v, form in solved.items()))
        if key not in self._charts:
            self._charts[key] = Chart(self.space, solved)
        found.charts += 1
        return self._charts[key]


def _moved(
    chart: Chart, clauses: Sequence[Clause], values: Mapping[int, Product]
) -> tuple[Clause, ...] | None:
    """Clauses on a chart, by the factors of what they become there; None if one cannot hold."""
    known: dict[Polynomial, int] = {}
    pending: list[tuple[Product, int]] = []
    for polynomial, allowed in clauses:
        if polynomial.variables & values.keys():
            pending.append((polynomials.substituted(polynomial, values), allowed))
        else:
            known[polynomial] = known.get(polynomial, signs.ANY) & allowed

    def signs_of(factor: Polynomial) -> int:
        return known.get(factor, signs.ANY) & chart.known(factor)

    before = -1
    while len(pending) != before:
        before, waiting = len(pending), pending
        pending = []
        for form, allowed in waiting:
            found = conditions(form, allowed, signs_of)
            if found is None:
                return None
            for factor, possible in found.clauses:
                known[factor] = known.get(factor, signs.ANY) & possible
            if found.rest:
                pending.append(found.rest)
    return (*known.items(), *(clause(form, allowed) for form, allowed in pending))


def _complexity(slope: Product) -> tuple[int, int]:
    return len(slope.powers), sum(len(polynomial.terms) for polynomial in slope.powers)
