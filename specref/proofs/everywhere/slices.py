"""A rule emits a completed outcome with at least the target's probability, for all rows.

A slice is that claim for one outcome y; `covering` covers the rows with regions where it holds.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import takewhile
from typing import TypeAlias

from specref.algorithms.decoding import Step
from specref.chance import MAX_PATHS, OutsideChanceError, TooManyPathsError
from specref.models import Model
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.covering import At, Cover, Covering, Piece
from specref.proofs.everywhere.deadline import OutOfTimeError
from specref.proofs.everywhere.number import Number, Reading, TieError
from specref.proofs.everywhere.polynomials import Product
from specref.proofs.everywhere.pristine import Pristine
from specref.proofs.everywhere.region import Event, Region
from specref.proofs.everywhere.rows import Clause, Models, Sample, Space, clause, size_of
from specref.proofs.everywhere.solver import Solver
from specref.proofs.everywhere.walk import Choices, Path, paths, prefixes
from specref.vocabulary import Tokens


class LongerBlockError(Exception):
    """A block is longer than the outcome."""

    def __init__(self, length: int) -> None:
        super().__init__(length)  # as it is pickled
        self.length = length


Equation: TypeAlias = tuple[int, Product]
Plain: TypeAlias = Callable[[Model], Model]
"""Target -> the model that plain sampling draws from."""
PASSED_ON = (
    *(TieError, LongerBlockError, OutOfTimeError),
    *(TooManyPathsError, OutsideChanceError, TypeError),
)


@dataclass(frozen=True)
class Claim:
    """That paths which begin with some choices emit an outcome with at least some probability."""

    outcome: Tokens
    beginning: Choices
    law: Product


@dataclass(frozen=True)
class Emission:
    """A path that leads to the outcome: its weight, with the target's law of what completes it."""

    path: Path
    weight: Number


@dataclass(frozen=True)
class Covered:
    """Rows for which a claim is shown.

    * `equations` (tuple of (int, Product)): A variable that is a function of the others.
    * `parts`: The rows are those where these conditions hold which, for each part, are in one of
      it.
    """

    clauses: tuple[Clause, ...]
    equations: tuple[Equation, ...]
    sample: Sample
    parts: "tuple[tuple[Covered, ...], ...]" = ()


@dataclass(frozen=True)
class Lossy:
    """A region where the outcome is not emitted with the target's probability, or is not emitted.

    * `gap`: By how much its probability is too great there; None for a rule that raised.
    * `clauses`: The conditions of the region, with the chart's equations.
    """

    outcome: Tokens
    sample: Sample
    gap: Fraction | None
    clauses: tuple[Clause, ...]
    equations: tuple[Equation, ...]
    error: str | None = None


@dataclass
class Slice(Cover):
    """What was found for one completed outcome."""

    lossy: list[Lossy] = field(default_factory=list)
    lossless: list[Covered] = field(default_factory=list)


class Slicer(Covering):
    """Covers the rows for outcomes of one rule.

    * `length`: Of the longest outcome.
    * `choices`: {choices: block}, from any runs of the rule: where to look first.
    * `plain`: Target -> the model whose law the text should have; then the rule completes its
      blocks to `length` by itself. The target's own law by default.
    """

    def __init__(
        self,
        step: Step,
        space: Space,
        lookahead: int,
        length: int,
        solver: Solver,
        choices: Mapping[Choices, Tokens],
        pristine: Pristine,
        plain: Plain | None = None,
    ) -> None:
        super().__init__(space, solver)
        self.step, self.lookahead, self.length, self.choices = step, lookahead, length, choices
        self.pristine, self.plain = pristine, plain

    def cover(self, outcome: Tokens, budget: float) -> Slice:
        """Cover all rows with regions, for one outcome."""
        self.deadline = time.process_time() + budget
        found = Slice(outcome, self.space)
        hopeful = {
            prefix
            for choices, block in self.choices.items()
            if outcome[: len(block)] == block
            for prefix in prefixes(choices)
        }
        if self.plain is not None:
            self._cover_by_laws(self.plain, found, hopeful)
            return found
        # Where the target never says the outcome there is nothing to show.
        said = self.said(outcome)
        law = reduce(polynomials.times, said, polynomials.ONE)
        start = self.start([clause(form, signs.POSITIVE) for form in said])
        found.lossless += self._shown(Claim(outcome, (), law), [start], found, hopeful, [])[0]
        return found

    def _cover_by_laws(self, plain: Plain, found: Slice, hopeful: set[Choices]) -> None:
        """Cover the rows with regions where the law is one function; ask about each."""
        samples: list[Sample] = []

        def look(at: At) -> list[Piece]:
            law, clauses = self._law(at, plain, found)
            samples.append(at.sample)
            if law is not None:
                piece = Piece(at.chart, (*at.clauses, *clauses), at.sample)
                claim = Claim(found.outcome, (), law)
                found.lossless += self._shown(claim, [piece], found, hopeful, samples)[0]
            return self.without(at, clauses, found)

        self.cover_pieces([self.start(())], found, look, samples, "law")

    def _law(self, at: At, plain: Plain, found: Slice) -> tuple[Product | None, Sequence[Clause]]:
        """The probability of the outcome around a sample, and where it is that function.

        None where it is 0: there is nothing to show.
        """
        reading = Reading(self.space.prime, at.sample.value, found)
        model = plain(Models(at.chart, reading).model("p"))
        law: Number | None = reading.constant(1)
        for index, token in enumerate(found.outcome):
            entry = model.next_token(found.outcome[:index])[token]
            law = law * entry if entry > 0 else None
            if law is None:
                break
        if reading.raised:  # it may have been hidden
            raise reading.raised
        region = self.region(at)
        region.add_path(reading.events, polynomials.ONE)
        return None if law is None else at.chart.form(law), region.clauses

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

        def look(at: At) -> list[Piece] | None:
            emissions = self._run(at, claim, found, hopeful)
            if emissions is None:  # equal at the sample, not everywhere: look at another one
                return None
            samples.append(at.sample)
            if isinstance(emissions, Region):
                clauses = emissions.clauses
                apart.append(Piece(at.chart, (*at.clauses, *clauses), at.sample))
                return self.without(at, clauses, found)
            covered, left = self._settled(at, claim, emissions, found, hopeful, samples)
            shown.append(covered)
            return left

        self.cover_pieces(pending, found, look, samples, str(claim.beginning))
        return shown, apart

    def _settled(
        self,
        at: At,
        claim: Claim,
        emissions: Sequence[Emission],
        found: Slice,
        hopeful: set[Choices],
        samples: list[Sample],
    ) -> tuple[Covered, list[Piece]]:
        """Where a claim holds around a sample, and the pieces that are left."""
        equations = tuple(at.chart.solved.items())
        choices = [one.path.choices for one in emissions]
        depth = sum(
            1 for _ in takewhile(lambda here: len(set(here)) == 1, zip(*choices, strict=False))
        )
        groups: dict[Choices, list[Emission]] = {}
        for one in emissions:
            groups.setdefault(one.path.choices[: depth + 1], []).append(one)
        regions = {beginning: self._with(at, group) for beginning, group in groups.items()}
        alone = [one for one in regions.values() if one.clauses]
        if len(alone) <= 1:
            found.regions += 1
            clauses = alone[0].clauses if alone else []
            return (
                Covered((*at.clauses, *clauses), equations, at.sample),
                self.without(at, clauses, found),
            )
        times_met = Counter(p for one in alone for p in {p: None for p, _ in one.clauses})
        together = [c for one in alone for c in one.clauses if times_met[c[0]] > 1]
        laws = {
            beginning: at.chart.form(sum((one.weight for one in group[1:]), group[0].weight))
            for beginning, group in groups.items()
            if regions[beginning].clauses
        }
        above = self.region(at)
        for polynomial, allowed in together:
            above.require(polynomial, allowed)
        for law in laws.values():
            for polynomial, exponent in law.powers.items():
                if exponent < 0 and above.known(polynomial) & signs.ZERO:
                    above.require(polynomial, signs.of(at.sample.sign(polynomial)))
        inside = replace(at, clauses=(*at.clauses, *above.clauses))
        left = self.without(at, above.clauses, found)
        parts = []
        for beginning, law in laws.items():
            part = Claim(claim.outcome, beginning, law)
            first, pending = self._settled(
                inside, part, groups[beginning], found, hopeful, samples
            )
            shown, apart = self._shown(part, pending[::-1], found, hopeful, samples)
            parts.append((first, *shown))
            left += apart
        return Covered(inside.clauses, equations, at.sample, tuple(parts)), left

    def _run(
        self, at: At, claim: Claim, found: Slice, hopeful: set[Choices]
    ) -> list[Emission] | Region | None:
        """The paths of a claim at a sample, or the region where it does not hold.

        None if it holds at the sample, but not around it.
        """
        reading = Reading(self.space.prime, at.sample.value, found)
        models = Models(at.chart, reading)
        residue = claim.law.modulo(at.chart.residue, self.space.prime)
        expected = reading.leaf(claim.law, residue, size_of(claim.law))
        total = reading.constant(0)
        emissions: list[Emission] = []
        others: list[Path] = []
        events: list[Event] = []
        error = None
        run = self.step, models, self.lookahead, hopeful, self.check, claim.beginning
        try:
            for path in paths(*run):
                found.paths += 1
                if found.paths > MAX_PATHS:
                    raise TooManyPathsError(f"more than {MAX_PATHS:,} paths for one outcome")
                if len(path.block) > self.length:
                    raise LongerBlockError(len(path.block))
                if found.outcome[: len(path.block)] == path.block:
                    weight = _weight(path, models, found.outcome)
                    emissions.append(Emission(path, weight))
                    total = total + weight
                    found.mistakes += total.size + expected.size + 1
                    hopeful.update(prefixes(path.choices))
                    if total.residue == expected.residue and total.value == expected.value:
                        break
                else:
                    others.append(path)
        except PASSED_ON:
            raise
        except Exception as raised:  # a rule that raises is not lossless there
            error, events = raised, models.path.events
        holds = total.residue == expected.residue and total.value == expected.value and not error
        if holds or not found.lossy:  # where it does not hold, what a rule keeps may be why
            counted = [one.path for one in emissions] + ([] if holds else others)
            self.pristine.confirm(counted, models, self.lookahead, self.length)
        if holds:
            return emissions
        if error is None and total.value == expected.value:
            return None
        region = self._with(at, emissions)
        if error:
            region.add_path(events, polynomials.NOTHING)
        if not claim.beginning:
            found.regions += 1
            conditions = (*at.clauses, *region.clauses)
            equations = tuple(at.chart.solved.items())
            gap = None if error else total.value - expected.value
            said = repr(error) if error else None
            found.lossy.append(Lossy(found.outcome, at.sample, gap, conditions, equations, said))
        return region

    def _with(self, at: At, emissions: Sequence[Emission]) -> Region:
        """The region of a sample where some paths run alike."""
        region = self.region(at)
        for one in emissions:
            region.add_path(one.path.events, at.chart.form(one.weight))
        return region


def _weight(path: Path, models: Models, outcome: Tokens) -> Number:
    weight = models.reading.constant(1)
    for factor in path.weights:
        weight = weight * factor
    return weight * models.said(path.block, outcome[len(path.block) :])
