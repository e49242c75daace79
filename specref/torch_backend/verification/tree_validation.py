"""Checks of the inputs of tree verification: shapes for free, values by waiting for the device."""

import torch
from torch import Tensor

from specref.torch_backend.randomness import Coins
from specref.torch_backend.validation import (
    NO_DRAFT,
    OUTSIDE,
    check_coin_values,
    check_coins,
    check_drafted,
    check_laws,
    check_shapes,
    expect_kind,
    expect_shape,
    refuse,
)

ROOT, NO_NODE = -1, -2


def validate_tree(
    target_probs: Tensor,
    draft_probs: Tensor | None,
    draft_tokens: Tensor,
    parents: Tensor,
    *,
    coins: Coins | None = None,
) -> None:
    """Check the values that `verify_tree` takes on trust; waits for the device.

    Only what a verification may read is checked: after the last node, and below ``OUTSIDE``,
    distributions may be anything. Sums may be wrong by 1e-9 in float64, 1e-5 in float32 and 1e-2
    in half precision. Whether siblings without replacement have the distributions that their
    elders left is not seen: distributions of drafts with replacement look the same.

    Parameters
    ----------
    target_probs, draft_probs, draft_tokens, parents, coins
        As for `verify_tree`; `coins` may be left out.

    Raises
    ------
    TypeError, ValueError
        As `verify_tree`; and for the first parent, token, distribution or random number that is
        out of range, or draft of q = 0.

    Examples
    --------
    >>> p = torch.full((1, 3, 2), 0.5)
    >>> validate_tree(p, None, torch.tensor([[0, 1]]), torch.tensor([[1, -1]]))
    Traceback (most recent call last):
    ValueError: parents[0, 0] = 1: expected -1, a node before 0, or -2
    """
    check_tree_shapes(target_probs, draft_probs, draft_tokens, parents)
    _check_parents(parents)
    _check_tokens(draft_tokens, parents, target_probs.shape[2])
    drafted, read = _read(draft_tokens, parents)
    check_laws("target_probs", target_probs, read, least=1.0)
    if draft_probs is not None:
        check_laws("draft_probs", draft_probs, drafted, least=0.0)
        check_drafted(draft_probs, draft_tokens.long(), drafted)
    if coins is not None:
        check_coins(coins, target_probs)
        check_coin_values(coins)


def check_tree_shapes(
    target_probs: Tensor, draft_probs: Tensor | None, draft_tokens: Tensor, parents: Tensor
) -> None:
    """Check shapes and dtypes, without a look at values.

    Raises
    ------
    TypeError
        Laws are no floats, or tokens or parents no integers.
    ValueError
        Shapes do not fit.
    """
    check_shapes(target_probs, draft_probs, draft_tokens, None)
    expect_kind("parents", parents, floats=False)
    expect_shape("parents", parents, tuple(draft_tokens.shape))


def _check_parents(parents: Tensor) -> None:
    none = parents == NO_NODE
    after = "-2 after the last node"
    refuse("parents", parents, (none.cumsum(dim=1) > 0) & ~none, after)
    for i, parent in enumerate(parents.unbind(1)):
        wrong = torch.zeros_like(none)
        wrong[:, i] = (parent >= i) | (parent < NO_NODE)
        refuse("parents", parents, wrong, f"{ROOT}, a node before {i}, or {NO_NODE}")


def _check_tokens(tokens: Tensor, parents: Tensor, size: int) -> None:
    present = parents != NO_NODE
    known = ((tokens >= 0) & (tokens < size)) | (tokens == OUTSIDE)
    refuse("draft_tokens", tokens, present & ~known, f"0 <= id < {size}, or {OUTSIDE}")
    refuse("draft_tokens", tokens, ~present & (tokens != NO_DRAFT), "-1 where there is no node")


def _read(tokens: Tensor, parents: Tensor) -> tuple[Tensor, Tensor]:
    """Which nodes' q may be read, shape (B, N), and which rows of the target, (B, N + 1)."""
    rows = tokens.new_ones((len(tokens), 1), dtype=torch.bool)
    drafted = rows[:, :0]
    for i in range(tokens.shape[1]):
        parent = parents[:, i, None].long()
        reached = rows.gather(1, parent.clamp(min=ROOT) + 1) & (parent != NO_NODE)
        drafted = torch.cat([drafted, reached], dim=1)
        rows = torch.cat([rows, reached & (tokens[:, i, None] >= 0)], dim=1)
    return drafted, rows
