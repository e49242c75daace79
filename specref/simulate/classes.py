"""Acceptances drawn from rates: one for each position, in each class of contexts."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from specref.distributions import as_distribution
from specref.simulate.tables import Floats, Integers
from specref.simulate.traces import Iterations, Shape, Source, checked_rates


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

    Raises
    ------
    ValueError
        As `Classes`.

    Examples
    --------
    >>> constant(0.5, 0.25).draw((1, 1, 3), np.random.default_rng(1)).reach
    array([[[0, 0, 1]]])
    """
    return Classes([1.0], [rates])
