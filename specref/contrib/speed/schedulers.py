"""Schedulers: how many drafts of each request are verified in the next pass.

They see what is believed before the drafts are drawn. A real one may learn it while drafting, and
then losslessness is at stake: whether draft k is verified must not depend on draft k itself.
`Fixed`, `StopAtConfidence`, `FirstDecline` and `TopDrafts` can be run that way; `Scan` and
`Priced` look ahead, and keep the target's law only if no belief depends on the drafts.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from specref.algorithms.lookahead import positions
from specref.arrays import Floats, Integers
from specref.contrib.speed.traces import Iterations
from specref.theory.goodput import checked_latencies


@dataclass(frozen=True, eq=False)
class Profile:
    """The times of passes and drafts.

    Parameters
    ----------
    latencies : array_like, shape (tokens + 1,)
        Entry n is the time of a target pass over n tokens: one of each request, and the
        drafts that are verified. Non-decreasing.
    draft_cost : float
        The time of one draft, >= 0.

    Raises
    ------
    ValueError
        As `speed.latency.checked_latencies`, or `draft_cost` is negative or not finite.

    Examples
    --------
    >>> Profile([0, 1, 1, 2], draft_cost=0.25).time(np.array([3]), np.array([2]))
    array([2.5])
    """

    latencies: ArrayLike
    draft_cost: float = 0.0

    def __post_init__(self) -> None:
        latencies = np.asarray(self.latencies, dtype=np.float64)
        checked_latencies(np.atleast_1d(latencies).tolist())
        if not 0 <= self.draft_cost < np.inf:
            raise ValueError(f"draft_cost = {self.draft_cost}: expected a number >= 0")
        object.__setattr__(self, "latencies", latencies)

    def time(self, tokens: Integers, drafted: Integers) -> Floats:
        """The time of passes over so many tokens, and of so many drafts."""
        latencies = np.asarray(self.latencies)
        most = int(tokens.max(initial=0))
        if most >= len(latencies):
            raise ValueError(f"latencies end at {len(latencies) - 1} tokens: expected {most}")
        times: Floats = latencies.take(tokens) + self.draft_cost * drafted
        return times


class Schedule(NamedTuple):
    """Verified lengths, shape (trials, steps, batch), and drafts, shape (trials, steps)."""

    verified: Integers
    drafted: Integers


class Scheduler(Protocol):
    """A function from iterations to a schedule."""

    def __call__(self, iterations: Iterations, profile: Profile) -> Schedule:
        """Say what is verified; only an oracle may look at ``iterations.reach``."""


@dataclass(frozen=True)
class Fixed:
    """The same lookahead for every request, always: Leviathan et al. 2023, Algorithm 1."""

    lookahead: int

    def __call__(self, iterations: Iterations, profile: Profile) -> Schedule:
        lookahead = checked_lookahead(self.lookahead, iterations)
        verified = np.broadcast_to(np.int64(lookahead), iterations.reach.shape)
        return Schedule(verified, verified.sum(axis=2))


@dataclass(frozen=True)
class StopAtConfidence:
    """Drafts until the estimated acceptance of one is below `threshold`.

    * `threshold`: In [0, 1].
    * `lookahead`: The most; by default all positions.
    """

    threshold: float
    lookahead: int | None = None

    def __call__(self, iterations: Iterations, profile: Profile) -> Schedule:
        """Verify the drafts before the first doubtful one."""
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold = {self.threshold}: expected a number in [0, 1]")
        confident = iterations.estimates >= self.threshold
        lookahead = checked_lookahead(self.lookahead, iterations)
        lengths = np.cumprod(confident[:, :lookahead], axis=1).sum(axis=1)
        verified = lengths.take(iterations.rows)
        return Schedule(verified, verified.sum(axis=2))


@dataclass(frozen=True)
class Oracle:
    """Knows which drafts will be accepted: no scheduler has more goodput on the same chunk.

    It verifies accepted drafts only, as many of a pass as maximise tokens - price * time; the
    price is its own goodput, found by iteration (Dinkelbach 1967). It drafts what it verifies.
    """

    lookahead: int | None = None

    def __call__(self, iterations: Iterations, profile: Profile) -> Schedule:
        """Verify the best number of accepted drafts, of the first requests first."""
        lookahead = checked_lookahead(self.lookahead, iterations)
        offered = np.minimum(iterations.reach, lookahead)
        before = np.cumsum(offered, axis=2)
        batch = offered.shape[2]
        drafts = np.arange(batch * lookahead + 1)
        total = before[:, :, -1]
        counts = np.bincount(total.ravel(), minlength=len(drafts))
        chosen = _best_drafts(batch + drafts, profile.time(batch + drafts, drafts), counts)
        left = chosen.take(total)
        verified = np.clip(left[:, :, None] - before + offered, 0, offered)
        return Schedule(verified, left)


def _best_drafts(tokens: Integers, times: Floats, counts: Integers) -> Integers:
    """For each number of accepted drafts in a pass, how many of them to verify."""
    drafts: Integers = np.arange(len(tokens))
    chosen, goodput = drafts * 0, 0.0
    while (better := float(counts @ tokens[chosen] / (counts @ times[chosen]))) > goodput:
        goodput = better
        value = tokens - goodput * times
        record = np.maximum.accumulate(value)
        chosen = np.maximum.accumulate(np.where(value > np.r_[-np.inf, record[:-1]], drafts, 0))
    return chosen


def checked_lookahead(lookahead: int | None, iterations: Iterations) -> int:
    """The lookahead, by default as many as there are positions.

    * raises `ValueError`: It is negative, not an integer, or more than there are.
    """
    most = int(iterations.estimates.shape[1])
    if lookahead is None:
        return most
    if len(positions(lookahead)) > most:
        raise ValueError(f"lookahead = {lookahead}: the iterations have {most} positions")
    return lookahead
