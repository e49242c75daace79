"""How the seconds of a run are spent: the share of each check, and batches that fit into it.

What is drawn depends on the seed alone; how much of it, on the machine.
"""

import time
from collections.abc import Mapping, Sequence

from specref.conformance.checks.check import Check
from specref.conformance.status import Stage
from specref.contracts.contract import Contract

DRAWING = (Stage.JOINT, Stage.STRATA, Stage.ITERATIONS, Stage.END_TO_END)


class Pace:
    """How long a run still takes, by how long its work has taken so far.

    Parameters
    ----------
    work : mapping
        {id of a check: its work}, in any unit; other checks are not counted.
    """

    def __init__(self, work: Mapping[str, float]) -> None:
        self.work, self.total = work, float(sum(work.values()))
        self.done = self.spent = 0.0
        self.started, self.of_this, self.drawn = time.perf_counter(), 0.0, 0

    def begin(self, id_: str) -> None:
        """Note that a check begins."""
        self.started, self.of_this, self.drawn = time.perf_counter(), self.work.get(id_, 0.0), 0

    def draw(self, trials: int) -> None:
        """Note that so much of the work of the check is done."""
        self.drawn += trials

    def end(self, *, whole: bool = True) -> None:
        """Note that the check has ended; by all of its work, or it says nothing of the rate."""
        if whole and self.of_this:
            self.done += self.of_this
            self.spent += time.perf_counter() - self.started
        elif self.of_this:
            self.total -= self.of_this
        self.of_this = 0.0

    @property
    def left(self) -> float | None:
        """Seconds; None while nothing is done, or where there is no work."""
        done, spent = self.done + min(self.drawn, self.of_this), self.spent
        spent += time.perf_counter() - self.started if self.of_this else 0.0
        return spent / done * (self.total - done) if done else None


class Clock:
    """Shares the seconds of a run among the checks that draw as much as they are let, by weight.

    What a check spends beyond its share is not counted, since laws are worked out before anything
    is drawn. What it leaves goes to those after it.

    Parameters
    ----------
    seconds : float or None
        None: each check draws what its power needs.
    asked : sequence of Check
    contract : Contract
    """

    def __init__(self, seconds: float | None, asked: Sequence[Check], contract: Contract) -> None:
        statistical = [one.statistical and one.is_for(contract) for one in asked]
        drawing = [
            one.stage in DRAWING and draws for one, draws in zip(asked, statistical, strict=True)
        ]
        self.weights = [
            one.weight * draws
            for one, draws in zip(asked, drawing if any(drawing) else statistical, strict=True)
        ]
        self.seconds, self.left = seconds, seconds or 0.0
        self.given: tuple[float, float] | None = None

    def share(self, number: int) -> float | None:
        """The seconds of a check, of those that are left for it and for the checks after it."""
        if self.seconds is None:
            return None
        if self.given:
            share, started = self.given
            self.left -= min(share, time.perf_counter() - started)
        share = self.left * (self.weights[number] or 1) / (sum(self.weights[number:]) or 1)
        self.given = (share, time.perf_counter()) if self.weights[number] else None
        return share

    def apart(self, number: int) -> float | None:
        """The seconds of a check if none of them waits for another."""
        if self.seconds is None:
            return None
        return self.seconds * (self.weights[number] or 1) / (sum(self.weights) or 1)
