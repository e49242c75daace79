"""What token and block verification share: rows of a batch, padding, and blocks without drafts."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch

from proofs_tests.helpers.torch.laws import ragged_batch
from proofs_tests.helpers.torch.tree_batches import rows_of
from specref.torch_backend import NO_DRAFT, Coins, verify, verify_block, verify_matching

Verify = Callable[..., Any]
EACH = pytest.mark.parametrize("rule", [verify, verify_block])


@EACH
@pytest.mark.parametrize("q_given", [True, False])
def test_a_row_does_not_depend_on_its_batch(rule: Verify, q_given: bool) -> None:
    p, q, tokens, coins = ragged_batch()
    given = p, q if q_given else None, tokens
    whole, counts = rule(*given, coins=coins)
    order = torch.randperm(len(p), generator=torch.Generator().manual_seed(1))
    for chosen in (order, slice(0, 1), slice(5, 9), slice(0, 0)):
        found = rule(*(rows_of(one, chosen) for one in given), coins=rows_of(coins, chosen))
        assert torch.equal(found[0], whole[chosen])
        assert torch.equal(found[1], counts[chosen])


@EACH
def test_lens_say_what_padding_says(rule: Verify) -> None:
    p, q, tokens, coins = ragged_batch()
    lens = (tokens != NO_DRAFT).sum(dim=1)
    filled = tokens.masked_fill(tokens == NO_DRAFT, 1)
    for kind in (torch.int64, torch.int32):
        found = rule(p, q, filled.to(kind), lens=lens.to(kind), coins=coins)
        assert all(map(torch.equal, found, rule(p, q, tokens, coins=coins)))
        found = verify_matching(p.nan_to_num(1), filled.to(kind), lens=lens, coins=coins)
        assert torch.equal(found[0], verify_matching(p.nan_to_num(1), tokens, coins=coins)[0])


def test_without_drafts_there_is_a_token_of_the_target() -> None:
    p, coins = torch.tensor([[[0.25, 0.75]]] * 2), torch.tensor([0.2, 0.25])
    none = torch.empty(2, 0, dtype=torch.int64), Coins(torch.empty(2, 0), final=coins)
    for rule in (verify, verify_block):
        for q in (None, torch.empty(2, 0, 2)):
            tokens, counts = rule(p, q, none[0], coins=none[1])
            assert (tokens.tolist(), counts.tolist()) == ([[0], [1]], [1, 1])
    assert verify_matching(p, none[0], coins=none[1])[0].tolist() == [[0], [1]]
