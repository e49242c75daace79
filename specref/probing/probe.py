"""Exact probing: the output distribution of user code, without sampling error.

Of a verification it is the law of the block for given rows and drafts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from specref.arrays import NO_TOKEN, Floats
from specref.coins import Coins
from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities, capabilities_of
from specref.probing.bisection import ASSUMPTION, searched_cells
from specref.probing.points import once, repeated
from specref.probing.program import Failure, Program, TorchImportedError
from specref.probing.source import Call, CannotInterpretError, EscapedError, Source
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
    function: Callable[[], Iterable[int]], *, max_paths: int = MAX_PATHS, max_runs: int = MAX_RUNS
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

    * `known`: The same code gave equal outcomes for equal numbers on other arguments. A replay of
      each path shows that here; runs are repeated, too, only where there is no trace to replay.
    """
    for late in (False, True):
        try:
            seen = once(program) if known else repeated(program)
            try:
                cells = traced_cells(program, max_paths, known=known)
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


def probe_verify(
    verify: Callable[..., Any],
    p_rows: Floats,
    q_rows: Floats | None,
    drafts: Tokens,
    *,
    capabilities: Capabilities | None = None,
    max_paths: int = MAX_PATHS,
    max_runs: int = MAX_RUNS,
    kind: type[Verifier] = Verifier,
    known: bool = False,
) -> Probed:
    """The exact distribution of the block that a ``verify`` returns for given drafts.

    Parameters
    ----------
    verify : callable
        A function of the contract ``verify``; it may take `rng`, `coins`, both or neither.
    p_rows : ndarray, shape (K + 1, V)
        The target's distribution after each prefix of the drafts.
    q_rows : ndarray, shape (K, V), or None
        The distributions that drafts are declared to come from.
    drafts : tuple of int
        K token ids.
    capabilities : Capabilities, optional
        By default those that the implementation declares.
    max_paths, max_runs : int
        As for `probe`.
    kind : type
        The class that calls the implementation, if the contract is not ``verify``.
    known : bool
        It gave equal blocks for equal random numbers after other drafts: fewer runs are repeated.

    Raises
    ------
    ValueError
        Shapes do not match, or a draft is not a token.

    Examples
    --------
    >>> def verify(target_probs, draft_probs, draft_tokens, *, rng):
    ...     x, p, q = draft_tokens[0, 0], target_probs[0], draft_probs[0]
    ...     if rng.random() < p[0, x] / q[0, x]:
    ...         return np.array([[x, rng.choice(2, p=p[1])]]), np.array([2])
    ...     residual = np.maximum(p[0] - q[0], 0)
    ...     return np.array([[rng.choice(2, p=residual / residual.sum()), -1]]), np.array([1])
    >>> p, q = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[0.5, 0.5]])
    >>> probe_verify(verify, p, q, (0,)).distribution
    {(0, 0): 0.25, (0, 1): 0.25, (1,): 0.5}
    """
    program = verification_program(verify, p_rows, q_rows, drafts, capabilities, max_runs, kind)
    return probe_program(program, max_paths, known=known)


def verification_program(
    verify: Callable[..., Any],
    p_rows: Floats,
    q_rows: Floats | None,
    drafts: Tokens,
    capabilities: Capabilities | None = None,
    max_runs: int = MAX_RUNS,
    kind: type[Verifier] = Verifier,
) -> Program:
    """A verification of one row as a program; parameters and errors as for `probe_verify`."""
    if np.ndim(p_rows) != 2 or len(p_rows) != len(drafts) + 1:
        raise ValueError(f"p_rows has shape {np.shape(p_rows)}: expected ({len(drafts) + 1}, V)")
    size = p_rows.shape[1]
    if q_rows is not None and np.shape(q_rows) != (len(drafts), size):
        expected = (len(drafts), size)
        raise ValueError(f"q_rows has shape {np.shape(q_rows)}: expected {expected}")
    for index, token in enumerate(drafts):
        if not 0 <= token < size:
            raise ValueError(f"drafts[{index}] = {token}: expected 0 <= id < {size}")
    verifier = kind(verify, capabilities or capabilities_of(verify))
    q = None if q_rows is None else np.array(q_rows, dtype=np.float64)[None]
    tokens = np.array([drafts], dtype=np.int64)
    lens, place = np.array([len(drafts)]), np.zeros(1, dtype=np.int64)
    batch = Batch(np.array(p_rows, dtype=np.float64)[None], q, tokens, lens, place)
    return batch_program(verifier, verifier.shaped(batch), max_runs)


def batch_program(
    verifier: Verifier, batch: Batch, max_runs: int = MAX_RUNS, rows: Sequence[int] = (0,)
) -> Program:
    """A verification of a batch as a program: the blocks of some rows, with -1 between them."""
    implementation = verifier.implementation

    def run(source: Source) -> Tokens:
        coins = None
        if "coins" in verifier.keywords:
            where = str(getattr(implementation, "__qualname__", implementation))
            accept = Call("coins.accept", batch.draft_tokens.shape, where)
            race = Call("coins.race", (len(batch), batch.target_probs.shape[2]), where)
            coins = Coins(source.uniforms(accept), source.exponentials(race))
        arguments, keywords = verifier.arguments(batch, program.generator, coins)
        answer = verifier.read_answer(implementation(*arguments, **keywords), batch)
        first, *others = (answer.tokens[row, : answer.counts[row]].tolist() for row in rows)
        return tuple(sum(([NO_TOKEN, *block] for block in others), first))

    program = Program(run, implementation, max_runs)
    return program
