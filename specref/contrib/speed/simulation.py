"""Goodput of schedulers, simulated: batches of requests, many trials at once.

A pass verifies the drafts of every request of a batch; each request then has its accepted drafts
and one token more. Goodput is tokens over time, of the whole run. The forms that are known are in
`speed.speedup` and `speed.latency`; this is for what has none: schedulers that adapt,
requests that persist in their class, recorded traces.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from specref.arrays import Floats, Integers
from specref.contrib.speed.schedulers import Profile, Scheduler
from specref.contrib.speed.traces import Source


@dataclass(frozen=True, eq=False)
class SpeedReport:
    """The figures of a scheduler's run.

    * `iterations`: One for each request of each pass.
    * `standard_error`: Of `goodput`, by the delta method over trials; not a number for one trial.
    * `verified` (ndarray of int, shape (batch, positions + 1)): Entry (r, v): how often request r
      of a batch had v drafts verified.
    * `jain`: Jain's index of the requests' mean verified lengths, averaged over trials: 1 if they
      are equal, 1 / batch if one request has them all.
    * `waits` (ndarray of int, shape (steps + 1,)): Entry w: how many requests had w passes in a
      row without a draft verified, at worst.
    """

    iterations: int
    tokens: int
    time: float
    standard_error: float
    verified: Integers
    jain: float
    waits: Integers

    @property
    def goodput(self) -> float:
        """Tokens per unit of time."""
        return self.tokens / self.time

    @property
    def tokens_per_iteration(self) -> float:
        """Tokens per iteration, with the residual or bonus token."""
        return self.tokens / self.iterations

    @property
    def verified_per_iteration(self) -> float:
        """The mean verified length."""
        return float(self.verified.sum(axis=0) @ np.arange(self.verified.shape[1])) / (
            self.iterations
        )

    @property
    def wasted(self) -> float:
        """The share of verified drafts that were rejected or came after a rejection."""
        verified = self.verified_per_iteration
        return 1 - (self.tokens_per_iteration - 1) / verified if verified else 0.0

    @property
    def longest_wait(self) -> int:
        """The most passes in a row in which some request had no draft verified."""
        return int(np.flatnonzero(self.waits)[-1])


class Tally:
    """The sums of a simulation."""

    def __init__(self, batch: int, steps: int, positions: int) -> None:
        self.trials = 0
        self.iterations = 0
        self.jain = 0.0
        self.sums, self.products = np.zeros(2), np.zeros((2, 2))
        self.verified = np.zeros((batch, positions + 1), dtype=np.int64)
        self.waits = np.zeros(steps + 1, dtype=np.int64)

    def add(self, verified: Integers, tokens: Integers, times: Floats) -> None:
        """Count some trials: arrays (trials, steps, batch), and `times` (trials, steps)."""
        both = np.stack([tokens.sum(axis=(1, 2)).astype(np.float64), times.sum(axis=1)])
        self.sums += both.sum(axis=1)
        self.products += both @ both.T
        self.trials += len(verified)
        self.iterations += verified.size
        self.jain += float(jain_index(verified.sum(axis=1)).sum())
        cells = verified + np.arange(len(self.verified)) * self.verified.shape[1]
        counts = np.bincount(cells.ravel(), minlength=self.verified.size)
        self.verified += counts.reshape(self.verified.shape)
        self.waits += np.bincount(longest_waits(verified).ravel(), minlength=len(self.waits))

    def report(self) -> SpeedReport:
        tokens, time = self.sums
        return SpeedReport(
            self.iterations,
            round(tokens),
            float(time),
            self._standard_error(tokens / time),
            self.verified,
            self.jain / self.trials,
            self.waits,
        )

    def _standard_error(self, goodput: float) -> float:
        """The error of a ratio of sums over trials: deviations are tokens - goodput * time."""
        if self.trials < 2:
            return float("nan")
        slope = np.array([1, -goodput])
        squares = max(0.0, float(slope @ self.products @ slope))
        return math.sqrt(squares * self.trials / (self.trials - 1)) / float(self.sums[1])


def jain_index(amounts: Integers | Floats) -> Floats:
    """(sum x)^2 / (n sum x^2) along the last axis; 1 where every amount is 0.

    Jain, Chiu and Hawe 1984.
    """
    amounts = np.asarray(amounts, dtype=np.float64)
    squares = (amounts**2).sum(axis=-1) * amounts.shape[-1]
    index: Floats = np.divide(
        amounts.sum(axis=-1) ** 2, squares, out=np.ones_like(squares), where=squares > 0
    )
    return index


def longest_waits(verified: Integers) -> Integers:
    """The longest run of zeros along the steps, shape (trials, steps, batch)."""
    now = np.arange(1, verified.shape[1] + 1)[:, None]
    served = np.maximum.accumulate(np.where(verified > 0, now, 0), axis=1)
    waits: Integers = (now - served).max(axis=1)
    return waits


CHUNK = 1 << 16


def compare_schedulers(
    source: Source,
    schedulers: Mapping[str, Scheduler],
    profile: Profile,
    *,
    batch: int = 1,
    trials: int,
    steps: int = 1,
    rng: np.random.Generator,
    chunk: int = CHUNK,
    advance: Callable[[int], None] = lambda iterations: None,
) -> dict[str, SpeedReport]:
    """Simulate schedulers on the same iterations.

    Parameters
    ----------
    source : Source
        Where acceptances come from: `Classes` or `Traces`.
    schedulers : mapping
        {name: scheduler}.
    profile : Profile
        How long passes and drafts take.
    batch : int
        Requests that share a pass.
    trials : int
        Independent batches.
    steps : int
        Passes of each.
    rng : numpy.random.Generator
    chunk : int
        About how many iterations (trials * steps * batch) to simulate at once; at least one
        trial.
    advance : callable
        Told the number of iterations that are done, for a progress bar.

    Returns
    -------
    dict
        {name: SpeedReport}

    Raises
    ------
    ValueError
        A size < 1; no schedulers; latencies that end before the largest pass; a lookahead
        beyond the positions of `source`.

    Examples
    --------
    >>> from specref.contrib.speed.traces import constant
    >>> from specref.contrib.speed.schedulers import Fixed, Oracle
    >>> schedulers = {"none": Fixed(0), "two": Fixed(2), "oracle": Oracle()}
    >>> reports = compare_schedulers(
    ...     constant(0.5, 0.5), schedulers, Profile([0, 1, 1, 2]),
    ...     trials=1000, rng=np.random.default_rng(1),
    ... )
    >>> {name: round(report.goodput, 2) for name, report in reports.items()}
    {'none': 1.0, 'two': 0.87, 'oracle': 1.51}
    """
    sizes = {"batch": batch, "trials": trials, "steps": steps, "chunk": chunk}
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} = {value!r}: expected an integer >= 1")
    if not schedulers:
        raise ValueError("schedulers is empty: expected at least one")
    tallies = {name: Tally(batch, steps, source.positions) for name in schedulers}
    at_once = max(1, chunk // (steps * batch))
    for first in range(0, trials, at_once):
        iterations = source.draw((min(at_once, trials - first), steps, batch), rng)
        for name, scheduler in schedulers.items():
            verified, drafted = scheduler(iterations, profile)
            times = profile.time(batch + verified.sum(axis=2), drafted)
            tallies[name].add(verified, emitted(iterations.reach, verified), times)
        advance(iterations.reach.size)
    return {name: tally.report() for name, tally in tallies.items()}


def emitted(reach: Integers, verified: Integers) -> Integers:
    """Tokens of each iteration: the accepted drafts, and the residual or bonus token."""
    return np.minimum(reach, verified) + 1
