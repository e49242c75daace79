"""All rows are covered by regions, for one completed outcome at a time.

A slice is the claim that a rule emits one completed outcome y with at least the target's
probability. From a sample, the conditions of its region are flipped one by one, in the order in
which they were met, keeping those before: what is not in the region has one of these. Each such
piece is empty, or has a sample whose region is cut off it in turn, or is open. A piece on which
something is 0 that is not 0 everywhere is looked at on a chart of its own.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from specref.algorithms import Step
from specref.chance import MAX_PATHS, OutsideChanceError, TooManyPathsError
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.number import Number, Reading, TieError
from specref.proofs.everywhere.polynomials import Polynomial, Product
from specref.proofs.everywhere.region import Region
from specref.proofs.everywhere.rows import Chart, Clause, Models, Row, Sample, Space, clause, conditions
from specref.proofs.everywhere.solver import Solver, joined
from specref.proofs.everywhere.walk import Choices, Path, paths, prefixes
from specref.vocabulary import Tokens

TRIES = 32


class LongerBlockError(Exception):
    """A block is longer than the outcome."""

    def __init__(self, length: int) -> None:
        super().__init__(f"a block has {length} tokens")
        self.length = length


class _OutOfTimeError(Exception):
    """The budget is spent."""


Equation: TypeAlias = tuple[int, Product]
"""A variable that is a function of the others."""
PASSED_ON = (
    *(TieError, LongerBlockError, _OutOfTimeError),
    *(TooManyPathsError, OutsideChanceError, TypeError),
)


@dataclass(frozen=True)
class Piece:
    """A part of the space of rows: a chart, and conditions on its free variables."""

    chart: Chart
    clauses: tuple[Clause, ...]
    sample: Sample | None = None


@dataclass(frozen=True)
class Lossy:
    """A region where the outcome is not emitted with the target's probability, or is not emitted.

    Attributes
    ----------
    outcome : tuple of int
    sample : Sample
        Rows at which that is so.
    gap : Fraction or None
        By how much its probability is too great there; None for a rule that raised.
    clauses : tuple
        The conditions of the region, with the chart's equations.
    error : Exception or None
        What the rule raised there.
    """

    outcome: Tokens
    sample: Sample
    gap: Fraction | None
    clauses: tuple[Clause, ...]
    equations: tuple[Equation, ...]
    error: Exception | None = None


@dataclass
class Slice:
    """What was found for one completed outcome.

    Attributes
    ----------
    outcome : tuple of int
    space : Space
        Whose variables the conditions have.
    regions, paths, flips, charts, open : int
        Regions with the paths behind them; conditions that were flipped; charts with an equation;
        pieces that are left open.
    lossy : list of Lossy
    lossless : list of (tuple of clauses, tuple of equations)
        The other regions.
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
    lossy: list[Lossy] = field(default_factory=list)
    lossless: list[tuple[tuple[Clause, ...], tuple[Equation, ...]]] = field(default_factory=list)
    mistakes: int = 0


class Slicer:
    """Covers the rows for outcomes of one rule.

    Parameters
    ----------
    step : callable
    space : Space
    lookahead : int
    length : int
        Of the longest outcome.
    solver : Solver
    budget : float
        Seconds of the processor, from now on; what is not done by then is open.
    choices : mapping
        {choices: block}, from any runs of the rule: where to look first.
    """

    def __init__(
        self,
        step: Step,
        space: Space,
        lookahead: int,
        length: int,
        solver: Solver,
        budget: float,
        choices: Mapping[Choices, Tokens],
    ) -> None:
        self.step, self.space, self.lookahead, self.length = step, space, lookahead, length
        self.solver, self.choices = solver, choices
        self.deadline = time.process_time() + budget
        self.whole = Chart(space, {})
        self._charts: dict[tuple[tuple[int, str], ...], Chart] = {}

    def cover(self, outcome: Tokens) -> Slice:
        """Cover all rows with regions, for one outcome."""
        found = Slice(outcome, self.space)
        hopeful = {
            prefix
            for choices, block in self.choices.items()
            if outcome[: len(block)] == block
            for prefix in prefixes(choices)
        }
        samples: list[Sample] = []
        # Where the target never says the outcome there is nothing to show.
        said = [
            clause(self.whole.entries(Row("p", outcome[:index]))[token], signs.POSITIVE)
            for index, token in enumerate(outcome)
        ]
        start = Sample(self.whole, {}, f"{self.space.seed} start")
        pending = [Piece(self.whole, tuple(said), start)]
        while pending:
            piece = pending.pop()
            if time.process_time() > self.deadline:
                found.open += 1
                continue
            try:
                pending += self._next(piece, found, hopeful, samples)[::-1]
            except _OutOfTimeError:
                found.open += 1
        return found

    def _next(
        self, piece: Piece, found: Slice, hopeful: set[Choices], samples: list[Sample]
    ) -> list[Piece]:
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
                region = self._run(piece, sample, found, hopeful)
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
            if region is None:  # equal at the sample, not everywhere: look at another one
                sample = self._elsewhere(piece, f"{key} elsewhere {attempt}")
                continue
            samples.append(sample)
            return self._left(piece, region, found)
        found.open += 1
        return []

    def _elsewhere(self, piece: Piece, key: str) -> Sample | str:
        return self.solver.find(piece.chart, piece.clauses, [], key)

    def _run(
        self, piece: Piece, sample: Sample, found: Slice, hopeful: set[Choices]
    ) -> Region | None:
        """The region of a sample; None if the law is right at it, but not around it."""
        reading = Reading(self.space.prime, sample.value)
        models = Models(piece.chart, reading)
        region = self._region(piece.chart, sample, piece.clauses)
        expected = _law(models, (), found.outcome)
        total = reading.constant(0)
        error = None
        try:
            for path in paths(self.step, models, self.lookahead, hopeful, self._check):
                found.paths += 1
                if found.paths > MAX_PATHS:
                    raise TooManyPathsError(f"more than {MAX_PATHS:,} paths for one outcome")
                if len(path.block) > self.length:
                    raise LongerBlockError(len(path.block))
                if found.outcome[: len(path.block)] == path.block:
                    weight = _weight(path, models, found.outcome)
                    region.add_path(path.events, piece.chart.form(weight))
                    total = total + weight
                    hopeful.update(prefixes(path.choices))
                    if total.residue == expected.residue and total.value == expected.value:
                        break
        except PASSED_ON:
            raise
        except Exception as raised:  # a rule that raises is not lossless there
            error = raised
            region.add_path(reading.events, polynomials.NOTHING)
        finally:
            found.mistakes += reading.mistakes
        lossy = total.residue != expected.residue or total.value != expected.value
        if lossy and error is None and total.value == expected.value:
            return None
        found.regions += 1
        conditions = (*piece.clauses, *region.clauses)
        equations = tuple(piece.chart.solved.items())
        if lossy:
            gap = None if error else total.value - expected.value
            found.lossy.append(Lossy(found.outcome, sample, gap, conditions, equations, error))
        else:
            found.lossless.append((conditions, equations))
        return region

    def _region(self, chart: Chart, sample: Sample, clauses: Sequence[Clause]) -> Region:
        def excluded(clauses: Sequence[Clause]) -> bool:
            return self.solver.excluded(chart, clauses)

        return Region(chart, sample, clauses, excluded)

    def _check(self) -> None:
        if time.process_time() > self.deadline:
            raise _OutOfTimeError

    def _left(self, piece: Piece, region: Region, found: Slice) -> list[Piece]:
        """What a region leaves of a piece."""
        before = self._region(piece.chart, region.sample, piece.clauses)
        kept = piece.clauses
        left: list[Piece] = []
        for polynomial, allowed in region.clauses:
            flipped = before.known(polynomial) & ~allowed
            if flipped:
                found.flips += 1
                left.append(Piece(piece.chart, (*kept, (polynomial, flipped))))
            kept = (*kept, (polynomial, allowed))
            before = self._region(piece.chart, region.sample, kept)
        return left

    def _on(self, piece: Piece, polynomial: Polynomial, found: Slice) -> list[Piece]:
        """The part of a piece on which a polynomial is 0, on charts of its own."""
        solutions = [
            (v, *both)
            for v in sorted(polynomial.variables)
            if (both := polynomials.linear_in(polynomial, v))
        ]
        if not solutions:
            found.open += 1
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

    def _chart(self, solved: Mapping[int, Product], found: Slice) -> Chart:
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


def _law(models: Models, context: Tokens, tokens: Tokens) -> Number:
    """The target's probability of some tokens after a context, up to EOS."""
    law = models.reading.constant(1)
    for index, token in enumerate(tokens):
        law = law * models.numbers(Row("p", (*context, *tokens[:index])))[token]
    return law


def _weight(path: Path, models: Models, outcome: Tokens) -> Number:
    weight = models.reading.constant(1)
    for factor in path.weights:
        weight = weight * factor
    return weight * _law(models, path.block, outcome[len(path.block) :])
