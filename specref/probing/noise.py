"""Exponential noise by search: which numbers decide the outcome, and with what weights.

If an outcome depends on noise E only through argmin E / w, then two arrivals tie where their
noise has the ratio of their weights; all other noise is made late meanwhile.
"""

from collections.abc import Callable
from dataclasses import dataclass

from specref.probing.points import Point, Run
from specref.probing.program import Outcome

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
