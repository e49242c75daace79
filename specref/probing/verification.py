"""Exact probing of a verification: the law of the block for given rows and drafts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from specref.arrays import NO_TOKEN, Floats
from specref.coins import Coins
from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities, capabilities_of
from specref.probing.calls import Call
from specref.probing.probe import MAX_PATHS, MAX_RUNS, Probed, probe_program
from specref.probing.program import Program
from specref.probing.source import Source
from specref.vocabulary import Tokens


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
