"""Stage independence, identical rows: at every distance, over calls, and within a call."""

import math
from functools import partial

import numpy as np

from specref.arrays import Ints, one_hot_rows
from specref.conformance.checks.check import Check, failed, not_applicable, passed
from specref.conformance.checks.strata import sent_as_text
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome
from specref.conformance.strata.calling import Called
from specref.contracts.batch import Batch
from specref.contracts.ragged.contract import RaggedContract
from specref.contracts.timeout import Deadline, within
from specref.contracts.verify.contract import VerifyContract
from specref.statistics.identical import alike_at, detectable_share, evenness

SIZE = 4
LARGE = 32_768
# Rows of a call, calls, tokens of the vocabulary.
SIZES = ((1 << 13, 4, SIZE), (64, 1_024, SIZE), (3, 400, SIZE), (2, 400, LARGE))


def identical(rows: int, vocabulary: int = SIZE) -> Batch:
    """Rows with four tokens as likely, and a certain draft, kept with probability 1 / 4."""
    none = np.zeros(rows, dtype=np.int64)
    p = np.zeros((rows, 2, vocabulary))
    p[:, :, :SIZE] = 1 / SIZE
    return Batch(p, one_hot_rows(none[:, None], vocabulary), none[:, None], none + 1, none)


def independent(way: str, judge: Judge) -> Outcome:
    """Many identical rows, in large batches, called in one way."""
    verifier = judge.called(way)
    if why := verifier.refusal():
        return not_applicable(why)
    verifier.copies = True  # one batch is for many calls
    told = []
    for rows, calls, vocabulary in SIZES:
        if vocabulary == LARGE and sent_as_text(judge):
            continue
        rows = min(judge.capabilities.batch or rows, rows)
        batch = identical(rows, vocabulary)
        first = within(judge.timeout, partial(first_tokens, verifier, batch, calls, judge))
        level = judge.level / len(SIZES) / 2
        if wrong := alike(first, level) or uneven(first, level):
            return wrong
        n = first.size
        least = detectable_share(n, SIZE, level, n // 2)
        over = f" over {vocabulary:,} tokens" * (vocabulary > SIZE)
        told.append(
            f"{calls:,} calls of {rows:,} identical rows{over}: {least:.1%} of pairs with equal "
            f"numbers at any distance up to {n // 2:,} would have been found"
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


def first_tokens(verifier: Called, batch: Batch, calls: int, judge: Judge) -> Ints:
    """The first token of each row of each call."""
    deadline, rng = Deadline(), judge.rng(f"identical/{verifier.way}/{len(batch)}")
    answers = [verifier.answer(batch, rng, deadline=deadline) for _ in range(calls)]
    return np.stack([answer.tokens[:, 0] for answer in answers])


WAYS = (
    ("", "plain", VerifyContract),
    ("-bare", "bare", VerifyContract),
    ("-generators-kept", "kept-generators", VerifyContract),
    ("-seeds-in-a-row", "seeds-in-a-row", RaggedContract),
)
CHECKS = tuple(
    Check(
        f"independence/identical-rows{name}",
        kind,
        partial(independent, way),
        statistical=True,
        finding=Finding.DEPENDENCE,
        law=True,
    )
    for name, way, kind in WAYS
)
