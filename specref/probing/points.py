"""Points at which code is run, and whether the numbers there decide its outcome.

A point has a number for every request, spread evenly over a box. Equal numbers have to give equal
outcomes: else some randomness is not intercepted. A sampler that declares coins should return what
they say, and depend on nothing else.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from specref.probing.program import Outcome, Program
from specref.probing.source import Call, CannotInterpretError, Given, Request, counted

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


TIMES, FEW = 16, 4
"""Points for code of which nothing is known, and for code that was right on other arguments."""


class UnequalRunsError(CannotInterpretError):
    """Two runs on equal numbers differ."""


def once(program: Program) -> set[Outcome]:
    """The outcomes of a program on a few of the points of `repeated`."""
    points = (Point({}, probe, probe) for probe in range(FEW))
    return {program(Given(point.answer)) for point in points}


def repeated(program: Program) -> set[Outcome]:
    """Run a program twice on each of some points, and return the outcomes.

    * raises `UnequalRunsError`: Two runs on equal numbers differ in their outcome, or in what they
      ask for.
    """
    seen: set[Outcome] = set()
    for probe in range(TIMES):
        point = Point({}, probe, probe)
        sources = Given(point.answer), Given(point.answer)
        first = program(sources[0])
        second = program(sources[1])
        asked, again = map(_without_seeds, sources)
        if counted(asked) != counted(again):
            raise UnequalRunsError(
                f"it keeps something between calls: {_named(asked)} in one call, "
                f"{_named(again)} in the next"
            )
        if first != second:
            raise UnequalRunsError(
                f"randomness that is not intercepted: equal numbers give {first}, then {second} "
                "(it keeps a random number between calls, or draws in another thread or library)"
            )
        seen |= {first}
    return seen


def _without_seeds(source: Given) -> list[Request]:
    """What a run asked for; code that keeps its own generator draws its seed once."""
    return [request for request in source.requests if request.kind != "seed"]


def _named(requests: list[Request]) -> str:
    return f"{len(requests)} drawn ({requests[0].call})" if requests else "none drawn"


CHANGES = 48
COINS = ("coins.accept", "coins.race")


def drawn_elsewhere(program: Program) -> str | None:
    """What else than its coins decides the block of a sampler that declares coins.

    Its coins are kept while its other random numbers are changed, then the reverse.

    * `program`: A verification that takes coins.
    * returns: A sentence; empty if nothing else decides a block; None if it draws in a way that
      cannot be interpreted, so that this is unknown.
    """
    try:
        repeated(program)
        by_coins, other = _compared(program)
    except UnequalRunsError as error:
        return f"declares random numbers, but they do not decide its block alone: {error}"
    except CannotInterpretError:
        return None
    if other is None:
        return ""
    if by_coins:
        return f"declares random numbers, but its block depends on what it draws by {other}, too"
    return (
        f"declares random numbers, but {CHANGES} changes of them left its block alone: it "
        f"draws by {other}"
    )


def _compared(program: Program) -> tuple[bool, Call | None]:
    """Whether coins change the outcome, and the first other call that does."""
    by_coins, other = False, None
    for probe in range(CHANGES):
        points = Point({}, probe, probe), Point({}, probe + CHANGES, probe + CHANGES)
        base, requests = _run(program, *points, lambda call: False)
        by_coins |= _run(program, *points, _is_coin)[0] != base
        calls = dict.fromkeys(one.call for one in requests if not _is_coin(one.call))
        for call in calls if other is None else ():
            if _run(program, *points, call.__eq__)[0] != base:
                other = call
    return by_coins, other


def _is_coin(call: Call) -> bool:
    return call.name in COINS


def _run(
    program: Program, kept: Point, changed: Point, is_changed: Callable[[Call], bool]
) -> tuple[Outcome, list[Request]]:
    """The outcome and requests of a run in which some calls are answered by another point."""

    def answer(index: int, request: Request) -> float:
        return (changed if is_changed(request.call) else kept).answer(index, request)

    source = Given(answer)
    return program(source), source.requests
