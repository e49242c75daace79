"""Points at which code is run: a number for every request, spread evenly over a box."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from specref.probing.program import Outcome
from specref.probing.source import Request

Box: TypeAlias = Mapping[int, tuple[float, float]]
PROBES = 251
GENERATOR = 111
NOISE_OFFSET = 29
# Not the middle of a stratum: 1/2 is a threshold of many toy laws.
WITHIN = (5**0.5 - 1) / 2


def spread(probe: int, index: int) -> float:
    """A number in one of `PROBES` equal strata; each probe of a request has its own stratum.

    A rank-1 lattice (Korobov 1959): `GENERATOR` is a primitive root of the prime `PROBES`,
    chosen so that no two or three of eight neighbouring requests lie on few lines or planes.
    """
    factor = pow(GENERATOR, index + 1, PROBES)
    return ((probe * factor + PROBES // 2) % PROBES + WITHIN) / PROBES


@dataclass(frozen=True)
class Point:
    """A number in (0, 1) and an exponential noise for every request, whatever its kind.

    * `box`: {index of the request: (low, high)}; (0, 1) for the others.
    * `probe`: Index among the points spread over the box.
    * `noisy`: Index among the points spread over the noise; None for a noise of 1 everywhere.
    * `uniforms`, `noise`: Numbers used instead for some requests.
    * `pace`: A factor on all noise.
    """

    box: Box
    probe: int = 0
    noisy: int | None = None
    uniforms: dict[int, float] = field(default_factory=dict)
    noise: dict[int, float] = field(default_factory=dict)
    pace: float = 1.0

    def uniform(self, index: int) -> float:
        """The number in (0, 1) of a request."""
        if index in self.uniforms:
            return self.uniforms[index]
        low, high = self.box.get(index, (0.0, 1.0))
        return low + (high - low) * spread(self.probe, index)

    def arrival(self, index: int) -> float:
        if index in self.noise:
            return self.pace * self.noise[index]
        if self.noisy is None:
            return self.pace
        return -self.pace * math.log1p(-spread(self.noisy, index + NOISE_OFFSET))

    def answer(self, index: int, request: Request) -> float:
        if request.kind == "exponential":
            return self.arrival(index)
        if request.kind == "categorical":
            return branch_at(request.weights, self.uniform(index))
        return self.uniform(index)

    def with_uniform(self, index: int, value: float) -> "Point":
        """The same point with another value of one number."""
        return replace(self, uniforms={**self.uniforms, index: value})

    def shifted(self, indices: Iterable[int], shift: float) -> "Point":
        """The same point with some numbers, and all noise, moved by a share of their range."""
        moved = dict(self.uniforms)
        for index in indices:
            low, high = self.box.get(index, (0.0, 1.0))
            value = self.uniform(index) + shift * (high - low)
            moved[index] = min(max(value, low), high)
        return replace(self, uniforms=moved, pace=self.pace * (1 + shift))

    def with_noise(self, noise: Mapping[int, float]) -> "Point":
        """The same point with other values of some noise."""
        return replace(self, noise={**self.noise, **noise})


def branch_at(weights: tuple[float, ...], uniform: float) -> int:
    """The branch of a categorical draw, by inverse CDF."""
    total = np.cumsum(weights)
    last = int(np.searchsorted(total, total[-1]))
    return min(int(np.searchsorted(total, uniform * total[-1], side="right")), last)


@dataclass(frozen=True)
class Run:
    """The outcome at a point, and the requests of the run."""

    point: Point
    outcome: Outcome
    requests: tuple[Request, ...]

    @property
    def signature(self) -> tuple[Outcome, tuple[Request, ...]]:
        """The outcome and the requests: with other requests, outcomes may differ elsewhere."""
        return self.outcome, self.requests

    def indices(self, *kinds: str) -> list[int]:
        return [index for index, request in enumerate(self.requests) if request.kind in kinds]

    def numbers(self) -> dict[int, float]:
        pairs = enumerate(self.requests)
        return {index: self.point.answer(index, request) for index, request in pairs}
