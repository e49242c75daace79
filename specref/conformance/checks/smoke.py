"""Stage smoke: whether it answers in the right form, and leaves its arguments unchanged."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from specref.arrays import NO_TOKEN, Floats
from specref.conformance.checks import varying
from specref.conformance.checks.check import (
    CALLS,
    DRAFTS,
    Check,
    failed,
    inconclusive,
    not_applicable,
    passed,
)
from specref.conformance.checks.strata import first_answered
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome, Status
from specref.contracts.batch import Answer, Batch, draw_batch_coins
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.timeout import HungError, within

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
            f"row {row} has no draft and got token {tokens[row]}, which is the law of padding: "
            "target_probs[row, 0] excludes it",
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
            "(--claim seeded=false)",
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
                "(--claim seeded=false)"
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
    *varying.CHECKS,
)
