"""Stage smoke: the right form, arguments left unchanged, randomness that differs."""

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.conformance.checks.check import (
    CALLS,
    DRAFTS,
    Check,
    failed,
    inconclusive,
    not_applicable,
    passed,
    repeated_answers,
)
from specref.conformance.checks.strata import first_answered
from specref.conformance.greedy import departures, first_departure, likeliest
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome, Status
from specref.contracts.batch import Answer, Batch, draw_batch_coins
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.sampling import LARGE_BATCH
from specref.contracts.timeout import HungError, within
from specref.models import as_float

ROWS, TIMES = 16, 256
SINGLE, FEWER, TEXTS, SAMPLE = 1_024, 256, 64, 64
"""Calls of one row; in the profile smoke, where a tensor library spends most of the time here."""
LEAST = 20
# Of the first token, whose law every lossless rule has in common.
COLLISIONS = (3**2 + 1 + 1 + 1) / 6**2
RARE = 1e-12


def identical_rows(rows: int) -> Batch:
    """Rows in which every draft is certain, and no token of the target is.

    The first token of every lossless rule is random then, and has the target's law.
    """
    p = np.array([[3, 1, 1, 1], [1, 3, 1, 1], [1.5, 1.5, 1.5, 1.5]]) / 6
    q = np.eye(4)[:2]
    tile, none = (rows, 1, 1), np.zeros(rows, dtype=np.int64)
    return Batch(np.tile(p, tile), np.tile(q, tile), np.tile([0, 1], (rows, 1)), none + 2, none)


def answers_to_identical(judge: Judge, rows: int, times: int) -> list[Answer]:
    """The answers to a batch of so many identical rows in repeated calls."""
    return repeated_answers(judge, judge.verifier, identical_rows(rows), times, "varying")


def calls_vary(judge: Judge) -> Outcome:
    """Other randomness gives other blocks, and no call repeats an earlier one's."""
    times = FEWER if judge.options.profile == "smoke" else SINGLE
    given = answers_to_identical(judge, 1, times)
    tokens = np.concatenate([answer.tokens for answer in given])
    distinct, blocks = np.unique(tokens, axis=0, return_inverse=True)
    if len(distinct) > 1:
        distance = repeats(blocks.ravel())
        if distance:
            said = f"calls repeat the random numbers of {distance} calls before"
            return failed(said, between="calls")
        return passed(_seen(len(distinct), times))
    batch = judge.sample(judge.fixtures[0], SAMPLE, "argmax")
    tokens = judge.verifier(batch, judge.rng("argmax")).tokens
    eos = judge.fixture(judge.fixtures[0]).eos
    own = departures(batch, likeliest(judge.verifier, batch), tokens, eos)
    return failed(_never(times, greedy=not own.size), between="calls")


def texts_vary(judge: Judge) -> Outcome:
    """Other randomness gives other tokens."""
    _, blocks, _ = judge.calls(judge.fixture("wide").only(0))(TEXTS, judge.rng("varying"))
    distinct = len(np.unique(blocks, axis=0))
    if distinct > 1:
        return passed(_seen(distinct, TEXTS))
    return failed(_never(TEXTS, greedy=all(map(partial(_is_argmax, judge), CHAIN_FIXTURES))))


def _is_argmax(judge: Judge, name: str) -> bool:
    """Whether the tokens at each place of a fixture are those of greedy decoding."""
    fixture = judge.fixture(name)
    _, blocks, _ = judge.calls(fixture)(len(fixture.places), judge.rng("argmax"))
    drawn = [tuple(token for token in block if token >= 0) for block in blocks.tolist()]
    target = as_float(fixture.target)
    return all(
        first_departure(target, place.context, block) is None
        for place, block in zip(fixture.places, drawn, strict=True)
    )


def _seen(distinct: int, times: int) -> str:
    return f"{distinct} different answers in {times:,} calls"


def _never(times: int, *, greedy: bool) -> str:
    hint = "; its tokens are those of argmax (greedy=true if it decodes so)" if greedy else ""
    return (
        f"{times:,} calls with other randomness gave one and the same answer: its generator is "
        f"seeded anew in every call, or it has none{hint}"
    )


def rows_vary(judge: Judge) -> Outcome:
    """Identical rows do not get the same random numbers, neither all of them nor distant ones.

    They do if, in every call, all rows agree, though not always on the same: for independent
    rows that has a chance below 1e-11, whatever the law of a row.
    """
    rows = min(judge.capabilities.batch or ROWS, ROWS)
    if rows < 2:
        return not_applicable("takes one row at a time")
    given = answers_to_identical(judge, rows, TIMES)
    if agree([answer.counts for answer in given]):
        said = f"in {TIMES} calls all {rows} identical rows accepted equally many drafts"
        return failed(said, between="rows")
    for count in (1, 2, 3):
        last = [answer.tokens[answer.counts == count, count - 1] for answer in given]
        if agree(last):
            return failed(
                f"in {TIMES} calls all identical rows with {count} tokens had the same last one",
                between="rows",
            )
    (large,) = answers_to_identical(
        judge, min(judge.capabilities.batch or LARGE_BATCH, LARGE_BATCH), 1
    )
    single = np.where(large.counts == 1, large.tokens[:, 0], NO_TOKEN)
    shares = np.bincount(large.counts) / len(large.counts)
    for values, most in ((single, COLLISIONS), (large.counts, 0.5 + float(shares @ shares))):
        distance = repeats(values, most)
        if distance:
            return failed(f"identical rows {distance} apart share random numbers", between="rows")
    return passed()


def agree(calls: list[Ints]) -> bool:
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


def repeats(values: Ints, most: float = COLLISIONS) -> int | None:
    """The shortest distance at which values agree more often than independent ones do.

    By Hoeffding's inequality, for the two halves of the pairs at a distance that have no value
    in common; over all distances it errs with probability at most 1e-12. Where values agree
    too often at every distance, their law is to blame.

    -1 is no value; `most` bounds the probability that two values agree.

    Examples
    --------
    >>> values = np.random.default_rng(1).integers(4, size=1000)
    >>> repeats(values), repeats(np.tile(values[:300], 4))
    (None, 300)
    """
    distinct, times = np.unique(values[values >= 0], return_counts=True)
    most = max(most, float((times**2).sum() / max(times.sum(), 1) ** 2))
    pairs = _at_distances(values >= 0)
    agreeing = sum(_at_distances(values == value) for value in distinct)
    slack = np.sqrt((math.log(2 * len(values) / RARE)) / np.maximum(pairs, 1))
    found = np.flatnonzero(agreeing > (most + slack) * pairs)
    return int(found[0]) + 1 if len(found) else None


def _at_distances(there: np.ndarray) -> Floats:
    """The number of pairs at distance 1, 2, … up to half the length that are both there."""
    size = len(there)
    spectrum = np.fft.rfft(there, 2 * size)
    counts = np.fft.irfft(spectrum * spectrum.conj(), 2 * size)[1 : size // 2 + 1]
    return np.asarray(np.rint(counts))


VARYING = (
    Check("smoke/calls-vary", DRAFTS, calls_vary, finding=Finding.DEPENDENCE, law=True),
    Check("smoke/texts-vary", CALLS, texts_vary, finding=Finding.DEPENDENCE, law=True),
    Check("smoke/rows-vary", DRAFTS, rows_vary, finding=Finding.DEPENDENCE, law=True),
)


SIZE = 24
ARGUMENTS = ("target_probs", "draft_probs", "draft_tokens", "parents")
LARGE, LARGE_ROWS, FEW = 32_000, 8, 40
TRIES = 5


def answers(judge: Judge) -> Outcome:
    """Tokens and counts of the right shapes, dtypes and ranges, on every fixture."""
    first = first_error(judge)
    for name in judge.fixtures:
        judge.verifier(judge.sample(name, SIZE, name), judge.rng("answers"))
    if first:
        raise first
    return passed()


def first_error(judge: Judge) -> BrokenContractError | None:
    """Make the call that `strata/first-call` judges; an answer that breaks the contract."""
    if judge.capabilities.greedy or judge.contract.trees:
        return None
    try:
        first_answered(judge)
    except HungError:
        raise
    except BrokenContractError as error:  # of the small calls, messages are clearer
        return error
    return None


def batch_of_one(judge: Judge) -> Outcome:
    """Batches of a single row are answered in the right form, too."""
    batch = judge.sample(judge.fixtures[0], SIZE, "one")
    for row in range(len(batch)):
        judge.verifier(batch[row : row + 1], judge.rng("batch-of-one"))
    return passed()


def no_drafts(judge: Judge) -> Outcome:
    """Rows without any draft get one token, from the target's first row."""
    if not judge.capabilities.ragged:
        return not_applicable("does not take ragged batches")
    if judge.contract.fewest_drafts(judge.capabilities):
        return not_applicable("does not take trees without nodes")
    size, most = 4, 2
    last = np.eye(size)[-1]
    p, q = np.tile(last, (SIZE, most + 1, 1)), np.tile(last, (SIZE, most, 1))
    p[:, 0] = [0.5, 0.25, 0.25, 0.0]
    none = np.zeros(SIZE, dtype=np.int64)
    batch = Batch(p, q, np.full((SIZE, most), NO_TOKEN), none, none)
    tokens = judge.verifier(batch, judge.rng("no-drafts")).tokens[:, 0]
    for row in np.flatnonzero(tokens == size - 1)[:1].tolist():
        return failed(
            f"row {row} has no draft and got token {tokens[row]}, which is the distribution of "
            "padding: target_probs[row, 0] excludes it",
            row=row,
        )
    return passed()


def one_hot(judge: Judge) -> Outcome:
    """`draft_probs` may be None."""
    if not judge.capabilities.one_hot:
        return not_applicable("does not take draft_probs=None")
    judge.verifier(judge.certain(SIZE, "one-hot"), judge.rng("one-hot call"))
    return passed()


def inputs_unchanged(judge: Judge) -> Outcome:
    """The arrays that it was given are what they were."""
    if judge.capabilities.in_place:
        return not_applicable("may change what it is given")
    for name in judge.fixtures:
        chunk = judge.sample(name, SIZE, "inputs")[: judge.capabilities.batch or SIZE]
        bare = judge.capabilities.one_hot and judge.contract.laws_optional
        for each in [chunk, chunk.without_q()] if bare else [chunk]:
            try:
                found = within(judge.timeout, partial(changes, judge, each))
            except BrokenContractError:
                judge.verifier(each, judge.rng("inputs-unchanged"))  # which says what is to blame
                raise
            for change in found:
                return failed(f"{change} (in_place=true if it may)")
    return passed()


def changes(judge: Judge, batch: Batch) -> list[str]:
    """Descriptions of the arguments that a call changed."""
    verifier, rng = judge.verifier, judge.rng("inputs-unchanged")
    arguments, keywords = verifier.arguments(batch, rng)
    before = [(name, _plain(array).copy()) for name, array in _arrays(arguments, keywords)]
    with verifier.around_call(batch, rng):
        verifier.implementation(*arguments, **keywords)
    after = [_plain(array) for _, array in _arrays(arguments, keywords)]
    return [
        f"{name}{where} was {old[tuple(where)]} and is {new[tuple(where)]} after the call"
        for (name, old), new in zip(before, after, strict=True)
        for where in np.argwhere(old != new)[:1].tolist()
    ]


def _arrays(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from zip(ARGUMENTS, arguments, strict=False)
    yield from ((name, value) for name, value in keywords.items() if hasattr(value, "dtype"))
    coins = keywords.get("coins")
    yield "coins.accept", None if coins is None else coins.accept
    yield "coins.race", None if coins is None else coins.race


def _plain(array: Any) -> Any:
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        array = (array.double() if array.is_floating_point() else array).numpy()
    return np.zeros(0) if array is None else array


def deterministic(judge: Judge) -> Outcome:
    """The same randomness gives the same answer."""
    if not judge.capabilities.seeded:
        return not_applicable("does not claim to be deterministic under a seed")
    verifier = judge.verifier
    batch = judge.sample(judge.fixtures[0], SIZE, "twice")
    coins = draw_batch_coins(batch, judge.rng("coins"))
    # The first call may load a library, whose generator cannot be seeded before.
    verifier(batch, judge.rng("deterministic"), coins)
    outcomes = []
    for _ in range(TRIES if verifier.own_randomness else 1):
        two = (verifier(batch, judge.rng("deterministic"), coins) for _ in range(2))
        outcomes.append(_same(*two))
        if outcomes[0].status == Status.PASSED:
            return outcomes[0]
    if any(outcome.status == Status.PASSED for outcome in outcomes):
        return inconclusive(
            f"{outcomes[0].message}; but not each time: does another thread draw from the global "
            "generators? Then check it alone"
        )
    return outcomes[0]


def _same(first: Answer, second: Answer) -> Outcome:
    for row in np.flatnonzero((first.tokens != second.tokens).any(axis=1))[:1].tolist():
        a, b = first.tokens[row].tolist(), second.tokens[row].tolist()
        return failed(
            f"row {row} is {a}, then {b} under the same seed; say seeded=False if so "
            "(--declare seeded=false)",
            row=row,
        )
    return passed()


def large_vocabulary(judge: Judge) -> Outcome:
    """A vocabulary of 32,000 tokens, most of them impossible."""
    rng = judge.rng("large")
    batch = large_batch(rng)
    p, tokens = batch.target_probs, judge.verifier(batch, rng).tokens
    chance = np.take_along_axis(p, np.maximum(tokens, 0)[:, :, None], axis=2)[:, :, 0]
    for row, j in np.argwhere((tokens != NO_TOKEN) & (chance <= 0))[:1].tolist():
        return failed(
            f"row {row}: token {tokens[row, j]} at position {j} has p = 0", row=row, position=j
        )
    return passed()


def large_batch(rng: np.random.Generator) -> Batch:
    """Two drafts in each row: the likeliest token of the target, then that of the drafter."""
    p, q = _sparse(rng, 3), _sparse(rng, 2)
    drafts = np.stack([p[:, 0].argmax(axis=1), q[:, 1].argmax(axis=1)], axis=1)
    q[:, 0] = (q[:, 0] + (np.arange(LARGE) == drafts[:, :1])) / 2
    none = np.zeros(LARGE_ROWS, dtype=np.int64)
    return Batch(p, q, drafts, none + 2, none)


def _sparse(rng: np.random.Generator, positions: int) -> Floats:
    """Laws of a few tokens among very many."""
    laws = np.zeros((LARGE_ROWS, positions, LARGE))
    for law in laws.reshape(-1, LARGE):
        law[rng.choice(LARGE, FEW, replace=False)] = rng.dirichlet(np.ones(FEW))
    return laws


def calls(judge: Judge) -> Outcome:
    """A function of models returns token ids, as many as it may."""
    for name in CHAIN_FIXTURES:
        judge.one_call(name)
    return passed()


def calls_deterministic(judge: Judge) -> Outcome:
    """The same randomness gives the same tokens."""
    if not judge.capabilities.seeded:
        return not_applicable("does not claim to be deterministic under a seed")
    for _ in range(SIZE):
        first, second = judge.one_call("wide"), judge.one_call("wide")
        if first != second:
            return failed(
                f"{first}, then {second} under the same seed; say seeded=False if so "
                "(--declare seeded=false)"
            )
    return passed()


CHECKS = (
    Check("smoke/answers", DRAFTS, answers, finding=Finding.CONTRACT),
    Check("smoke/calls", CALLS, calls, finding=Finding.CONTRACT),
    Check("smoke/batch-of-one", DRAFTS, batch_of_one, finding=Finding.CONTRACT),
    Check("smoke/no-drafts", DRAFTS, no_drafts),
    Check("smoke/one-hot", DRAFTS, one_hot, finding=Finding.CONTRACT),
    Check("smoke/inputs-unchanged", DRAFTS, inputs_unchanged, finding=Finding.CONTRACT),
    Check("smoke/deterministic", DRAFTS, deterministic, finding=Finding.CONTRACT),
    Check("smoke/calls-deterministic", CALLS, calls_deterministic, finding=Finding.CONTRACT),
    Check("smoke/large-vocabulary", DRAFTS, large_vocabulary, large=True),
    *VARYING,
)
