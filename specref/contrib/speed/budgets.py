"""Schedulers of a whole batch: so many drafts in all, wherever they are likeliest accepted.

K drafts do most good where the survival probabilities are greatest (`theory.goodput.allocation`);
the schedulers differ in how they choose K.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specref.arrays import Floats, Integers
from specref.contrib.speed.schedulers import Profile, Schedule, checked_lookahead
from specref.contrib.speed.traces import Iterations

MOST_COMBINATIONS = 4096
ROUNDING = 1e-12


@dataclass(frozen=True)
class Budgeted(ABC):
    """Verifies the K drafts of the batch that are likeliest accepted.

    * `lookahead`: The most for one request; by default all positions.
    * `rotate`: Among equals the first request goes first; whether that is another one each step.
    """

    lookahead: int | None = None
    rotate: bool = False
    drafts_all: ClassVar[bool] = False

    @abstractmethod
    def choose(self, tokens: Floats, times: Floats) -> Integers:
        """K for each pass, from expected `tokens` (passes, K + 1) and `times` (K + 1,)."""

    def __call__(self, iterations: Iterations, profile: Profile) -> Schedule:
        """Verify the K likeliest drafts; draft them, or all positions to look at."""
        lookahead = checked_lookahead(self.lookahead, iterations)
        survival = iterations.survival[:, :lookahead]
        steps, batch = iterations.rows.shape[1:]
        turns = np.arange(steps)[:, None] * self.rotate
        order = ((np.arange(batch) + turns) % batch)[None]
        back = ((np.arange(batch) - turns) % batch)[None]
        rows = np.take_along_axis(iterations.rows, order, axis=2)
        verified = np.take_along_axis(self._verified(survival, rows, profile), back, axis=2)
        drafted = verified.sum(axis=2)
        return Schedule(verified, drafted * 0 + batch * lookahead if self.drafts_all else drafted)

    def _verified(self, survival: Floats, rows: Integers, profile: Profile) -> Integers:
        """As `_allocated`, for each combination of rows once, if those are few."""
        kinds, batch = len(survival), rows.shape[2]
        if kinds**batch > MOST_COMBINATIONS:
            passes = survival[rows].reshape(-1, batch, survival.shape[1])
            return self._allocated(passes, profile).reshape(rows.shape)
        combinations = np.indices((kinds,) * batch).reshape(batch, -1).T
        table = self._allocated(survival[combinations], profile)
        verified: Integers = table[rows @ kinds ** np.arange(batch)[::-1]]
        return verified

    def _allocated(self, survival: Floats, profile: Profile) -> Integers:
        """Verified lengths (passes, batch) from survival (passes, batch, positions)."""
        passes, batch, most = survival.shape
        ranked = -np.sort(-survival.reshape(passes, -1), axis=1)
        drafts = np.arange(batch * most + 1)
        tokens = np.concatenate([np.zeros((passes, 1)), np.cumsum(ranked, axis=1)], axis=1)
        drafted = drafts * 0 + batch * most if self.drafts_all else drafts
        chosen = self.choose(batch + tokens, profile.time(batch + drafts, drafted))
        return _taken(survival, ranked, chosen)


class FirstDecline(Budgeted):
    """Adds the likeliest draft until expected goodput would decline (first among equals).

    Kim et al. 2025 (speculative verification), section 5. It needs no draft that it does not
    verify, but for exact ties: to come back to the first among equals it has looked ahead, and
    a verifier that does so is lossy (`speed.companion.greedy_length` lets a tie end the walk).
    Right for linear or convex latencies only.
    """

    def choose(self, tokens: Floats, times: Floats) -> Integers:
        values = tokens / times
        declines = values[:, 1:] < values[:, :-1] * (1 - ROUNDING)
        stop = np.full((len(values), 1), True)
        end = np.argmax(np.concatenate([declines, stop], axis=1), axis=1)[:, None]
        return _first_reaching(values, np.take_along_axis(values, end, axis=1))


class Scan(Budgeted):
    """The K with the greatest expected goodput, of all: right for every profile.

    It looks at all positions of all requests, and so drafts them all.
    """

    drafts_all = True

    def choose(self, tokens: Floats, times: Floats) -> Integers:
        values = tokens / times
        return _first_reaching(values, values.max(axis=1, keepdims=True))


@dataclass(frozen=True)
class Priced(Budgeted):
    """The K that maximises expected tokens - price * time.

    With the goodput of the run as the price it has the greatest goodput of all rules that see
    what it sees (`speed.latency.optimal_policy`). It drafts all positions, as `Scan` does.

    * `price`: Tokens per unit of time.
    """

    price: float = 0.0
    drafts_all = True

    def choose(self, tokens: Floats, times: Floats) -> Integers:
        best: Integers = np.argmax(tokens - self.price * times, axis=1)
        return best


@dataclass(frozen=True)
class TopDrafts(Budgeted):
    """A fixed number of drafts: causal, and jointly lossless.

    * `drafts`: For the whole batch; fewer if there are no more.
    """

    drafts: int = 0

    def choose(self, tokens: Floats, times: Floats) -> Integers:
        if self.drafts < 0:
            raise ValueError(f"drafts = {self.drafts}: expected an integer >= 0")
        return np.full(len(tokens), min(self.drafts, len(times) - 1))


def _first_reaching(values: Floats, reached: Floats) -> Integers:
    """The first index at which values reach a maximum, up to rounding."""
    first: Integers = np.argmax(values >= reached * (1 - ROUNDING), axis=1)
    return first


def _taken(survival: Floats, ranked: Floats, chosen: Integers) -> Integers:
    """How many of each request are among the `chosen` greatest, the first request first."""
    last = np.take_along_axis(ranked, np.maximum(chosen - 1, 0)[:, None], axis=1)
    last = np.where(chosen[:, None] > 0, last, np.inf)[:, :, None]
    above, equal = (survival > last).sum(axis=2), (survival == last).sum(axis=2)
    left = (chosen - above.sum(axis=1))[:, None]
    taken: Integers = above + np.clip(left - np.cumsum(equal, axis=1) + equal, 0, equal)
    return taken
