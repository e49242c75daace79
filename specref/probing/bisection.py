"""Probing by search: outcomes are compared, and thresholds between them bisected.

The uniforms of the code span a cube; boxes whose probes disagree are cut in two at a
threshold between two of them. Within a box, exponential noise is resolved as one race: if an
outcome depends on noise E only through argmin E / w, then two arrivals tie where their noise has
the ratio of their weights; all other noise is made late meanwhile.
Cells that no probe hits are not found: every result rests on `ASSUMPTION`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from specref.probing.points import PROBES, Box, Point, Run
from specref.probing.program import Outcome, Program
from specref.probing.source import BOXES, READINGS, CannotInterpretError, Given
from specref.probing.tracing import Cell

NARROW = 2.0**-45
NARROWEST_BOX = 2.0**-28
RACE_ERROR = 2.0**-38
MOST_THRESHOLDS = 256
NOISE_STRIDE = 4
EDGES = tuple(2.0**-power for power in (8, 11, 14, 17))
SHIFTS = (2.0**-10, -(2.0**-11), 2.0**-12, -(2.0**-13))
ASSUMPTION = (
    f"thresholds were searched for: where {PROBES} stratified probes of a box agree, and others "
    "towards the ends of each number, all of the box is taken to agree"
)


EARLY, LATE = 2.0**-40, 2.0**40
STEPS = 80


class NoRaceError(Exception):
    """The noise is not used in a single race: `args[0]` is the call."""


@dataclass(frozen=True)
class Contender:
    """Noise that may win: its request, its weight, and a run in which it wins."""

    index: int
    weight: float
    run: Run

    @property
    def bits(self) -> int:
        return self.run.requests[self.index].bits


@dataclass(frozen=True)
class Race:
    """The contenders of a race; only one if noise decides nothing."""

    contenders: tuple[Contender, ...]

    def winner(self, point: Point) -> Outcome:
        """The outcome that the race predicts at a point."""
        first = min(self.contenders, key=lambda one: point.arrival(one.index) / one.weight)
        return first.run.outcome

    def weighted_runs(self) -> list[tuple[Run, float]]:
        """A run for each winner, and its probability."""
        total = sum(one.weight for one in self.contenders)
        return [(one.run, one.weight / total) for one in self.contenders]


def find_race(run: Callable[[Point], Run], base: Run) -> Race:
    """The race that the noise of a run decides.

    * raises `NoRaceError`: More than one number decides when all noise is equal, so it is not one
      race.
    """
    noise = base.indices("exponential")
    late = [i for i in noise if _differs(run, base, {i: LATE})]
    if not late:
        return Race((Contender(-1, 1.0, base),))
    if len(late) > 1:
        raise NoRaceError(base.requests[late[1]].call)
    favourite = late[0]
    rivals = [i for i in noise if i != favourite and _differs(run, base, {i: EARLY})]
    found = [Contender(favourite, 1.0, base)]
    for rival in rivals:
        others = {i: LATE for i in rivals if i != rival}
        found.append(_weighed(run, rival, base.point.with_noise(others)))
    return Race(tuple(found))


def _differs(run: Callable[[Point], Run], base: Run, noise: dict[int, float]) -> bool:
    return run(base.point.with_noise(noise)).outcome != base.outcome


def _weighed(run: Callable[[Point], Run], rival: int, point: Point) -> Contender:
    first = run(point.with_noise({rival: EARLY}))
    low, high = -40.0, 40.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        won = run(point.with_noise({rival: 2.0**middle})).outcome == first.outcome
        low, high = (middle, high) if won else (low, middle)
    return Contender(rival, 2.0**low, first)


class Cut(NamedTuple):
    """A request and a threshold at which to cut a box."""

    request: int
    threshold: float


class NoBoxesError(Exception):
    """The cells of the numbers of one call are not boxes: `args[0]` is the call."""


def searched_cells(program: Program) -> list[Cell]:
    """The cells of a program, from its outcomes.

    * raises `CannotInterpretError`: A call cannot be interpreted, or the cells of its numbers are
      neither boxes nor a race.
    """
    try:
        return list(Search(program).cells())
    except NoBoxesError as error:
        call, readings = error.args[0], tuple(READINGS)
    except NoRaceError as error:
        call, readings = error.args[0], (BOXES,)
    for reading in readings:
        try:
            return list(Search(program, {call.site: reading}).cells())
        except (NoBoxesError, NoRaceError):
            continue
    raise CannotInterpretError(f"{call}: its cells are neither boxes nor a race")


@dataclass
class Search:
    """A search for the cells of a program.

    * `raced`: {call site: reading}, as for `Given`.
    * `cuts`: The thresholds found so far.
    """

    program: Program
    raced: dict[str, str] = field(default_factory=dict)
    cuts: set[tuple[int, int]] = field(default_factory=set)

    def cells(self) -> Iterator[Cell]:
        """Cut boxes until all runs inside each box agree."""
        pending: list[Box] = [{}]
        while pending:
            box = pending.pop()
            found = self._examined(box)
            if isinstance(found, Cut):
                low, high = box.get(found.request, (0.0, 1.0))
                pending.append({**box, found.request: (found.threshold, high)})
                pending.append({**box, found.request: (low, found.threshold)})
            else:
                yield from _cells_of(box, found)

    def run(self, point: Point) -> Run:
        source = Given(point.answer, self.raced)
        outcome = self.program(source)
        return Run(point, outcome, tuple(source.requests))

    def _examined(self, box: Box) -> Cut | Race:
        base = self.run(Point(box))
        if self.run(base.point).outcome != base.outcome:
            raise CannotInterpretError("randomness that is not intercepted: equal numbers differ")
        for point in _probes(base):
            other = self.run(point)
            if other.signature != base.signature:
                return self._between(base, other)
        race = find_race(self.run, base)
        return self._contradiction(base, race) or race

    def _contradiction(self, base: Run, race: Race) -> Cut | None:
        """A cut between two points with equal noise, if the race does not explain all outcomes."""
        for probe in range(1, PROBES, NOISE_STRIDE) if base.indices("exponential") else ():
            noisy = self.run(Point(base.point.box, probe, probe))
            if noisy.outcome == race.winner(noisy.point):
                continue
            calm = self.run(Point(base.point.box, 0, probe))
            if calm.outcome == noisy.outcome:
                call = base.requests[base.indices("exponential")[0]].call
                raise NoRaceError(call)
            return self._between(calm, noisy)
        return None

    def _between(self, base: Run, other: Run) -> Cut:
        """A threshold between two points, found by changing one request after the other."""
        point = base.point
        for index in range(max(len(base.requests), len(other.requests))):
            there = point.with_uniform(index, other.point.uniform(index))
            if self.run(there).signature != base.signature:
                return self._bisected(base, point, index, there.uniform(index))
            point = there
        raise CannotInterpretError("randomness that is not intercepted: equal numbers differ")

    def _bisected(self, base: Run, point: Point, index: int, outside: float) -> Cut:
        inside = point.uniform(index)
        while abs(outside - inside) > NARROW:
            middle = (inside + outside) / 2
            same = self.run(point.with_uniform(index, middle)).signature == base.signature
            inside, outside = (middle, outside) if same else (inside, middle)
        cut = Cut(index, (inside + outside) / 2)
        if not any(self._stays(point, index, inside, outside, shift) for shift in SHIFTS):
            raise NoBoxesError(base.requests[index].call)
        self.cuts.add((index, round(cut.threshold * 2**30)))
        low, high = point.box.get(index, (0.0, 1.0))
        thresholds = sum(one == index for one, _ in self.cuts)
        if high - low < NARROWEST_BOX or thresholds > MOST_THRESHOLDS:
            raise NoBoxesError(base.requests[index].call)
        return cut

    def _stays(
        self, point: Point, index: int, inside: float, outside: float, shift: float
    ) -> bool:
        """Whether a threshold stays in place when all other numbers move a little."""
        numbers = range(len(self.run(point).requests))
        moved = point.shifted({other for other in numbers if other != index}, shift)
        ends = inside, outside
        before, after = (
            [self.run(one.with_uniform(index, end)).signature for end in ends]
            for one in (point, moved)
        )
        return before == after


def _probes(base: Run) -> Iterator[Point]:
    """Points of a box: spread evenly, towards the ends of each number, in each branch."""
    box = base.point.box
    yield from (Point(box, probe) for probe in range(1, PROBES))
    for index in base.indices("uniform", "categorical", "seed"):
        low, high = box.get(index, (0.0, 1.0))
        for share in (*EDGES, *(1 - edge for edge in EDGES)):
            yield base.point.with_uniform(index, low + (high - low) * share)
        start = 0.0
        for weight in base.requests[index].weights:
            first, last = max(start, low), min(start + weight, high)
            if last - first > 4 * NARROW:
                yield base.point.with_uniform(index, (first + last) / 2)
            start += weight


def _cells_of(box: Box, race: Race) -> Iterator[Cell]:
    volume = math.prod(high - low for low, high in box.values())
    rounding = sum(2.0**-one.bits for one in race.contenders if len(race.contenders) > 1)
    error = NARROW * len(box) + RACE_ERROR * (len(race.contenders) - 1) + rounding
    for run, share in race.weighted_runs():
        yield Cell(run.outcome, volume * share, run.numbers(), run.requests, error)
