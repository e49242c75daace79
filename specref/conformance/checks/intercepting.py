"""Runs the implementation on intercepted randomness, for checks."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from specref.conformance.judge import Judge
from specref.contracts.batch import draw_batch_coins
from specref.contracts.timeout import Deadline, within
from specref.probing.coin_use import drawn_elsewhere
from specref.probing.verification import verification_program

Result = TypeVar("Result")
ROWS = 500


def intercepted(judge: Judge, work: Callable[[], Result], most: float | None = None) -> Result:
    """Do work with the judge's timeout, which starts anew whenever a run returns.

    Exceptions of the implementation are outcomes of its runs; any other one is raised here.

    Parameters
    ----------
    most : float, optional
        Seconds for all of the work.

    Raises
    ------
    HungError
        A run did not return.
    UntriedError
        The work took longer than it may.
    """

    def attempt() -> Result | Exception:
        try:
            return work()
        except Exception as error:
            return error

    found = within(judge.timeout, attempt, Deadline(most))
    if isinstance(found, Exception):
        raise found
    return found


def other_randomness(judge: Judge) -> str:
    """What else than its coins decides a block of a sampler that declares coins, or "".

    Tried on two drafts, of which either may be rejected.
    """
    p = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25]])
    q = np.array([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25]])
    program = verification_program(
        judge.implementation, p, q, (1, 1), judge.capabilities, kind=type(judge.verifier)
    )
    found = intercepted(judge, partial(drawn_elsewhere, program))
    if found is not None:
        return found
    # It cannot be intercepted: compare blocks of equal coins with different other randomness.
    batch = judge.sample("wide", ROWS, "equal coins")
    coins = draw_batch_coins(batch, judge.rng("equal coins"))
    one, other = (
        judge.verifier(batch, judge.rng(name), coins).tokens for name in ("one", "other")
    )
    for row in np.flatnonzero((one != other).any(axis=1))[:1].tolist():
        return (
            "declares coins, but they do not decide its block alone: equal coins give "
            f"{one[row].tolist()}, then {other[row].tolist()}"
        )
    return ""
