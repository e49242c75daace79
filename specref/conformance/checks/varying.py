"""Stage smoke, randomness: it differs from call to call, and from row to row."""

from collections import Counter

import numpy as np

from specref.conformance.batch import Answer, Batch
from specref.conformance.checks.check import CALLS, VERIFY, Check, failed, not_applicable, passed
from specref.conformance.contract import Contract
from specref.conformance.judge import TEXT, Judge
from specref.conformance.sampling import Steps, generate_call, step_call
from specref.conformance.status import Outcome

ROWS, TIMES = 16, 256
LEAST = 20


def identical_rows(rows: int) -> Batch:
    """Rows in which every draft is certain, and no token of the target is.

    The first token of every lossless rule is random then, and has the target's law.
    """
    p = np.array([[3, 1, 1, 1], [1, 3, 1, 1], [1.5, 1.5, 1.5, 1.5]]) / 6
    q = np.eye(4)[:2]
    tile, none = (rows, 1, 1), np.zeros(rows, dtype=np.int64)
    return Batch(np.tile(p, tile), np.tile(q, tile), np.tile([0, 1], (rows, 1)), none + 2, none)


def answers(judge: Judge, rows: int) -> list[Answer]:
    """What it answers to the same batch, again and again."""
    batch, rng, verifier = identical_rows(rows), judge.rng("varying"), judge.verifier
    return [verifier(batch, rng) for _ in range(TIMES)]


def calls_vary(judge: Judge) -> Outcome:
    """Other randomness gives other blocks."""
    distinct = {answer.tokens.tobytes() for answer in answers(judge, 1)}
    return _several(len(distinct))


def texts_vary(judge: Judge) -> Outcome:
    """Other randomness gives other tokens."""
    if judge.capabilities.greedy:
        return not_applicable("decodes greedily")
    teeth = judge.teeth("wide").only(0)
    if judge.contract == Contract.STEP:
        call, longest = step_call(judge.implementation, teeth), teeth.lookahead + 1
    else:
        call, longest = generate_call(judge.implementation, teeth, TEXT), TEXT
    _, blocks, _ = Steps(call, teeth, longest, judge.patience)(TIMES, judge.rng("varying"))
    return _several(len(np.unique(blocks, axis=0)))


def _several(distinct: int) -> Outcome:
    if distinct == 1:
        return failed(
            f"{TIMES} calls with other randomness gave one and the same answer: its generator "
            "is seeded anew in every call, or it has none"
        )
    return passed(f"{distinct} different answers in {TIMES} calls")


def rows_vary(judge: Judge) -> Outcome:
    """Identical rows do not get the same random numbers.

    They do if, in every call, all rows agree, though not always on the same: for independent
    rows that has a chance below 1e-12, whatever the law of a row.
    """
    rows = min(judge.capabilities.batch or ROWS, ROWS)
    if rows < 2:
        return not_applicable("takes one row at a time")
    given = answers(judge, rows)
    if agree([answer.counts for answer in given]):
        return failed(f"in {TIMES} calls all {rows} identical rows accepted equally many drafts")
    for count in (1, 2, 3):
        last = [answer.tokens[answer.counts == count, count - 1] for answer in given]
        if agree(last):
            return failed(
                f"in {TIMES} calls all identical rows with {count} tokens had the same last one"
            )
    return passed()


def agree(calls: list[np.ndarray]) -> bool:
    """Whether the values of each call are the same, and at least two values are frequent.

    Examples
    --------
    >>> agree([np.array([0, 0])] * LEAST + [np.array([1, 1])] * LEAST)
    True
    >>> agree([np.array([0, 0])] * LEAST + [np.array([1, 0])] * LEAST)
    False
    """
    shared = [values for values in calls if len(values) > 1]
    if any((values != values[0]).any() for values in shared):
        return False
    times = Counter(int(values[0]) for values in shared)
    return sum(count >= LEAST for count in times.values()) > 1


CHECKS = (
    Check("smoke/calls-vary", VERIFY, calls_vary),
    Check("smoke/texts-vary", CALLS, texts_vary),
    Check("smoke/rows-vary", VERIFY, rows_vary),
)
