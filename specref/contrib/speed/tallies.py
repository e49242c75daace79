"""Figures of a scheduler: goodput, fairness, starvation."""

import math
from dataclasses import dataclass

import numpy as np

from specref.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class SpeedReport:
    """The figures of a scheduler's run.

    Attributes
    ----------
    iterations : int
        One for each request of each pass.
    tokens : int
    time : float
    standard_error : float
        Of `goodput`, by the delta method over trials; not a number for one trial.
    verified : ndarray of int, shape (batch, positions + 1)
        Entry (r, v): how often request r of a batch had v drafts verified.
    jain : float
        Jain's index of the requests' mean verified lengths, averaged over trials: 1 if they
        are equal, 1 / batch if one request has them all.
    waits : ndarray of int, shape (steps + 1,)
        Entry w: how many requests had w passes in a row without a draft verified, at worst.
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

    Examples
    --------
    >>> jain_index(np.array([[1, 1], [1, 0], [0, 0]]))
    array([1. , 0.5, 1. ])
    """
    amounts = np.asarray(amounts, dtype=np.float64)
    squares = (amounts**2).sum(axis=-1) * amounts.shape[-1]
    index: Floats = np.divide(
        amounts.sum(axis=-1) ** 2, squares, out=np.ones_like(squares), where=squares > 0
    )
    return index


def longest_waits(verified: Integers) -> Integers:
    """The longest run of zeros along the steps, shape (trials, steps, batch).

    Examples
    --------
    >>> longest_waits(np.array([[[1], [0], [0], [2], [0]]]))
    array([[2]])
    """
    now = np.arange(1, verified.shape[1] + 1)[:, None]
    served = np.maximum.accumulate(np.where(verified > 0, now, 0), axis=1)
    waits: Integers = (now - served).max(axis=1)
    return waits
