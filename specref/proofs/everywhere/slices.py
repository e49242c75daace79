"""All rows are covered by regions, for one completed outcome at a time.

A slice is the claim that a rule emits one completed outcome y with at least the target's
probability. From a sample, the conditions of its region are flipped one by one, in the order in
which they were met, keeping those before: what is not in the region has one of these. Each such
piece is empty, or has a sample whose region is cut off it in turn, or is open. A piece on which
something is 0 that is not 0 everywhere is looked at on a chart of its own.

Paths that begin differently often depend on different rows, so that the regions of all paths
together would be as many as the products of theirs. So a claim is taken apart. On the part D of
the piece where the conditions hold that several beginnings share, and where nothing that divides
their sums is 0, each beginning h has a claim of its own: on all of D, the paths that begin with h
emit y with at least the probability s_h, the function that they sum to at the sample. Regions of D
where they sum to another function are pieces that the whole claim is put to again. At all other
rows of D, y is emitted with at least the sum of all s_h, which is p(y).
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import takewhile
from typing import TypeAlias

from specref.algorithms import Step
from specref.chance import MAX_PATHS, OutsideChanceError, TooManyPathsError
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.number import Number, Reading, TieError
from specref.proofs.everywhere.polynomials import Polynomial, Product
from specref.proofs.everywhere.region import Event, Region
from specref.proofs.everywhere.rows import (
    Chart,
    Clause,
    Models,
    Row,
    Sample,
    Space,
    clause,
    conditions,
    size_of,
)
from specref.proofs.everywhere.simplex import homogeneous
from specref.proofs.everywhere.solver import Solver, joined
from specref.proofs.everywhere.walk import Choices, Path, paths, prefixes
from specref.vocabulary import Tokens

TRIES = 32


class LongerBlockError(Exception):
    """A block is longer than the outcome."""

    def __init__(self, length: int) -> None:
        super().__init__(length)  # as it is pickled
        self.length = length


class _OutOfTimeError(Exception):
    """The budget is spent."""


Equation: TypeAlias = tuple[int, Product]
PASSED_ON = (
    *(TieError, LongerBlockError, _OutOfTimeError),
    *(TooManyPathsError, OutsideChanceError, TypeError),
)


@dataclass(frozen=True)
class Claim:
    """That paths which begin with some choices emit an outcome with at least some probability.

    Attributes
    ----------
    outcome : tuple of int
    beginning : tuple of int
    law : Product
        The probability, a function of the rows.
    """

    outcome: Tokens
    beginning: Choices
    law: Product


@dataclass(frozen=True)
class Emission:
    """A path that leads to the outcome: its weight, with the target's law of what completes it."""

    choices: Choices
    events: list[Event]
    weight: Number


@dataclass(frozen=True)
class Covered:
    """Rows for which a claim is shown.

    Attributes
    ----------
    clauses : tuple of clauses
    equations : tuple of (int, Product)
        A variable that is a function of the others.
    sample : Sample
        One of them.
    parts : tuple of tuple of Covered
        The rows are those where these conditions hold which, for each part, are in one of it.
    """

    clauses: tuple[Clause, ...]
    equations: tuple[Equation, ...]
    sample: Sample
    parts: "tuple[tuple[Covered, ...], ...]" = ()


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
    error : str or None
        What the rule raised there.
    """

    outcome: Tokens
    sample: Sample
    gap: Fraction | None
    clauses: tuple[Clause, ...]
    equations: tuple[Equation, ...]
    error: str | None = None


@dataclass
class Slice:
    """What was found for one completed outcome.

    Attributes
    ----------
    outcome : tuple of int
    space : Space
        Whose variables the conditions have.
    regions, paths, flips, charts, open : int
        Sets of rows on which some paths run alike, with these paths; conditions that were
        flipped; charts with an equation; pieces that are left open.
    lossy : list of Lossy
    lossless : list of Covered
        Where it is shown.
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
    lossless: list[Covered] = field(default_factory=list)
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
        choices: Mapping[Choices, Tokens],
    ) -> None:
        self.step, self.space, self.lookahead, self.length = step, space, lookahead, length
        self.solver, self.choices = solver, choices
        self.deadline = 0.0
        self.whole = Chart(space, {})
        self._charts: dict[tuple[tuple[int, str], ...], Chart] = {}

    def cover(self, outcome: Tokens, budget: float) -> Slice:
        """Cover all rows with regions, for one outcome.

        Parameters
        ----------
        outcome : tuple of int
        budget : float
            Seconds of the processor; what is not done by then is open.
        """
        self.deadline = time.process_time() + budget
        found = Slice(outcome, self.space)
        hopeful = {
            prefix
            for choices, block in self.choices.items()
            if outcome[: len(block)] == block
            for prefix in prefixes(choices)
        }
        # Where the target never says the outcome there is nothing to show.
        said = [
            self.whole.entries(Row("p", outcome[:index]))[token]
            for index, token in enumerate(outcome)
        ]
        clauses = tuple(clause(form, signs.POSITIVE) for form in said)
        law = reduce(polynomials.times, said, polynomials.ONE)
        start = Sample(self.whole, {}, f"{self.space.seed} start")
        whole = Piece(self.whole, clauses, start)
        found.lossless += self._shown(Claim(outcome, (), law), [whole], found, hopeful, [])[0]
        return found

    def _shown(
        self,
        claim: Claim,
        pending: list[Piece],
        found: Slice,
        hopeful: set[Choices],
        samples: list[Sample],
    ) -> tuple[list[Covered], list[Piece]]:
        """Where a claim is shown in some pieces, and regions where it does not hold."""
        shown: list[Covered] = []
        apart: list[Piece] = []
        while pending:
            piece = pending.pop()
            if time.process_time() > self.deadline:
                found.open += 1
                continue
            try:
                left = self._next(piece, claim, found, hopeful, samples, shown, apart)
                pending += left[::-1]
            except _OutOfTimeError:
                found.open += 1
        return shown, apart

    def _next(
        self,
        piece: Piece,
        claim: Claim,
        found: Slice,
        hopeful: set[Choices],
        samples: list[Sample],
        shown: list[Covered],
        apart: list[Piece],
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
        key = f"{self.space.seed} {found.outcome} {claim.beginning} {found.flips} {len(samples)}"
        if sample is None:
            sample = self.solver.find(piece.chart, piece.clauses, samples, key)
        untied: tuple[Clause, ...] = ()
        for attempt in range(TRIES):
            if sample == "none":
                return []
            if not isinstance(sample, Sample):
                found.open += 1
                return []
            try:
                emissions = self._run(piece, sample, claim, found, hopeful)
            except TieError as tie:
                powers = piece.chart.form(tie.number).powers
                zero = next(factor for factor in powers if sample.sign(factor) == 0)
                untied = (*untied, (zero, signs.NONZERO))
                sample = self.solver.find(
                    piece.chart, (*piece.clauses, *untied), [], f"{key} {attempt}"
                )
                if sample == "none":
                    beside = Piece(piece.chart, (*piece.clauses, untied[-1]))
                    return [*self._on(piece, zero, found), *([beside] if untied[1:] else [])]
                continue
            if emissions is None:  # equal at the sample, not everywhere: look at another one
                sample = self._elsewhere(piece, f"{key} elsewhere {attempt}")
                continue
            samples.append(sample)
            if isinstance(emissions, Region):
                cut = (*piece.clauses, *emissions.clauses)
                apart.append(Piece(piece.chart, cut, sample))
                return self._left(piece, sample, emissions.clauses, found)
            here = Piece(piece.chart, piece.clauses, sample)
            covered, left = self._settled(here, claim, emissions, found, hopeful, samples)
            shown.append(covered)
            return left
        found.open += 1
        return []

    def _settled(
        self,
        piece: Piece,
        claim: Claim,
        emissions: Sequence[Emission],
        found: Slice,
        hopeful: set[Choices],
        samples: list[Sample],
    ) -> tuple[Covered, list[Piece]]:
        """Where a claim holds around the sample of a piece, and the pieces that are left."""
        chart, sample = piece.chart, piece.sample
        assert sample is not None
        equations = tuple(chart.solved.items())
        choices = [one.choices for one in emissions]
        depth = sum(
            1 for _ in takewhile(lambda here: len(set(here)) == 1, zip(*choices, strict=False))
        )
        groups: dict[Choices, list[Emission]] = {}
        for one in emissions:
            groups.setdefault(one.choices[: depth + 1], []).append(one)
        regions = {
            beginning: self._region(chart, sample, piece.clauses, group)
            for beginning, group in groups.items()
        }
        alone = [one for one in regions.values() if one.clauses]
        if len(alone) <= 1:
            found.regions += 1
            clauses = alone[0].clauses if alone else []
            return (
                Covered((*piece.clauses, *clauses), equations, sample),
                self._left(piece, sample, clauses, found),
            )
        times_met = Counter(p for one in alone for p in {p: None for p, _ in one.clauses})
        together = [c for one in alone for c in one.clauses if times_met[c[0]] > 1]
        laws = {
            beginning: chart.form(sum((one.weight for one in group[1:]), group[0].weight))
            for beginning, group in groups.items()
            if regions[beginning].clauses
        }
        above = self._region(chart, sample, piece.clauses, [])
        for polynomial, allowed in together:
            above.require(polynomial, allowed)
        for law in laws.values():
            for polynomial, exponent in law.powers.items():
                if exponent < 0 and above.known(polynomial) & signs.ZERO:
                    above.require(polynomial, signs.of(sample.sign(polynomial)))
        inside = Piece(chart, (*piece.clauses, *above.clauses), sample)
        left = self._left(piece, sample, above.clauses, found)
        parts = []
        for beginning, law in laws.items():
            part = Claim(claim.outcome, beginning, law)
            first, pending = self._settled(
                inside, part, groups[beginning], found, hopeful, samples
            )
            shown, apart = self._shown(part, pending[::-1], found, hopeful, samples)
            parts.append((first, *shown))
            left += apart
        return Covered(inside.clauses, equations, sample, tuple(parts)), left

    def _elsewhere(self, piece: Piece, key: str) -> Sample | str:
        return self.solver.find(piece.chart, piece.clauses, [], key)

    def _run(
        self, piece: Piece, sample: Sample, claim: Claim, found: Slice, hopeful: set[Choices]
    ) -> list[Emission] | Region | None:
        """The paths of a claim at a sample, or the region where it does not hold.

        None if it holds at the sample, but not around it.
        """
        reading = Reading(self.space.prime, sample.value)
        models = Models(piece.chart, reading)
        residue = claim.law.modulo(piece.chart.residue, self.space.prime)
        expected = reading.leaf(claim.law, residue, size_of(claim.law))
        total = reading.constant(0)
        emissions: list[Emission] = []
        events: list[Event] = []
        error = None
        run = self.step, models, self.lookahead, hopeful, self._check, claim.beginning
        try:
            for path in paths(*run):
                found.paths += 1
                if found.paths > MAX_PATHS:
                    raise TooManyPathsError(f"more than {MAX_PATHS:,} paths for one outcome")
                if len(path.block) > self.length:
                    raise LongerBlockError(len(path.block))
                if found.outcome[: len(path.block)] == path.block:
                    weight = _weight(path, models, found.outcome)
                    emissions.append(Emission(path.choices, path.events, weight))
                    total = total + weight
                    hopeful.update(prefixes(path.choices))
                    if total.residue == expected.residue and total.value == expected.value:
                        break
        except PASSED_ON:
            raise
        except Exception as raised:  # a rule that raises is not lossless there
            error, events = raised, reading.events
        finally:
            reading.mistakes += total.size + expected.size
            found.mistakes += reading.mistakes
        if total.residue == expected.residue and total.value == expected.value and not error:
            return emissions
        if error is None and total.value == expected.value:
            return None
        region = self._region(piece.chart, sample, piece.clauses, emissions)
        if error:
            region.add_path(events, polynomials.NOTHING)
        if not claim.beginning:
            found.regions += 1
            conditions = (*piece.clauses, *region.clauses)
            equations = tuple(piece.chart.solved.items())
            gap = None if error else total.value - expected.value
            said = repr(error) if error else None
            found.lossy.append(Lossy(found.outcome, sample, gap, conditions, equations, said))
        return region

    def _region(
        self,
        chart: Chart,
        sample: Sample,
        clauses: Sequence[Clause],
        emissions: Sequence[Emission],
    ) -> Region:
        def excluded(clauses: Sequence[Clause]) -> bool:
            return self.solver.excluded(chart, clauses)

        region = Region(chart, sample, clauses, excluded)
        for one in emissions:
            region.add_path(one.events, chart.form(one.weight))
        return region

    def _check(self) -> None:
        if time.process_time() > self.deadline:
            raise _OutOfTimeError

    def _left(
        self, piece: Piece, sample: Sample, clauses: Sequence[Clause], found: Slice
    ) -> list[Piece]:
        """What is left of a piece without the rows where all clauses hold."""
        before = self._region(piece.chart, sample, piece.clauses, [])
        kept = piece.clauses
        left: list[Piece] = []
        for polynomial, allowed in clauses:
            flipped = before.known(polynomial) & ~allowed
            if flipped:
                found.flips += 1
                left.append(Piece(piece.chart, (*kept, (polynomial, flipped))))
            kept = (*kept, (polynomial, allowed))
            before.require(polynomial, allowed)
        return left

    def _on(self, piece: Piece, polynomial: Polynomial, found: Slice) -> list[Piece]:
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

    def _corners(self, piece: Piece, polynomial: Polynomial) -> list[Piece]:
        """Where a polynomial is 0 that is a sum of products of entries: where one of them is."""
        terms = homogeneous(polynomial, self.space.row_of)
        assert terms is not None
        apart: list[Clause] = []
        left: list[Piece] = []
        for v in sorted(set(min(terms, key=lambda term: (len(set(term)), term)))):
            entry = polynomials.variable(v if v >= 0 else -1 - v)
            if v < 0:
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
