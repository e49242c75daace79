"""All rows are covered by regions, whatever is looked at in each.

From a sample, the conditions of its region are flipped one by one, in the order in which they
were met, keeping those before: what is not in the region has one of these. Each such piece is
empty, or has a sample whose region is cut off it in turn, or is open. A piece on which something
is 0 that is not 0 everywhere is looked at on a chart of its own.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.number import TieError
from specref.proofs.everywhere.polynomials import Polynomial, Product
from specref.proofs.everywhere.region import Region
from specref.proofs.everywhere.rows import Chart, Clause, Row, Sample, Space, clause
from specref.proofs.everywhere.slices import Piece
from specref.proofs.everywhere.solver import Solver, joined
from specref.vocabulary import Tokens

TRIES = 32


class OutOfTimeError(Exception):
    """The budget is spent."""


@dataclass
class Cover:
    """How all rows were covered, for what is asked of one text.

    Attributes
    ----------
    outcome : tuple of int
        The text.
    space : Space
        Whose variables the conditions have.
    regions, paths, flips, charts, open : int
        Regions with the paths behind them; conditions that were flipped; charts with an equation;
        pieces that are left open.
    mistakes : int
        The sum of the sizes of numbers told apart by residues.
    """

    outcome: Tokens
    space: Space
    regions: int = 0
    paths: int = 0
    flips: int = 0
    charts: int = 0
    open: int = 0
    mistakes: int = 0


Covered = TypeVar("Covered", bound=Cover)


class Covering(ABC, Generic[Covered]):
    """Covers the rows with regions, whatever is looked at in each.

    Parameters
    ----------
    space : Space
    solver : Solver
    budget : float
        Seconds of the processor, from now on; what is not done by then is open.
    """

    def __init__(self, space: Space, solver: Solver, budget: float) -> None:
        self.space, self.solver = space, solver
        self.deadline = time.process_time() + budget
        self.whole = Chart(space, {})
        self._charts: dict[tuple[tuple[int, str], ...], Chart] = {}

    @abstractmethod
    def look_at(self, piece: Piece, sample: Sample, found: Covered) -> Region:
        """The region of a sample of a piece."""

    def cover_rows(self, found: Covered, given: Sequence[Clause]) -> None:
        """Cover all rows at which some conditions hold."""
        samples: list[Sample] = []
        start = Sample(self.whole, {}, f"{self.space.seed} start")
        pending = [Piece(self.whole, tuple(given), start)]
        while pending:
            piece = pending.pop()
            if time.process_time() > self.deadline:
                found.open += 1
                continue
            try:
                pending += self._next(piece, found, samples)[::-1]
            except OutOfTimeError:
                found.open += 1

    def said(self, outcome: Tokens) -> list[Clause]:
        """That the target says a text with positive probability."""
        return [
            clause(self.whole.entries(Row("p", outcome[:index]))[token], signs.POSITIVE)
            for index, token in enumerate(outcome)
        ]

    def check(self) -> None:
        """Raise once the budget is spent."""
        if time.process_time() > self.deadline:
            raise OutOfTimeError

    def _next(self, piece: Piece, found: Covered, samples: list[Sample]) -> list[Piece]:
        """Cut a region off a piece; the pieces that are left."""
        together = joined(piece.chart, piece.clauses)
        if together is None:
            return []
        for polynomial, allowed in together.items():
            if allowed == signs.ZERO:
                others = [one for one in piece.clauses if one[0] != polynomial]
                return self._on(Piece(piece.chart, tuple(others)), polynomial, found)
        sample: Sample | str | None = piece.sample
        key = f"{self.space.seed} {found.outcome} {found.flips} {len(samples)}"
        if sample is None:
            sample = self.solver.find(piece.chart, piece.clauses, samples, key)
        apart: tuple[Clause, ...] = ()
        for attempt in range(TRIES):
            if sample == "none":
                return []
            if not isinstance(sample, Sample):
                found.open += 1
                return []
            try:
                region = self.look_at(piece, sample, found)
            except TieError as tie:
                powers = piece.chart.form(tie.number).powers
                zero = next(factor for factor in powers if sample.sign(factor) == 0)
                apart = (*apart, (zero, signs.NONZERO))
                sample = self.solver.find(
                    piece.chart, (*piece.clauses, *apart), [], f"{key} {attempt}"
                )
                if sample == "none":
                    beside = Piece(piece.chart, (*piece.clauses, apart[-1]))
                    return [*self._on(piece, zero, found), *([beside] if apart[1:] else [])]
                continue
            samples.append(sample)
            return self._left(piece, region, found)
        found.open += 1
        return []

    def region(self, chart: Chart, sample: Sample, clauses: Sequence[Clause]) -> Region:
        """The region of a sample, with no conditions yet but those given."""

        def excluded(clauses: Sequence[Clause]) -> bool:
            return self.solver.excluded(chart, clauses)

        return Region(chart, sample, clauses, excluded)

    def _left(self, piece: Piece, region: Region, found: Covered) -> list[Piece]:
        """What a region leaves of a piece."""
        before = self.region(piece.chart, region.sample, piece.clauses)
        kept = piece.clauses
        left: list[Piece] = []
        for polynomial, allowed in region.clauses:
            flipped = before.known(polynomial) & ~allowed
            if flipped:
                found.flips += 1
                left.append(Piece(piece.chart, (*kept, (polynomial, flipped))))
            kept = (*kept, (polynomial, allowed))
            before = self.region(piece.chart, region.sample, kept)
        return left

    def _on(self, piece: Piece, polynomial: Polynomial, found: Covered) -> list[Piece]:
        """The part of a piece on which a polynomial is 0, on charts of its own."""
        solutions = [
            (v, *both)
            for v in sorted(polynomial.variables)
            if (both := polynomials.linear_in(polynomial, v))
        ]
        if not solutions:
            zero = (polynomial, signs.ZERO)
            found.open += not self.solver.excluded(piece.chart, (*piece.clauses, zero))
            return []
        # A slope that is constant leaves no case in which it is 0; else the simplest.
        v, slope, rest = min(solutions, key=lambda one: _complexity(one[1]))
        value = {v: polynomials.ratio(polynomials.opposite(rest), slope)}
        left: list[Piece] = []
        apart: list[Clause] = []
        for factor in slope.powers:
            flat = (factor, signs.ZERO), (polynomial, signs.ZERO)
            left.append(Piece(piece.chart, (*piece.clauses, *apart, *flat)))
            apart.append((factor, signs.NONZERO))
        clauses = _moved((*piece.clauses, *apart), value)
        if clauses is not None:
            solved = {
                w: polynomials.replaced(form, value) for w, form in piece.chart.solved.items()
            }
            left.append(Piece(self._chart(solved | value, found), clauses))
        return left

    def _chart(self, solved: Mapping[int, Product], found: Covered) -> Chart:
        key = tuple(sorted((v, form.show(str)) for v, form in solved.items()))
        if key not in self._charts:
            self._charts[key] = Chart(self.space, solved)
        found.charts += 1
        return self._charts[key]


def _moved(clauses: Sequence[Clause], values: Mapping[int, Product]) -> tuple[Clause, ...] | None:
    """Clauses on a chart; None if one cannot hold there."""
    moved: list[Clause] = []
    for polynomial, allowed in clauses:
        if not polynomial.variables & values.keys():
            moved.append((polynomial, allowed))
            continue
        form = polynomials.substituted(polynomial, values)
        if form.powers:
            moved.append(clause(form, allowed))
        elif not signs.of((form.coefficient > 0) - (form.coefficient < 0)) & allowed:
            return None
    return tuple(moved)


def _complexity(slope: Product) -> tuple[int, int]:
    return len(slope.powers), sum(len(polynomial.terms) for polynomial in slope.powers)
