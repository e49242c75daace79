"""Identical rows: what shares, opposes or spreads random numbers fails; what does not, passes."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

from specref.adapters.reference import verify_tree
from specref.batched import verifier
from specref.coins import Coins
from specref.conformance.checks import CHECKS as ALL_CHECKS
from specref.conformance.checks import independence
from specref.conformance.checks.independence import IDENTICAL as CHECKS
from specref.conformance.options import CheckOptions
from specref.conformance.status import Finding, Status
from specref.conformance.suite import prepare
from specref.contracts.capabilities import capable
from specref.contracts.table import TREE, VERIFY
from specref.contrib.selftest.triggers import BASE_BUGS, Trigger, triggered
from specref.examples.correct import verify
from specref.statistics.campaign.levels import ALPHA
from specref.statistics.identical import detectable_share
from specref.zoo import ALL
from specref.zoo.parts.batched import drawing

WITH_COINS, BARE, *_ = CHECKS  # test_ragged.py has bugs for the others


def result(verify: Any, which: Any = WITH_COINS, **options: Any) -> Any:
    options = {"timeout": 600, **options}  # nothing is left untried on a busy machine
    judge, (check,) = prepare(verify, CheckOptions(only=[which.id], **options))
    assert check is which
    return check.run(judge)


@pytest.fixture
def few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is about one answer, whatever the number of rows and calls."""
    monkeypatch.setattr(independence, "SIZES", [(64, 200, independence.SIZE)])


def changed(change: Callable[[np.random.Generator, Any, Any], None]) -> Any:
    """A right sampler whose uniforms and noise are changed before they are used."""

    def coins(rng: np.random.Generator, drafts: Any, size: int) -> Coins:
        uniforms, noise = rng.random(drafts.shape), rng.standard_exponential((len(drafts), size))
        change(rng, uniforms, noise)
        return Coins(uniforms, noise)

    return drawing(coins)


def period(rows: int) -> Any:
    def change(rng: np.random.Generator, uniforms: Any, noise: Any) -> None:
        at = np.arange(len(noise)) % rows
        uniforms[:], noise[:] = uniforms[at], noise[at]

    return changed(change)


def one_row_in(count: int) -> Any:
    """Every so many rows have the numbers of row 0."""

    def change(rng: np.random.Generator, uniforms: Any, noise: Any) -> None:
        uniforms[::count], noise[::count] = uniforms[:1], noise[:1]

    return changed(change)


def half_in_pairs(rng: np.random.Generator, uniforms: Any, noise: Any) -> None:
    """Half of the rows have the numbers of other rows, which differ from call to call."""
    half, order = len(noise) // 2, rng.permutation(len(noise))
    uniforms[order[:half]] = uniforms[order[half : 2 * half]]


def ring(size: int) -> Any:
    """Uniforms from a buffer, round and round."""
    buffer, at = np.random.default_rng(5).random(size), [0]

    def change(rng: np.random.Generator, uniforms: Any, noise: Any) -> None:
        index = (at[0] + np.arange(uniforms.size)) % size
        at[0] += uniforms.size
        uniforms[:] = buffer[index].reshape(uniforms.shape)

    return changed(change)


def copied_if(holds: Callable[[int, int], bool]) -> Any:
    """The last row has the numbers of the first, in calls of some shape."""

    def change(rng: np.random.Generator, uniforms: Any, noise: Any) -> None:
        if holds(*noise.shape):
            uniforms[-1:], noise[-1:] = uniforms[:1], noise[:1]

    return changed(change)


def sixteen_bits(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    """Each call has a generator of its own, whose seed has 16 bits."""
    own = np.random.default_rng(rng.integers(1 << 16))
    return verify(target_probs, draft_probs, draft_tokens, rng=own)


def flattened(place: Callable[[Any, int], Any]) -> Any:
    """Uniforms lie one after another, and those of a row are sought at a wrong place."""

    def wrong(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        lens = (draft_tokens >= 0).sum(axis=1)
        flat = rng.random(int(lens.sum()))
        at = place(lens, draft_tokens.shape[1]) % len(flat)
        taken = iter((flat[at], rng.random((len(lens), 1))))
        given = SimpleNamespace(random=lambda size: next(taken))
        return verify(target_probs, draft_probs, draft_tokens, rng=given)

    return wrong


SHARING = {
    "three rows": (copied_if(lambda rows, size: rows == 3), "2 apart, share random numbers"),
    "many tokens": (copied_if(lambda rows, size: size > 16_384), "1 apart, share random numbers"),
    "every 16 rows": (period(16), "identical rows 16 apart, share random numbers"),
    "every 97 rows": (period(97), "identical rows 97 apart, share random numbers"),
    "every 4,096 rows": (period(4_096), "identical rows 4,096 apart, share random numbers"),
    "one row in 20": (one_row_in(20), "identical rows .*0 apart, share random numbers"),
    "half in pairs": (
        changed(half_in_pairs),
        "same tokens too unevenly: they are shared over them",
    ),
    "a ring": (ring(10_007), "identical rows 10,007 apart, over calls, share random numbers"),
    "opposite": (ALL["opposite-uniforms"].make(), "1 apart, get opposite random numbers"),
    "seeds of 16 bits": (sixteen_bits, "calls .* gave 64 identical rows the same tokens"),
    "offsets one row late": (
        flattened(lambda lens, most: lens.cumsum()[:, None] + np.arange(most)),
        "a row of 2 drafts and the row of 1 draft after it share random numbers",
    ),
    "rows of the longest, round and round": (
        flattened(lambda lens, most: np.arange(most * len(lens)).reshape(-1, most)),
        "rows of 2 drafts among others, 3,072 apart, share random numbers",
    ),
    "spread": (ALL["spread-uniforms"].make(), "too evenly: random numbers are spread over them"),
}


@pytest.mark.deep(one_in=15)
@pytest.mark.parametrize("name", SHARING)
def test_rows_whose_numbers_depend_on_each_other_fail(name: str) -> None:
    sharing, message = SHARING[name]
    found = result(sharing)
    assert found.status == Status.FAILED
    assert found.finding == Finding.DEPENDENCE
    assert re.search(message, found.message)


@pytest.mark.deep(one_in=2)
@pytest.mark.strata
@pytest.mark.parametrize("which", [WITH_COINS, BARE])
def test_independent_rows_pass_and_are_told_what_would_have_been_found(which: Any) -> None:
    found = result(verifier(), which)
    assert found.status == Status.PASSED
    statistical = sum(one.statistical and one.is_for(VERIFY) for one in ALL_CHECKS)
    level = ALPHA / statistical / 10  # four sizes of batches and unequal rows, two tests of each
    least = detectable_share(4 * 8_192, 4, level, 2 * 8_192)
    assert 0.03 < least < 0.06
    said = f"4 calls of 8,192 identical rows: {least:.1%} of pairs with equal numbers at any"
    assert said in found.message
    assert "1,024 calls of 64 identical rows: " in found.message
    assert "400 calls of 3 identical rows: " in found.message
    assert "400 calls of 2 identical rows over 32,768 tokens: " in found.message


@pytest.mark.usefixtures("few_calls")
def test_a_sampler_that_changes_what_it_is_given_is_given_copies() -> None:
    @capable(in_place=True)
    def overwriting(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        answer = verifier()(target_probs.copy(), draft_probs, draft_tokens, rng=rng)
        target_probs[...] = np.arange(target_probs.shape[2]) == 0
        return answer

    assert result(overwriting).status == Status.PASSED


@pytest.mark.usefixtures("few_calls")
@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("bug", BASE_BUGS, ids=lambda bug: bug.id)
def test_a_wrong_law_is_not_called_dependence(bug: Any) -> None:
    always = Trigger("always", "shape", lambda at: True)
    assert result(triggered(bug, always)).status == Status.PASSED


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("drafts", [1, 2])
def test_a_wrong_law_of_rows_of_some_length_is_not_called_dependence(drafts: int) -> None:
    def rejecting(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        tokens, counts = verify(target_probs, draft_probs, draft_tokens, rng=rng)
        wrong = (draft_tokens >= 0).sum(axis=1) == drafts
        if draft_tokens.shape[1] == 2:
            tokens[wrong, 1:], counts[wrong] = -1, 1
            tokens[wrong, 0] = 1
        return tokens, counts

    assert result(rejecting).status == Status.PASSED


@pytest.mark.usefixtures("few_calls")
def test_rows_of_unequal_length_come_with_their_lengths() -> None:
    """A sampler that takes all rows to be of one length unless it is told otherwise is right."""

    def told(
        target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any, lens: Any = None
    ) -> Any:
        assert lens is not None or (draft_tokens >= 0).all()
        return verify(target_probs, draft_probs, draft_tokens, rng=rng)

    assert {result(told, which).status for which in (WITH_COINS, BARE)} == {Status.PASSED}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(("batch", "calls"), [(1, 0), (2, 1_024), (100, 163)])
def test_samplers_of_small_batches_are_not_called_for_ever(batch: int, calls: int) -> None:
    met = []

    def counting(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        met.append(target_probs.shape[2])
        return verify(target_probs, draft_probs, draft_tokens, rng=rng)

    assert result(counting, claims={"batch": batch}).status == Status.PASSED
    assert met.count(2) == calls


@pytest.mark.usefixtures("few_calls")
def test_a_token_that_never_comes_is_not_called_dependence() -> None:
    never = verifier(accepted=lambda batch: np.zeros(len(batch.p), dtype=int))
    assert result(never).status == Status.PASSED


@pytest.mark.usefixtures("few_calls")
def test_what_takes_no_optional_coins_is_not_called_without() -> None:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        return verifier()(target_probs, draft_probs, draft_tokens, rng=rng)

    assert result(verify, BARE).status == Status.NOT_APPLICABLE
    assert result(capable(batch=4)(verify)).status == Status.PASSED


@pytest.mark.usefixtures("few_calls")
def test_own_randomness_is_judged_where_coins_are_optional() -> None:
    """With coins all is well; the generator that it has of its own is seeded anew in each call."""

    def verify(
        target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any, coins: Any = None
    ) -> Any:
        own = np.random.default_rng(0)
        return verifier()(target_probs, draft_probs, draft_tokens, rng=own, coins=coins)

    assert result(verify).status == Status.PASSED
    found = result(verify, BARE)
    assert found.status == Status.FAILED
    assert "over calls, share random numbers" in found.message


TREES = next(one for one in CHECKS if one.id == "independence/identical-trees")


def same_numbers_above(nodes: int) -> Any:
    """Rows of trees of more nodes have the same random numbers."""

    def verify(p: Any, q: Any, drafts: Any, parents: Any, *, rng: np.random.Generator) -> Any:
        if drafts.shape[1] <= nodes:
            return verify_tree(p, q, drafts, parents, rng=rng)
        seed, tokens, counts = int(rng.integers(2**63)), [], []
        for row in range(len(p)):
            one = slice(row, row + 1)
            laws = None if q is None else q[one]
            own = np.random.default_rng(seed)
            block, count = verify_tree(p[one], laws, drafts[one], parents[one], rng=own)
            tokens.append(block[0])
            counts.append(count[0])
        return np.stack(tokens), np.array(counts)

    return verify


def test_rows_of_large_trees_are_compared_with_each_other(monkeypatch) -> None:
    monkeypatch.setattr(independence, "TREE_SIZES", [(64, 4), (3, 50)])
    assert result(verify_tree, TREES, contract=TREE).status == Status.PASSED
    wrong = result(same_numbers_above(64), TREES, contract=TREE)
    assert (wrong.status, wrong.finding) == (Status.FAILED, Finding.DEPENDENCE)
    assert result(same_numbers_above(84), TREES, contract=TREE).status == Status.PASSED

    def first_alone(p: Any, q: Any, drafts: Any, parents: Any, *, rng: Any) -> Any:
        tokens = np.full((len(p), 1), -1)
        tokens[:, 0] = (rng.random((len(p), 1)) > p[:, 0].cumsum(axis=1)).sum(axis=1)
        return tokens, np.ones(len(p), dtype=int)

    # Its blocks, which are shorter, are completed.
    assert result(first_alone, TREES, contract=TREE).status == Status.PASSED
