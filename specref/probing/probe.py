"""Exact probing: the output distribution of user code, without sampling error."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from specref.probing.bisection import ASSUMPTION, searched_cells
from specref.probing.calls import Call, CannotInterpretError, EscapedError
from specref.probing.program import Failure, Program, TorchImportedError
from specref.probing.repeating import once, repeated
from specref.probing.tracing import SEEDS, Cell, traced_cells
from specref.vocabulary import Tokens

ROUNDING = 1e-12
MAX_PATHS = 5_000
MAX_RUNS = 500_000


@dataclass(frozen=True)
class Probed:
    """The exact output distribution of code, or the reason why there is none.

    Attributes
    ----------
    distribution : dict
        {tokens: probability}; empty if the code cannot be interpreted.
    failures : dict
        {exception: probability}, of code that raises it.
    error_bound : float
        In total variation; draws of given weights are taken to be ideal.
    calls : tuple of Call
        The calls for randomness that were found.
    uninterpreted : str or None
        The call that cannot be interpreted, and why.
    way : {"traced", "searched", "none"}
        Whether thresholds were traced in the code's comparisons, or searched for.
    assumption : str or None
        The assumption of the error bound, if any: about the search, or about seeds.
    untraced : str or None
        Why thresholds were searched for.
    runs : int
        How often the code was run.
    """

    distribution: dict[Tokens, float]
    failures: dict[str, float]
    error_bound: float
    calls: tuple[Call, ...]
    uninterpreted: str | None
    way: Literal["traced", "searched", "none"]
    assumption: str | None
    untraced: str | None
    runs: int
    cells: tuple[Cell, ...] = field(repr=False, default=())


def probe(
    function: Callable[[], Iterable[int]],
    *,
    max_paths: int = MAX_PATHS,
    max_runs: int = MAX_RUNS,
) -> Probed:
    """The exact distribution of what a function returns, given its own randomness.

    Generators made by `numpy.random.default_rng` inside the function, or held in its closure,
    its globals or its object, are replaced while it runs; so are the functions of
    `numpy.random`, `random.random`, `random.choices` and torch's random operations.

    Every draw is taken to be fresh and ideal: generators are replaced, not tested, and what a
    seed repeats is not noticed. Uniforms are counted on their grid, multiples of 2^-53 in float64
    and of 2^-24 in float32, so that < and <= have different probabilities.

    Parameters
    ----------
    function : callable
        Returns token ids that depend on its randomness alone.
    max_paths : int
        The most paths to trace; beyond it, thresholds are searched for.
    max_runs : int
        The most runs before probing gives up.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> probed = probe(lambda: (int(rng.random() < 0.25), int(rng.choice(2, p=[0.5, 0.5]))))
    >>> probed.distribution
    {(0, 0): 0.375, (0, 1): 0.375, (1, 0): 0.125, (1, 1): 0.125}
    >>> print(probe(lambda: (int(rng.normal() > 0),)).uninterpreted.partition(",")[0])
    Generator.normal
    """
    return probe_program(Program(lambda source: function(), function, max_runs), max_paths)


def probe_program(program: Program, max_paths: int = MAX_PATHS, *, known: bool = False) -> Probed:
    """As `probe`, for a program; again if it has imported torch meanwhile.

    * `known`: The same code gave equal outcomes for equal numbers on other arguments. Replays of
      each path show that here; runs are repeated, too, only where there is no trace to replay.
    """
    for late in (False, True):
        try:
            seen = once(program) if known else repeated(program)
            try:
                cells = traced_cells(program, max_paths)
                for outcome in seen - {cell.outcome for cell in cells}:
                    raise EscapedError(
                        f"a run with numbers gave {outcome}, which no trace leads to"
                    )
                return _probed(program, cells, "traced", _seeds(cells))
            except EscapedError as error:
                untraced = str(error)
            if known:
                repeated(program)
            cells = searched_cells(program)
            return _probed(program, cells, "searched", ASSUMPTION, untraced)
        except TorchImportedError:
            if late:
                raise
        except CannotInterpretError as error:
            return Probed({}, {}, 0.0, (), str(error), "none", None, None, program.runs)
    raise AssertionError("a program is tried twice")


def _probed(
    program: Program,
    cells: list[Cell],
    way: Literal["traced", "searched"],
    assumption: str | None,
    untraced: str | None = None,
) -> Probed:
    law: dict[Any, float] = {}
    for cell in sorted(cells, key=lambda cell: str(cell.outcome)):
        law[cell.outcome] = law.get(cell.outcome, 0.0) + cell.weight
    return Probed(
        distribution={key: weight for key, weight in law.items() if isinstance(key, tuple)},
        failures={str(key): weight for key, weight in law.items() if isinstance(key, Failure)},
        error_bound=ROUNDING + sum(cell.weight * cell.error for cell in cells),
        calls=tuple(dict.fromkeys(request.call for cell in cells for request in cell.requests)),
        uninterpreted=None,
        way=way,
        assumption=assumption,
        untraced=untraced,
        runs=program.runs,
        cells=tuple(cells),
    )


def _seeds(cells: list[Cell]) -> str | None:
    requests = (request for cell in cells for request in cell.requests)
    for call in (request.call for request in requests if request.kind == "seed"):
        return f"seeds drawn by {call} change nothing: {SEEDS}, evenly spread, were tried"
    return None
