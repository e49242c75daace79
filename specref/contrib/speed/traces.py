"""Where simulated acceptances come from: recorded iterations, or rates of classes of contexts.

The *reach* of an iteration is how many of its drafts would be accepted if all were verified. It
depends on the models and the text, never on the scheduler: with v drafts verified, min(v, reach)
are accepted. So one draw of the reach serves every scheduler, and one uniform every position.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specref.arrays import Floats, Integers
from specref.distributions import as_distribution

Shape = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Iterations:
    """The acceptances of the requests of some batches, step by step.

    * `reach` (ndarray of int, shape (trials, steps, batch)): How many drafts would be accepted.
    * `rows` (ndarray of int, shape (trials, steps, batch)): Which row of `estimates` a scheduler
      is shown.
    * `estimates` (ndarray of float64, shape (rows, positions)): What it believes: the acceptance
      of each draft if those before it are accepted.
    """

    reach: Integers
    rows: Integers
    estimates: Floats

    @property
    def survival(self) -> Floats:
        """The believed probability that drafts 1 … k are all accepted, as `estimates`."""
        return np.cumprod(self.estimates, axis=1, dtype=np.float64)


class Source(ABC):
    """A law of iterations, or a record of them."""

    estimates: Floats

    @property
    def positions(self) -> int:
        """The greatest lookahead that can be simulated."""
        return int(self.estimates.shape[1])

    @abstractmethod
    def draw(self, shape: Shape, rng: np.random.Generator) -> Iterations:
        """Draw the iterations of (trials, steps, batch); requests are independent."""


@dataclass(frozen=True, eq=False)
class Traces(Source):
    """Recorded iterations, replayed cyclically in their order from random places.

    * `recorded`: Shape (iterations,): accepted lengths, of iterations that all verified
      `lookahead` drafts. Shape (iterations, positions): verdicts 0 or 1; those after a 0 mean
      nothing.
    * `lookahead`: For accepted lengths; by default the greatest of them.
    * `believed` (array_like, shape (iterations, positions) or (positions,), optional): What
      schedulers believe; by default the shares in the record.
    * raises `ValueError`: Nothing is recorded, or no drafts; a length or verdict is out of range;
      `believed` is no array of probabilities of that shape.
    """

    recorded: ArrayLike
    lookahead: int | None = None
    believed: ArrayLike | None = None
    reach: Integers = field(init=False)
    estimates: Floats = field(init=False)

    def __post_init__(self) -> None:
        reach, positions = _recorded(np.asarray(self.recorded), self.lookahead)
        believed = _shares(reach, positions) if self.believed is None else self.believed
        estimates = checked_rates(np.atleast_2d(np.asarray(believed)), "believed")
        if estimates.shape not in ((1, positions), (len(reach), positions)):
            expected = f"{(positions,)} or {(len(reach), positions)}"
            raise ValueError(f"believed has shape {estimates.shape}: expected {expected}")
        object.__setattr__(self, "reach", reach)
        object.__setattr__(self, "estimates", estimates)

    def draw(self, shape: Shape, rng: np.random.Generator) -> Iterations:
        """Each request of each trial starts at a random iteration, and goes on from there."""
        starts = rng.integers(0, len(self.reach), (shape[0], 1, shape[2]))
        at = (starts + np.arange(shape[1])[:, None]) % len(self.reach)
        rows = at if len(self.estimates) > 1 else np.broadcast_to(np.int64(0), shape)
        return Iterations(self.reach[at], rows, self.estimates)


@dataclass(frozen=True, eq=False)
class Classes(Source):
    """Contexts of several classes, each with its own acceptance at each position.

    Parameters
    ----------
    weights : array_like, shape (classes,)
        How likely each class is.
    rates : array_like, shape (classes, positions)
        The acceptance of each draft, given that those before it were accepted.
    persistence : float
        The probability that a request stays in its class without drawing a new one: 0 for
        independent steps, 1 for requests that never change.
    believed : array_like, shape (classes, positions), optional
        What schedulers believe; by default the rates.

    Raises
    ------
    ValueError
        Something is not a probability, empty, or of another shape.

    Examples
    --------
    >>> Classes([0.5, 0.5], [[0.9] * 4, [0.6] * 4], persistence=0.95).positions
    4
    """

    weights: ArrayLike
    rates: ArrayLike
    persistence: float = 0.0
    believed: ArrayLike | None = None
    estimates: Floats = field(init=False)

    def __post_init__(self) -> None:
        rates = checked_rates(self.rates, "rates")
        as_distribution(self.weights, "weights", len(rates))
        believed = rates if self.believed is None else checked_rates(self.believed, "believed")
        if believed.shape != rates.shape:
            raise ValueError(f"believed has shape {believed.shape}: expected {rates.shape}")
        if not 0 <= self.persistence <= 1:
            raise ValueError(f"persistence = {self.persistence}: expected a number in [0, 1]")
        object.__setattr__(self, "estimates", believed)

    def draw(self, shape: Shape, rng: np.random.Generator) -> Iterations:
        """Draw classes, then one uniform for each iteration: it reaches k iff it is < S_k."""
        rows, uniforms = self._classes(shape, rng), rng.random(shape)
        reach = np.zeros(shape, dtype=np.int64)
        for survivors in np.cumprod(checked_rates(self.rates, "rates"), axis=1).T:
            reach += uniforms < (survivors.take(rows) if len(survivors) > 1 else survivors)
        return Iterations(reach, rows, self.estimates)

    def _classes(self, shape: Shape, rng: np.random.Generator) -> Integers:
        if len(self.estimates) == 1:
            return np.broadcast_to(np.int64(0), shape)
        limits = np.cumsum(np.asarray(self.weights, dtype=np.float64))[:-1]
        fresh = np.searchsorted(limits, rng.random(shape), side="right")
        if not self.persistence:
            return fresh
        step = np.arange(shape[1])[:, None]
        last = np.where(rng.random(shape) >= self.persistence, step, 0)
        return np.take_along_axis(fresh, np.maximum.accumulate(last, axis=1), axis=1)


def constant(*rates: float) -> Classes:
    """One class of contexts: the same acceptances, position by position, for every iteration.

    * raises `ValueError`: As `Classes`.
    """
    return Classes([1.0], [rates])


def checked_rates(values: ArrayLike, name: str) -> Floats:
    """Acceptances as float64, shape (rows, positions).

    * raises `ValueError`: Not two dimensions, none of them empty, or an entry is not in [0, 1].
    """
    rates = np.asarray(values, dtype=np.float64)
    if rates.ndim != 2 or not rates.size:
        raise ValueError(f"{name} has shape {rates.shape}: expected (rows, positions), none 0")
    _check_each(rates, (rates >= 0) & (rates <= 1), name, "a number in [0, 1]")
    return rates


def _recorded(recorded: NDArray[Any], lookahead: int | None) -> tuple[Integers, int]:
    """The reach of each iteration, and the number of positions."""
    if not recorded.size or recorded.ndim not in (1, 2):
        raise ValueError(
            f"recorded has shape {recorded.shape}: expected (iterations,) or "
            "(iterations, positions), none 0"
        )
    if recorded.ndim == 2:
        _check_each(recorded, (recorded == 0) | (recorded == 1), "recorded", "0 or 1")
        if lookahead not in (None, recorded.shape[1]):
            raise ValueError(
                f"lookahead = {lookahead}: recorded has {recorded.shape[1]} positions"
            )
        return np.cumprod(recorded, axis=1).sum(axis=1).astype(np.int64), recorded.shape[1]
    most = int(recorded.max()) if lookahead is None else lookahead
    if most < 1:
        raise ValueError(f"lookahead = {most}: expected an integer >= 1, as something was drafted")
    whole = (recorded >= 0) & (recorded <= most) & (recorded == np.floor(recorded))
    _check_each(recorded, whole, "recorded", f"an accepted length 0 … {most}")
    return recorded.astype(np.int64), most


def _shares(reach: Integers, positions: int) -> Floats:
    """The share of the iterations that reached a position that also passed it; 0 if none did."""
    least = np.arange(positions + 1)
    survivors = (reach[:, None] >= least).sum(axis=0)
    shares: Floats = survivors[1:] / np.maximum(survivors[:-1], 1)
    return shares


def _check_each(values: NDArray[Any], good: NDArray[np.bool_], name: str, expected: str) -> None:
    bad = np.argwhere(~good)
    if len(bad):
        index = tuple(bad[0].tolist())
        shown = ", ".join(map(str, index))
        raise ValueError(f"{name}[{shown}] = {values[index]}: expected {expected}")
