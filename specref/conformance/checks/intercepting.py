"""Work of a check that runs the implementation on intercepted randomness."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from specref.conformance.judge import Judge
from specref.contracts.batch import draw_batch_coins
from specref.contracts.timeout import within
from specref.probing.coin_use import drawn_elsewhere
from specref.probing.verification import verification_program

Result = TypeVar("Result")
ROWS = 500


def intercepted(judge: Judge, work: Callable[[], Result]) -> Result:
    """Work within the judge's patience, which counts from the last run that returned.

    What the implementation raises is an outcome of its run; any other exception is the judge's.

    Raises
    ------
    HungError
        A run did not return.
    """

    def attempt() -> Result | Exception:
        try:
            return work()
        except Exception as error:
            return error

    found = within(judge.timeout, attempt)
    if isinstance(found, Exception):
        raise found
    return found


def beside_coins(judge: Judge) -> str:
    """What decides the block of a sampler that declares coins, beside them; empty if nothing.

    Tried on two drafts, of which either may be rejected.
    """
    p = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25]])
    q = np.array([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25]])
    program = verification_program(
        judge.implementation, p, q, (1, 1), judge.capabilities, kind=type(judge.verifier)
    )
    found = intercepted(judge, partial(drawn_elsewhere, program))
    return _equal_coins(judge) if found is None else found


def _equal_coins(judge: Judge) -> str:
    """What is seen of that without interception: blocks of equal coins and other randomness."""
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
