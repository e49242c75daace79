"""What of a call is optional, and whether a crash is due to it."""

from typing import Any

import numpy as np
import pytest

from specref.adapters.reference import verify_tree
from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.errors import LARGE, SITUATIONS, BrokenContractError, UntriedError, stumbled
from specref.contracts.fixtures import CHAIN_FIXTURES, TREE_FIXTURES
from specref.contracts.tree import TREE, TreeVerifier
from specref.contracts.verify import sample_batch
from specref.examples.correct import verify


def chains(rows: int = 24) -> Batch:
    return sample_batch(CHAIN_FIXTURES["wide"], rows, np.random.default_rng(1))


def trees() -> Batch:
    return TREE.sample(TREE_FIXTURES["siblings"], 24, np.random.default_rng(1))


def of(name: str) -> Any:
    return next(one for one in SITUATIONS if one.claim == name)


@pytest.mark.parametrize("name", ["one_hot", "ragged"])
def test_the_usual_call_has_nothing_optional(name: str) -> None:
    batch = chains().without_q() if name == "one_hot" else chains()
    usual = of(name).usual(batch)
    assert of(name).usual(usual) is None
    Verifier(verify, Capabilities())(usual, np.random.default_rng(2))
    for row in range(len(batch)):
        one = of(name).usual(batch[row : row + 1])
        if one is not None:
            Verifier(verify, Capabilities())(one, np.random.default_rng(2))


@pytest.mark.parametrize("name", ["empty_trees", "repeats", "ragged"])
def test_usual_trees_are_some_of_them(name: str) -> None:
    usual = of(name).usual(trees())
    assert 0 < len(usual) < len(trees())
    assert of(name).usual(usual) is None
    TreeVerifier(verify_tree, Capabilities())(usual, np.random.default_rng(2))


def test_a_crash_is_blamed_on_what_is_optional_only_if_the_rest_never_raises() -> None:
    batch = chains().without_q()
    assert stumbled(batch, lambda one: one.draft_probs is None) is of("one_hot")
    assert stumbled(batch, lambda one: bool((one.draft_tokens < 0).any())) is of("ragged")
    assert stumbled(batch, lambda one: True) is None
    turns = iter(range(100))
    assert stumbled(batch, lambda one: next(turns) % 2 == 0) is None


def test_a_crash_on_the_laws_of_a_short_row_is_not_blamed_on_its_length() -> None:
    batch = chains()
    short = int(np.flatnonzero(batch.lens == 0)[0])
    p = batch.target_probs.copy()
    p[short, 0] = np.eye(p.shape[2])[1]

    def fussy(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        if (p[:, 0, 1] == 1).any():
            raise ZeroDivisionError
        return verify(p, q, drafts, rng=rng)

    with pytest.raises(BrokenContractError) as caught:
        Verifier(fussy, Capabilities())(
            Batch(p, batch.draft_probs, batch.draft_tokens, batch.lens, batch.place),
            np.random.default_rng(1),
        )
    assert not isinstance(caught.value, UntriedError)


@pytest.mark.parametrize(("named", "size"), [(False, 40_000), (True, 40_000), (False, 100)])
def test_memory_is_no_failure_at_a_size_that_nobody_named(named: bool, size: int) -> None:
    def small(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        raise MemoryError

    p, none = np.full((2, 2, size), 1 / size), np.zeros(2, dtype=np.int64)
    verifier = Verifier(small, Capabilities())
    verifier.sizes_named = named
    with pytest.raises(BrokenContractError) as caught:
        verifier(Batch(p, p[:, :1], none[:, None], none + 1, none), np.random.default_rng(1))
    expected = not named and 4 * size > LARGE
    assert isinstance(caught.value, UntriedError) == expected


def test_large_calls_of_one_size_have_a_budget_together() -> None:
    p, none = np.full((2, 2, 40_000), 1 / 40_000), np.zeros(2, dtype=np.int64)
    batch = Batch(p, p[:, :1], none[:, None], none + 1, none)
    verifier, rng = Verifier(verify, Capabilities()), np.random.default_rng(1)
    verifier.limits.most = 0.0
    verifier(batch, rng)
    with pytest.raises(UntriedError, match="took more than 0 s in all"):
        verifier(batch, rng)
    verifier(batch[:1], rng)  # of another size
    small = chains()
    for _ in range(2):
        verifier(small, rng)
    verifier.limits.most = None
    verifier(batch, rng)
