"""Stage independence, identical rows: at every distance, over calls, and within a call."""

import math
from functools import partial

import numpy as np

from specref.arrays import Ints, one_hot_rows
from specref.conformance.checks.check import Check, failed, not_applicable, passed
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome
from specref.conformance.strata.calling import WAYS, Called
from specref.contracts.batch import Batch
from specref.contracts.timeout import Deadline, within
from specref.contracts.verify.contract import VerifyContract
from specref.statistics.identical import alike_at, detectable_share, evenness

SIZE = 4
SIZES = ((1 << 13, 4), (64, 1_024))


def identical(rows: int) -> Batch:
    """Rows with a uniform target and a certain draft, which is kept with probability 1 / 4."""
    none = np.zeros(rows, dtype=np.int64)
    p = np.full((rows, 2, SIZE), 1 / SIZE)
    return Batch(p, one_hot_rows(none[:, None], SIZE), none[:, None], none + 1, none)


def independent(way: str, judge: Judge) -> Outcome:
    """Many identical rows, in large batches, called in one way."""
    verifier: Called = WAYS[way](judge.implementation, judge.capabilities, judge.timeout)
    if why := verifier.refusal():
        return not_applicable(why)
    told = []
    for rows, calls in SIZES:
        rows = min(judge.capabilities.batch or rows, rows)
        first = within(judge.timeout, partial(first_tokens, verifier, rows, calls, judge))
        level = judge.level / len(SIZES) / 2
        if wrong := alike(first, level) or uneven(first, level):
            return wrong
        n = first.size
        least = detectable_share(n, SIZE, level, n // 2)
        told.append(
            f"{calls:,} calls of {rows:,} identical rows: {least:.1%} of pairs with equal numbers "
            f"at any distance up to {n // 2:,} would have been found"
        )
    return passed("; ".join(told))


def alike(first: Ints, level: float) -> Outcome | None:
    """The outcome if rows at some distance are alike, within calls or over them."""
    found = alike_at(first.ravel(), SIZE, level)
    if found is None:
        return None
    distance, mean = found
    how = "share random numbers" if mean > 0 else "get opposite random numbers"
    where = f"{distance:,} apart" + ", over calls" * (distance >= first.shape[1])
    return failed(f"identical rows {where}, {how}", distance=distance, resemblance=mean)


def uneven(first: Ints, level: float) -> Outcome | None:
    """The outcome if tokens are spread over the rows of a call unlike independent ones."""
    rows = first.shape[1]
    for most in range(1, SIZE // 2 + 1):
        hits = (first < most).sum(axis=1)
        evidence, even = evenness(hits, rows, most / SIZE)
        if evidence >= -math.log(level * 2 / SIZE):
            how = "evenly: random numbers are spread" if even else "unevenly: they are shared"
            return failed(
                f"the {rows:,} identical rows of a call get the same tokens too {how} over them",
                log10_evidence=evidence / math.log(10),
            )
    return None


def first_tokens(verifier: Called, rows: int, calls: int, judge: Judge) -> Ints:
    """The first token of each row of each call."""
    batch, deadline = identical(rows), Deadline()
    rng = judge.rng(f"identical/{verifier.way}/{rows}")
    answers = [verifier.answer(batch, rng, deadline=deadline) for _ in range(calls)]
    return np.stack([answer.tokens[:, 0] for answer in answers])


CHECKS = tuple(
    Check(
        f"independence/identical-rows{name}",
        VerifyContract,
        partial(independent, way),
        statistical=True,
        finding=Finding.DEPENDENCE,
        law=True,
    )
    for name, way in (("", "plain"), ("-bare", "bare"))
)
