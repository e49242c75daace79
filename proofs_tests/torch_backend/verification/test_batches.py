"""What all rules share: rows of a batch, padding, no drafts at all, and low precision."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch

from proofs_tests.helpers.torch.laws import ragged_batch
from proofs_tests.helpers.torch.tree_laws import batch, rows_of
from specref.torch_backend import (
    NO_DRAFT,
    Coins,
    row_coins,
    verify,
    verify_block,
    verify_matching,
    verify_tree,
)

RULES: dict[str, Callable[..., Any]] = {
    "token": verify,
    "block": verify_block,
    "topdown": verify_tree,
    "traversal": partial(verify_tree, rule="traversal"),
}
CHAINS = ("token", "block")
EACH = pytest.mark.parametrize("rule", RULES)


def given(rule: str, q_given: bool = True) -> tuple[list[Any], Coins]:
    """A ragged batch of chains, or of trees."""
    p, q, *drafts, coins = ragged_batch() if rule in CHAINS else (*batch().given, batch().coins)
    return [p, q if q_given else None, *drafts], coins


@EACH
@pytest.mark.parametrize("q_given", [True, False])
def test_a_row_does_not_depend_on_its_batch(rule: str, q_given: bool) -> None:
    batch, coins = given(rule, q_given)
    whole, counts = RULES[rule](*batch, coins=coins)
    order = torch.randperm(len(whole), generator=torch.Generator().manual_seed(1))
    for chosen in (order, slice(0, 1), slice(5, 9), slice(0, 0)):
        few = [rows_of(one, chosen) for one in batch]
        found = RULES[rule](*few, coins=rows_of(coins, chosen))
        assert torch.equal(found[0], whole[chosen])
        assert torch.equal(found[1], counts[chosen])


@EACH
def test_without_drafts_there_is_a_token_of_the_target(rule: str) -> None:
    p, final = torch.tensor([[[0.25, 0.75]]] * 2), torch.tensor([0.2, 0.25])
    none, coins = torch.empty(2, 0, dtype=torch.int64), Coins(torch.empty(2, 0), final=final)
    drafts = [none] if rule in CHAINS else [none, none]
    for q in (None, torch.empty(2, 0, 2)):
        tokens, counts = RULES[rule](p, q, *drafts, coins=coins)
        assert (tokens.tolist(), counts.tolist()) == ([[0], [1]], [1, 1])
    assert verify_matching(p, none, coins=coins)[0].tolist() == [[0], [1]]


@EACH
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_is_widened_before_arithmetic(rule: str, dtype: torch.dtype) -> None:
    (p, q, *drafts), coins = given(rule)
    noise = torch.empty(len(p), p.shape[2])
    race = noise.exponential_(generator=torch.Generator().manual_seed(2))
    for drawn in (coins, Coins(coins.accept, race=race)):
        narrow = p.to(dtype), q.to(dtype), *(one.int() for one in drafts)
        found = RULES[rule](*narrow, coins=drawn)
        wide = RULES[rule](narrow[0].float(), narrow[1].float(), *drafts, coins=drawn)
        assert all(map(torch.equal, found, wide))


@pytest.mark.parametrize("rule", CHAINS)
def test_lens_say_what_padding_says(rule: str) -> None:
    (p, q, tokens), coins = given(rule)
    lens = (tokens != NO_DRAFT).sum(dim=1)
    filled = tokens.masked_fill(tokens == NO_DRAFT, 1)
    for kind in (torch.int64, torch.int32):
        found = RULES[rule](p, q, filled.to(kind), lens=lens.to(kind), coins=coins)
        assert all(map(torch.equal, found, RULES[rule](p, q, tokens, coins=coins)))
        found = verify_matching(p.nan_to_num(1), filled.to(kind), lens=lens, coins=coins)
        assert torch.equal(found[0], verify_matching(p.nan_to_num(1), tokens, coins=coins)[0])


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in CHAINS])
def test_seeds_of_rows_are_all_that_a_tree_needs(rule: str) -> None:
    """Alone and without padding: the same block."""
    seeds = torch.arange(len(batch().rows)) * 7
    coins = row_coins(seeds, 5, batch().tokens.shape[1])
    whole, counts = RULES[rule](*batch().given, coins=coins)
    for row in range(0, len(seeds), 10):
        nodes, count = len(batch().flats[row].tokens), int(counts[row])
        p, q, tokens, parents = (one[row, None] for one in batch().given)
        alone = p[:, : nodes + 1], q[:, :nodes], tokens[:, :nodes], parents[:, :nodes]
        found, _ = RULES[rule](*alone, coins=row_coins(seeds[row, None], 5, nodes))
        assert torch.equal(found[0, :count], whole[row, :count])
        assert (found[0, count:] == NO_DRAFT).all()
