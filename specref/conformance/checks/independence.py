"""Stage independence: rows of a batch, and one call after another, share no randomness."""

import math
from collections.abc import Iterable
from functools import partial

import numpy as np

from specref.arrays import NO_TOKEN, Ints, one_hot_rows
from specref.conformance.checks.check import (
    Check,
    Kinds,
    failed,
    not_applicable,
    not_run,
    passed,
    repeated_answers,
    sampled,
    untried,
)
from specref.conformance.checks.joint import BLOCKS, sharing
from specref.conformance.checks.strata import sent_as_text
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome
from specref.conformance.strata.calling import Called
from specref.conformance.strata.shape import TreeShape
from specref.conformance.strata.table import FULL_TREE
from specref.contracts.batch import Answer, Batch, TreeBatch
from specref.contracts.calling import Verifier
from specref.contracts.errors import UntriedError
from specref.contracts.fixtures import CHAIN_FIXTURES, TREE_FIXTURES
from specref.contracts.ragged import RaggedContract
from specref.contracts.timeout import Deadline, patience
from specref.contracts.tree import TreeContract
from specref.contracts.verify import VerifyContract
from specref.statistics.campaign.bets import LAGS
from specref.statistics.identical import alike_at, association, detectable_share, evenness


def rows_independent(name: str, judge: Judge) -> Outcome:
    """Bet that a token repeats the one some rows before, or follows its rank.

    If the law is wrong, such bets win without any dependence; then only evidence that holds for
    any law counts.
    """
    if why := judge.refusal(name):
        return not_applicable(why)
    found = judge.blocks(name)
    if found.sharing:
        return failed(sharing(found), log10_evidence=found.shared)
    if found.dependent and found.lossy:
        return not_run(
            f"blocked by joint/{name}: the bets take the target's distribution for granted"
        )
    if found.dependent:
        named = [s.component for s in found.report.suspects if s.component.startswith("lag")]
        return failed(
            f"rows depend on each other: evidence 10^{found.dependence:.0f}; a token "
            + (named[0].removeprefix("lag: ") if named else "follows an earlier one"),
            log10_evidence=found.dependence,
        )
    lags = ", ".join(map(str, LAGS))
    return passed(
        f"{found.report.trials:,} blocks, no token depends on those {lags} blocks before"
    )


def of_fixtures(kinds: Kinds, names: Iterable[str]) -> tuple[Check, ...]:
    """Whether rows are independent on some fixtures."""
    return tuple(
        sampled(
            f"independence/rows-{name}",
            kinds,
            partial(rows_independent, name),
            finding=Finding.DEPENDENCE,
        )
        for name in names
    )


CHECKS = of_fixtures(BLOCKS, CHAIN_FIXTURES)
OF_TREES = of_fixtures(TreeContract, TREE_FIXTURES)


SIZE = 4
LARGE = 32_768
# Rows of a call, calls, tokens of the vocabulary.
SIZES = ((1 << 13, 4, SIZE), (64, 1_024, SIZE), (3, 400, SIZE), (2, 400, LARGE))
LENS, UNEQUAL, UNEQUAL_CALLS, MOST_CALLS = (2, 1), 1 << 13, 2, 1_024
TESTS = len(SIZES) + 1
NODES = TreeShape(SIZE, FULL_TREE, 1).nodes
TREE_SIZES = ((512, 4), (3, 300))
"""Rows of a call, and calls."""
NEGLIGIBLE, MARGIN = 1e-20, 0.05


def identical(rows: int, vocabulary: int = SIZE) -> Batch:
    """Rows with four tokens as likely, and a certain draft, kept with probability 1 / 4."""
    none = np.zeros(rows, dtype=np.int64)
    p = np.zeros((rows, 2, vocabulary))
    p[:, :, :SIZE] = 1 / SIZE
    return Batch(p, one_hot_rows(none[:, None], vocabulary), none[:, None], none + 1, none)


def unequal(rows: int) -> Batch:
    """Rows of two certain drafts and of one, in turn, and two tokens as likely at each place."""
    lens = np.resize(LENS, rows)
    missing = np.arange(max(LENS)) >= lens[:, None]
    p = np.full((rows, max(LENS) + 1, 2), 0.5)
    p[:, 1:][missing] = (0, 1)
    drafts = np.where(missing, NO_TOKEN, 0)
    q = one_hot_rows(np.where(missing, 1, 0), 2)
    return Batch(p, q, drafts, lens, np.zeros(rows, dtype=np.int64))


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
        try:
            answers = all_answers(verifier, verifier.way, batch, calls, judge)
        except UntriedError as error:
            if not error.by_size:
                raise
            judge.untried.append(f"{calls:,} calls of {batch.told_sizes()} ({error.why})")
            continue
        first = np.stack([answer.tokens[:, 0] for answer in answers])
        level = judge.level / TESTS / 2
        if wrong := alike(first, level) or uneven(first, level) or repeated(first):
            return wrong
        n = first.size
        least = detectable_share(n, SIZE, level, n // 2)
        over = f" over {vocabulary:,} tokens" * (vocabulary > SIZE)
        told.append(
            f"{calls:,} calls of {rows:,} identical rows{over}: {least:.1%} of pairs with equal "
            f"numbers at any distance up to {n // 2:,} would be detected"
        )
    # Without `lens`, some samplers take all rows to be of one length: see `bare` in the strata.
    unequal_too = judge.capabilities.ragged and way != "bare"
    if unequal_too and (wrong := ragged(verifier, judge)):
        return wrong
    return passed("; ".join(told)) if told else untried(judge.untried[-1])


def alike(
    first: Ints, level: float, size: int = SIZE, rows: str = "identical rows"
) -> Outcome | None:
    """The outcome if rows at some distance are alike, within calls or over them."""
    found = alike_at(first.ravel(), size, level)
    if found is None:
        return None
    distance, mean = found
    how = "share random numbers" if mean > 0 else "get opposite random numbers"
    where = f"{distance:,} apart" + ", over calls" * (distance >= first.shape[1])
    between = "calls" if distance >= first.shape[1] else "rows"
    evidence = {"distance": distance, "resemblance": mean, "between": between}
    return failed(f"{rows} {where}, {how}", **evidence)


def repeated(first: Ints) -> Outcome | None:
    """The outcome if two calls gave all rows the same tokens: seeds have few bits, for example.

    Independent calls hardly do, unless the law of a row is wrong, and gives a token too often.
    """
    calls, rows = first.shape
    shares = np.stack([(first == token).mean(axis=0) for token in range(SIZE)])
    equal = np.minimum((shares**2).sum(axis=0) + MARGIN, 1)
    if math.log(math.comb(calls, 2)) + np.log(equal).sum() > math.log(NEGLIGIBLE):
        return None
    _, index, times = np.unique(first, axis=0, return_index=True, return_counts=True)
    again = index[times > 1]
    if not again.size:
        return None
    one = int(again.min())
    other = int(np.flatnonzero((first == first[one]).all(axis=1))[1])
    return failed(
        f"calls {one + 1:,} and {other + 1:,} of {calls:,} gave {rows:,} identical rows the same "
        "tokens: they share random numbers",
        between="calls",
    )


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
                between="rows",
            )
    return None


def ragged(verifier: Called, judge: Judge) -> Outcome | None:
    """The outcome if rows of two drafts and of one, in turn, share random numbers."""
    rows = min(judge.capabilities.batch or UNEQUAL, UNEQUAL)
    if rows < len(LENS):
        return None
    calls = min(UNEQUAL_CALLS * UNEQUAL // rows, MOST_CALLS)
    answers = all_answers(verifier, verifier.way, unequal(rows), calls, judge)
    level = judge.level / TESTS / 4
    kept = np.stack([answer.counts for answer in answers]) - 1
    first = np.stack([answer.tokens[:, 0] for answer in answers])
    for start, (one, other) in enumerate((LENS, LENS[::-1])):
        after = kept[:, start + 1 :: 2]
        left, right = kept[:, start::2][:, : after.shape[1]].ravel(), after.ravel()
        evidence = association(left, right, (one + 1, other + 1))
        if evidence >= -math.log(level):
            return failed(
                f"a row of {drafts(one)} and the row of {drafts(other)} after it share random "
                f"numbers: evidence 10^{evidence / math.log(10):.0f} in {left.size:,} pairs that "
                "how many drafts they keep depends on each other",
                log10_evidence=evidence / math.log(10),
                between="rows",
            )
        if wrong := alike(first[:, start::2], level, 2, f"rows of {drafts(one)} among others,"):
            return wrong
    return None


def full_trees(rows: int) -> TreeBatch:
    """Equal trees, in which every token is drafted, and as likely, as deep as they are."""
    nodes = np.tile(np.arange(SIZE), NODES // SIZE)
    above = np.repeat(np.arange(-1, NODES // SIZE - 1), SIZE)
    none = np.zeros(rows, dtype=np.int64)
    p = np.full((rows, NODES + 1, SIZE), 1 / SIZE)
    tokens, parents = (np.tile(one, (rows, 1)) for one in (nodes, above))
    return TreeBatch(p, None, tokens, none + NODES, none, parents)


def independent_trees(judge: Judge) -> Outcome:
    """Equal trees of many nodes: all tokens of all rows are as independent as throws of a die.

    Rows whose blocks are shorter are completed with such tokens.
    """
    if not judge.capabilities.one_hot:
        return not_applicable("does not take draft_probs=None")
    told, rng, most_tokens = [], judge.rng("identical/completed"), len(FULL_TREE) + 1
    for most, calls in TREE_SIZES:
        rows = min(judge.capabilities.batch or most, most)
        answers = all_answers(judge.verifier, "trees", full_trees(rows), calls, judge)
        tokens = np.stack([answer.tokens[:, :most_tokens] for answer in answers])
        tokens = np.where(tokens >= 0, tokens, rng.integers(SIZE, size=tokens.shape))
        every = tokens.reshape(calls, -1)
        trees = f"of {rows:,} equal trees a call with {most_tokens} tokens each, tokens"
        if wrong := alike(every, NEGLIGIBLE, rows=trees) or repeated(every):
            return wrong
        told.append(f"{calls:,} calls of {rows:,} trees")
    return passed(f"{'; '.join(told)}, all of {NODES} nodes")


def drafts(count: int) -> str:
    """So many drafts, in words."""
    return f"{count} draft{'s' * (count > 1)}"


def all_answers(
    verifier: Verifier, way: str, batch: Batch, calls: int, judge: Judge
) -> list[Answer]:
    """The answers to the same batch in repeated calls, which have a time limit together."""
    large, most = batch.target_probs.shape[2] == LARGE, judge.timeout
    deadline = Deadline(patience(most) if large else most)
    name = f"identical/{way}/{len(batch)}"
    return repeated_answers(judge, verifier, batch, calls, name, deadline)


WAYS = (
    ("", "plain", VerifyContract),
    ("-bare", "bare", VerifyContract),
    ("-generators-kept", "kept-generators", VerifyContract),
    ("-seeds-in-a-row", "seeds-in-a-row", RaggedContract),
)
IDENTICAL = (
    *(
        sampled(
            f"independence/identical-rows{name}",
            kind,
            partial(independent, way),
            finding=Finding.DEPENDENCE,
        )
        for name, way, kind in WAYS
    ),
    Check(
        "independence/identical-trees",
        TreeContract,
        independent_trees,
        finding=Finding.DEPENDENCE,
        law=True,
    ),
)
