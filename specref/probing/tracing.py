"""Probing by tracing comparisons: all paths of user code are enumerated.

Each path is replayed with numbers from inside its intervals. If that has another outcome, the
trace is wrong, and none of it is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from specref.chance import Chance, OutsideChanceError, TooManyPathsError, enumerate_paths
from specref.probing.calls import Call, Decision, EscapedError
from specref.probing.exact_source import ExactSource
from specref.probing.program import Outcome, Program
from specref.probing.source import Given, Request, counted

FRACTIONS = (0.3, 0.9)
SEEDS = 16


@dataclass(frozen=True)
class Cell:
    """A set of random numbers that all lead to one outcome.

    * `weight`: Their probability.
    * `numbers`: {index of the request: number}, one point of the cell.
    * `requests`: The requests on this path.
    * `error`: Bound on the relative error of the probability.
    * `decisions`: What random numbers decided on this path, in order.
    """

    outcome: Outcome
    weight: float
    numbers: dict[int, float]
    requests: tuple[Request, ...]
    error: float = 0.0
    decisions: tuple[Decision, ...] = ()

    def __hash__(self) -> int:
        return hash(self.outcome)


def traced_cells(program: Program, max_paths: int, *, known: bool = False) -> list[Cell]:
    """The cells of a program, from its comparisons.

    * `known`: Replays and seeds were tried on other arguments: each path is replayed once.
    * raises `EscapedError`: The code uses a number in a way that is not traced, a replay differs
      from the trace, or it has more than `max_paths` paths.
    """

    tried = count()

    def run(chance: Chance) -> Cell:
        source = ExactSource(chance)
        outcome = program(source)
        first = next(tried)
        fractions = [FRACTIONS[first % 2]] if known else FRACTIONS
        seeds = [first, *(next(tried) for _ in fractions[1:])]
        points = [source.numbers(x, _seed(seed)) for x, seed in zip(fractions, seeds, strict=True)]
        for point in points:
            _check(program, outcome, source.requests, point)
        return Cell(
            outcome, 1.0, points[0], tuple(source.requests), source.error, tuple(source.decisions)
        )

    try:
        paths = enumerate_paths(run, max_paths)
        cells = [replace(path.outcome, weight=float(path.weight)) for path in paths]
    except (TooManyPathsError, OutsideChanceError) as error:
        raise EscapedError(str(error)) from None
    if not known and any(request.kind == "seed" for cell in cells for request in cell.requests):
        _try_seeds(program, cells, range(next(tried), SEEDS))
    return cells


def _seed(probe: int) -> float:
    """The middle of one of `SEEDS` equal parts of all that a seed may be."""
    return (probe % SEEDS + 0.5) / SEEDS


def _try_seeds(program: Program, cells: list[Cell], probes: range) -> None:
    """Replay paths with the seeds that no replay of a path has tried yet."""
    for probe in probes:
        cell = cells[probe % len(cells)]
        kinds = [request.kind for request in cell.requests]
        seeds = {i: _seed(probe) for i, kind in enumerate(kinds) if kind == "seed"}
        _check(program, cell.outcome, cell.requests, cell.numbers | seeds)


def _check(
    program: Program, outcome: Outcome, requests: Sequence[Request], numbers: dict[int, float]
) -> None:
    source = Given(lambda index, request: numbers.get(index, 0.5))
    replayed = program(source)
    if replayed != outcome:
        raise EscapedError(f"traced {outcome}, but a replay with numbers gives {replayed}")
    if _calls(source.requests) != _calls(requests):
        raise EscapedError("a replay with numbers asks for others")


def _calls(requests: Sequence[Request]) -> list[tuple[Call, int]]:
    return [(request.call, count) for request, count in counted(requests)]
