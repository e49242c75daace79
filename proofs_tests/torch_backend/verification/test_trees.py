"""Batches of token trees: the NumPy reference coin by coin, chains, and greedy.

Nothing here is random: trees and coins are of fixed seeds.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.bugs.torch_tree import BUGS, planted
from proofs_tests.helpers.torch.laws import LAST, ragged_batch
from proofs_tests.helpers.torch.tree_laws import (
    DRAFTER,
    EACH_RULE,
    RULES,
    TARGET,
    Batch,
    Flat,
    Row,
    Tossed,
    batch,
    breadth_first,
    depth_first,
    pruned,
)
from proofs_tests.helpers.tree_cases import top_tree
from specref.torch_backend import (
    NO_NODE,
    OUTSIDE,
    ROOT,
    Coins,
    validate_tree,
    verify,
    verify_tree,
)
from specref.torch_backend.validation import NO_DRAFT

SIZE = 6


def blocks(rule: str, given: tuple[Any, ...], coins: Coins) -> list[tuple[int, ...]]:
    """What is emitted, without padding."""
    found, counts = verify_tree(*given, rule=rule, coins=coins)
    assert found.shape == (len(found), given[2].shape[1] + 1)
    rows = zip(found.tolist(), counts.tolist(), strict=True)
    return [tuple(row[:count]) for row, count in rows if set(row[count:]) <= {NO_DRAFT}]


def wrong_blocks(rule: str) -> Iterator[str]:
    """Blocks that are not those of the reference; with coins also that accept more."""
    for seed, power in ((3, 1), (4, 1), (5, 4)):
        generator = torch.Generator().manual_seed(seed)
        uniforms = torch.rand(batch().p.shape[:2], generator=generator, dtype=torch.float64)
        coins = Coins(uniforms[:, 1:] ** power, uniforms[:, 0])
        found = blocks(rule, batch().given, coins)
        for i, (row, flat) in enumerate(zip(batch().rows, batch().flats, strict=True)):
            tossed = Tossed(flat, coins.accept[i].tolist(), float(uniforms[i, 0]))
            right = RULES[rule].verify(*row, tossed)
            if found[i] != right:
                yield f"row {i}: {found[i]}, expected {right}"


@EACH_RULE
def test_tokens_are_those_of_the_reference_with_the_same_coins(rule: str) -> None:
    assert list(wrong_blocks(rule)) == []
    lengths = set(map(len, blocks(rule, batch().given, batch().coins)))
    assert lengths == {1, 2, 3, 4}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_emit_other_tokens(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(wrong_blocks(planted(bug, monkeypatch.setattr)))


@EACH_RULE
def test_the_order_of_nodes_does_not_matter(rule: str) -> None:
    found = []
    for pick in (breadth_first, depth_first):
        same, accept = Batch(batch().rows, pick), torch.zeros_like(batch().coins.accept)
        for row, (one, other) in enumerate(zip(batch().flats, same.flats, strict=True)):
            places = [one.sites.index(site) for site in other.sites]
            accept[row, : len(places)] = batch().coins.accept[row, places]
        found.append(blocks(rule, same.given, Coins(accept, batch().coins.final)))
    assert found[0] == found[1] == blocks(rule, batch().given, batch().coins)


def chains() -> tuple[tuple[Any, ...], Coins]:
    """The drafts of `ragged_batch`, OUTSIDE among them, as trees."""
    p, q, tokens, coins = ragged_batch()
    before = torch.arange(tokens.shape[1]) + ROOT
    return (p, q, tokens, torch.where(tokens == NO_DRAFT, NO_NODE, before)), coins


def wrong_chains(dtype: torch.dtype) -> Iterator[str]:
    """Where top-down differs from `verify`; `verify_block` is traversal."""
    (p, q, tokens, parents), coins = chains()
    p, q = p.to(dtype), q.to(dtype)
    race = Coins(coins.accept, race=torch.linspace(0.1, 2, p.shape[2]).repeat(len(p), 1))
    for laws in (q, None):
        for drawn in (coins, race):
            found = verify_tree(p, laws, tokens, parents, coins=drawn)
            if not all(map(torch.equal, found, verify(p, laws, tokens, coins=drawn))):
                yield f"q given: {laws is q}, race: {drawn is race}"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_chain_is_verified_as_drafts_are(dtype: torch.dtype) -> None:
    assert list(wrong_chains(dtype)) == []


def test_chains_notice_a_planted_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    planted("row of the root", monkeypatch.setattr)
    assert list(wrong_chains(torch.float64))


@EACH_RULE
def test_outside_is_a_token_that_the_target_excludes(rule: str) -> None:
    """Token f, with p = 0, and the same drafts with f outside of the vocabulary."""
    p, q, tokens, parents = (one.clone() for one in batch().given)
    p[..., -1] = 0
    p[..., 0] += p.sum(dim=-1) == 0
    p /= p.sum(dim=-1, keepdim=True)
    few = tokens.masked_fill(tokens == SIZE - 1, OUTSIDE)
    assert int((few == OUTSIDE).sum()) > 20
    given = p[..., :-1], q[..., :-1], few, parents
    validate_tree(*given)
    expected = blocks(rule, (p, q, tokens, parents), batch().coins)
    assert blocks(rule, given, batch().coins) == expected


@EACH_RULE
def test_greedy_is_the_longest_path_of_largest_probabilities(rule: str) -> None:
    """Temperature 0: whatever the coins, what the target would have written by itself."""
    rng = np.random.default_rng(11)
    forest = [top_tree(DRAFTER, (), shape) for shape in [(), (2,), (3, 2), (2, 2, 2), (6, 4, 2)]]
    rows = [Row(TARGET, (), pruned(tree, rng)) for tree in forest for _ in range(8)]
    several = Batch(rows)
    largest = several.p.nan_to_num(0).argmax(dim=-1)
    certain = torch.nn.functional.one_hot(largest, SIZE).double()
    expected = [_walked(flat, largest[i]) for i, flat in enumerate(several.flats)]
    assert set(map(len, expected)) >= {1, 2, 3}
    for dtype in (torch.float64, torch.bfloat16):
        given = certain.to(dtype), None, *several.given[2:]
        assert blocks(rule, given, several.coins) == expected


def _walked(flat: Flat, largest: Tensor) -> tuple[int, ...]:
    node: int | None = ROOT
    block: tuple[int, ...] = ()
    while node is not None:
        block = (*block, int(largest[node + 1]))
        children = flat.children(node)
        node = next((child for child in children if flat.tokens[child] == block[-1]), None)
    return block


@EACH_RULE
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("u", [0.0, LAST])
def test_ends_of_the_coins(rule: str, dtype: torch.dtype, u: float) -> None:
    """P = 0 is refused at 0, also of a duplicate; P = q accepted just below 1; 0 / 0 refused."""
    p = torch.tensor([0.0, 0.5, 0.5, 0.0], dtype=dtype).expand(4, 3, 4)
    q = torch.tensor([[1.0, 0, 0, 0], [1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 1, 0, 0]], dtype=dtype)
    q, tokens = q[:, None].expand(4, 2, 4), torch.tensor([[0, 0], [0, 0], [1, 2], [3, 3]])
    parents = torch.tensor([[ROOT, ROOT], [ROOT, 0], [ROOT, 0], [ROOT, ROOT]])
    uniforms = torch.full((4, 2), u, dtype=torch.float64)
    for coins in (Coins(uniforms, uniforms[:, 0]), Coins(uniforms, race=uniforms.repeat(1, 2))):
        found, counts = verify_tree(p, q, tokens, parents, rule=rule, coins=coins)
        assert counts.tolist() == [1, 1, 3, 1]
        for row, count in zip(found.tolist(), counts.tolist(), strict=True):
            assert set(row[:count]) <= {1, 2}


@EACH_RULE
def test_inputs_are_not_changed(rule: str) -> None:
    for dtype in (torch.float64, torch.float32):
        p, q, tokens, parents = batch().given
        given = p.to(dtype), q.to(dtype), tokens, parents
        before = [one.clone() for one in (*given, *batch().coins[:2])]
        blocks(rule, given, batch().coins)
        for one, other in zip((*given, *batch().coins[:2]), before, strict=True):
            assert torch.equal(one.nan_to_num(9), other.nan_to_num(9))


NAN = torch.nan


def given(**changed: Any) -> dict[str, Any]:
    """Rows of three nodes and of one; the second of the three has a child."""
    p, coins = torch.full((2, 4, 2), 0.5), Coins(torch.zeros(2, 3), final=torch.zeros(2))
    tokens = torch.tensor([[0, 1, 1], [1, -1, -1]])
    parents = torch.tensor([[ROOT, ROOT, 1], [ROOT, NO_NODE, NO_NODE]])
    laws = {"target_probs": p, "draft_probs": p[:, 1:], "draft_tokens": tokens}
    return {**laws, "parents": parents, "coins": coins} | changed


def changed_at(name: str, place: tuple[int, ...], value: float) -> dict[str, Any]:
    tensor = given()[name].clone()
    tensor[place] = value
    return {name: tensor}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target_probs": [0.5]}, "target_probs is of list: expected a tensor of floats"),
        ({"draft_probs": torch.ones(2, 3, 2).int()}, "draft_probs is of torch.int32"),
        ({"draft_tokens": torch.zeros(2, 3)}, "draft_tokens is of torch.float32: expected a t"),
        ({"parents": torch.zeros(2, 3)}, "parents is of torch.float32: expected a tensor of int"),
        ({"parents": None}, "parents is of NoneType: expected a tensor of integers"),
        ({"target_probs": torch.ones(4, 2)}, r"target_probs has shape \(4, 2\): expected \(B"),
        ({"draft_tokens": torch.ones(2, 4).long()}, r"draft_tokens has shape \(2, 4\): expected"),
        ({"draft_probs": torch.ones(2, 4, 2)}, r"draft_probs has shape \(2, 4, 2\): expected \("),
        ({"parents": torch.ones(3).long()}, r"parents has shape \(3,\): expected \(2, 3\)"),
        ({"coins": Coins(torch.ones(2, 4), torch.ones(2))}, r"coins.accept has shape \(2, 4\)"),
        ({"coins": Coins(torch.ones(2, 3))}, "coins.final and coins.race are None"),
    ],
)
def test_shapes_are_refused(changed: dict[str, Any], message: str) -> None:
    for function in (verify_tree, validate_tree):
        with pytest.raises((TypeError, ValueError), match=message):
            function(**given(**changed))


def test_other_rules_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rule = 'top-down': expected one of topdown, traversal"):
        verify_tree(**given(rule="top-down"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (changed_at("parents", (0, 0), 0), r"parents\[0, 0\] = 0: expected -1, a node before 0,"),
        (changed_at("parents", (0, 1), 2), r"parents\[0, 1\] = 2: expected -1, a node before 1,"),
        (changed_at("parents", (0, 2), -3), r"parents\[0, 2\] = -3: expected -1, a node before"),
        (changed_at("parents", (0, 1), -2), r"parents\[0, 2\] = 1: expected -2 after the last n"),
        (changed_at("parents", (1, 1), 0), r"draft_tokens\[1, 1\] = -1: expected 0 <= id < 2, or"),
        (changed_at("draft_tokens", (0, 1), 2), r"draft_tokens\[0, 1\] = 2: expected 0 <= id < 2"),
        (changed_at("draft_tokens", (0, 2), -1), r"draft_tokens\[0, 2\] = -1: expected 0 <= id"),
        (changed_at("draft_tokens", (1, 2), 0), r"draft_tokens\[1, 2\] = 0: expected -1 where th"),
        (changed_at("target_probs", (1, 1, 0), 0.75), r"sum of target_probs\[1, 1\] = 1.25: expe"),
        (changed_at("target_probs", (0, 3, 1), NAN), r"target_probs\[0, 3, 1\] = nan: expected a"),
        (changed_at("draft_probs", (1, 0, 0), -0.5), r"draft_probs\[1, 0, 0\] = -0.5: expected a"),
        (changed_at("draft_probs", (0, 2, 0), 0.75), r"sum of draft_probs\[0, 2\] = 1.25: expect"),
        (
            changed_at("draft_probs", (0, 1, 1), 0.0),
            r"q of draft_tokens\[0, 1\] = 0.0: expected >",
        ),
        ({"coins": Coins(torch.ones(2, 3), torch.zeros(2))}, r"coins.accept\[0, 0\] = 1.0"),
        ({"coins": Coins(torch.zeros(2, 3), torch.tensor([0, NAN]))}, r"coins.final\[1\] = nan"),
    ],
)
def test_values_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validate_tree(**given(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"draft_probs": None},
        changed_at("target_probs", (1, 2, 0), NAN),
        changed_at("draft_probs", (1, 1, 0), NAN),
        {"parents": given()["parents"].int(), "draft_tokens": given()["draft_tokens"].int()},
        {
            **changed_at("draft_tokens", (0, 1), OUTSIDE),
            **changed_at("target_probs", (0, slice(2, 4), 0), NAN),
            **changed_at("draft_probs", (0, 2, 0), NAN),
        },
    ],
)
def test_what_is_never_read_may_hold_anything(changed: dict[str, Any]) -> None:
    """Neither after the last node, nor at OUTSIDE and below it."""
    arguments = given(**changed)
    validate_tree(**arguments)
    clean = {
        name: arguments[name].nan_to_num(0.5)
        for name in ("target_probs", "draft_probs")
        if arguments[name] is not None
    }
    for rule in ("topdown", "traversal"):
        found = verify_tree(**arguments | clean, rule=rule)
        assert all(map(torch.equal, found, verify_tree(**arguments, rule=rule)))
