"""Lossy verifications, to stand in the decode loop, and a lossy drafter: what judges must find."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from specref.torch_backend import Coins, draw, row_coins, verify, verify_block, verify_matching
from specref.torch_backend.drafters.drafts import Drafter, Drafts
from specref.torch_backend.drafters.mapped import MappedDrafter
from specref.torch_backend.methods import AUTOREGRESSIVE, BLOCK
from specref.torch_backend.verification import trees

Verified: TypeAlias = tuple[Tensor, Tensor]
Planted: TypeAlias = Mapping[str, Callable[..., Any]]
LENIENT = 0.25


def lenient(share: float) -> Planted:
    """Accept this share of the drafts whatever their coin; none that p excludes."""

    def tossed(seeds: Tensor, iteration: int, lookahead: int) -> Coins:
        coins = row_coins(seeds, iteration, lookahead)
        accept = (coins.accept - share) / (1 - share) if share < 1 else 0 * coins.accept
        return coins._replace(accept=accept.clamp(min=0))

    def matching(p: Tensor, drafts: Tensor, *, coins: Coins) -> Verified:
        known = torch.zeros_like(p[:, :-1]).scatter_(2, drafts.clamp(min=0)[..., None], 1)
        forced = ((coins.accept <= 0) & (drafts >= 0))[..., None]
        rows = torch.cat([torch.where(forced, known, p[:, :-1]), p[:, -1:]], 1)
        return verify_matching(rows, drafts, coins=coins)

    return {"row_coins": tossed, "verify_matching": matching}


def residual_is_p() -> Planted:
    """Draw the token after a rejection from p."""

    def verified(p: Tensor, q: Tensor, drafts: Tensor, *, coins: Coins) -> Verified:
        tokens, counts = verify(p, q, drafts, coins=coins)
        return _redrawn(tokens, counts, p, coins)

    return {"verify": verified}


def bonus_from_q() -> Planted:
    """Draw the token after the last draft from that draft's law."""

    def verified(p: Tensor, q: Tensor, drafts: Tensor, *, coins: Coins) -> Verified:
        if not drafts.shape[1]:
            return verify(p, q, drafts, coins=coins)
        tokens, counts = verify(p, q, drafts, coins=coins)
        redrawn, _ = _redrawn(tokens.clone(), counts, torch.cat([q, q[:, -1:]], 1), coins)
        whole = counts > (drafts >= 0).sum(1)
        return torch.where(whole[:, None], redrawn, tokens), counts

    return {"verify": verified}


def row_before() -> Planted:
    """Verify each draft by the target's law one place too early."""

    def verified(p: Tensor, q: Tensor, drafts: Tensor, *, coins: Coins) -> Verified:
        rows = torch.cat([p[:, :1], p[:, :-1]], 1)
        return verify(rows, q, drafts, coins=coins)

    return {"verify": verified}


def first_failure() -> Planted:
    """By block, count the drafts up to the first coin that fails."""

    def verified(*given: Tensor, coins: Coins) -> Verified:
        with patch.object(trees, "_leading", lambda _, found: found):
            return verify_block(*given, coins=coins)

    return {"verify_block": verified}


def sharper() -> Planted:
    """Take p at temperature 0.8 for p, where nothing is drafted."""

    def matching(p: Tensor, drafts: Tensor, *, coins: Coins) -> Verified:
        rows = p**1.25
        return verify_matching(rows / rows.sum(-1, keepdim=True), drafts, coins=coins)

    return {"verify_matching": matching}


def _redrawn(tokens: Tensor, counts: Tensor, laws: Tensor, coins: Coins) -> Verified:
    """The last token of each block, drawn again by the law at its place."""
    assert coins.final is not None
    place = counts - 1
    last = draw(laws[torch.arange(len(laws), device=laws.device), place], coins.final)
    return tokens.scatter_(1, place[:, None], last[:, None]), counts


BUGS: Mapping[str, Callable[[], Planted]] = MappingProxyType(
    {
        "residual is p": residual_is_p,
        "bonus from q": bonus_from_q,
        "row before": row_before,
        "lenient": lambda: lenient(LENIENT),
        "first failure": first_failure,
        "sharper": sharper,
        "permuted head": dict,  # it stands in the drafter: see `spoiled`
    }
)
RULES = ("residual is p", "bonus from q", "row before", "lenient")
BUGS_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        AUTOREGRESSIVE: ("sharper",),
        "standard": RULES,
        BLOCK: ("first failure",),
        "tli": ("permuted head", *RULES),
        "slem": ("lenient",),
        "slrs": ("lenient",),
    }
)


def spoiled(bug: str | None, drafter: Drafter | None) -> Callable[[Drafts], Drafts] | None:
    """What becomes of drafts under a bug of the drafter."""
    if bug != "permuted head":
        return None
    assert isinstance(drafter, MappedDrafter)
    return permuted_head(drafter)


def permuted_head(drafter: MappedDrafter) -> Callable[[Drafts], Drafts]:
    """Declare the law of another order of the shared tokens than that they are drawn by.

    Transformers prunes the drafter's head in the order in which `get_vocab()` lists the shared
    tokens, and reads it by their ids. Here the order of the list is drawn.
    """
    by_id = torch.tensor(sorted(set(drafter.images.tolist())), device=drafter.images.device)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(by_id))).to(by_id.device)
    listed = by_id[order]

    def spoil(drafts: Drafts) -> Drafts:
        assert drafts.laws is not None
        laws = torch.zeros_like(drafts.laws)
        laws[..., by_id] = drafts.laws[..., listed]
        return Drafts(drafts.tokens, laws, drafts.forwards)

    return spoil
