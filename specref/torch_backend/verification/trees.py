"""Batched verification of token trees: several drafts of a position, and drafts after each.

Let p' be the law of the token after a node, at first the target's p, and A the probability with
which the node is still to be accepted. A child x that was drawn from q is accepted, in all, with

    A_x = min(1, A p'(x) / q(x)),

and once it is refused, with all that is below it, then with R = (A p' - q)+

    p' becomes norm(R),    A becomes sum R / (sum R + 1 - A).

*Top-down*, the coin of a child is tossed before those of what is below it. So whatever is read
below it has A = 1. *Traversal* tosses it afterwards, at what is left of A_x: the block ends with
the first node, leaves before their parents, whose coin succeeds; or at the root, which is certain.

Either way, a node with A and p' emits A p', if that is so after a refusal: x comes with q(x), and
is accepted with min(q, A p')(x); some child is refused with 1 - sum min(q, A p'), which is
sum R + 1 - A whatever q sums to; and then sum R / (sum R + 1 - A) norm(R) is emitted. The sum is
A p'. As p' and A do not depend on which x was refused, the next q may: it may be q without x.

Nothing here waits for the device: no number is read on the host, and no shape depends on one.
"""

from typing import NamedTuple

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
    padded_drafts,
    refuse,
)
from specref.torch_backend.verification.chains import blocks_of, last_token

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
    """Check shapes and dtypes, without a look at values; raises as `verify_tree` does."""
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


RULES = ("topdown", "traversal")


def verify_tree(
    target_probs: Tensor,
    draft_probs: Tensor | None,
    draft_tokens: Tensor,
    parents: Tensor,
    *,
    rule: str = "topdown",
    coins: Coins,
) -> tuple[Tensor, Tensor]:
    """Verify a batch of token trees: an accepted path from the root, and one more token.

    "topdown" is recursive rejection, sibling after sibling (SpecInfer, Miao et al. 2023, with
    replacement; Sequoia, Chen et al. 2024, without); of a chain, it is `verify`. "traversal" is
    traversal verification (Weng et al. 2025); of a chain, `verify_block`. It keeps a copy of the
    target's distributions, top-down a few of their rows.

    Parameters
    ----------
    target_probs : Tensor, shape (B, N + 1, V)
        Row 0 is the target's distribution after the context, row i + 1 that after the path to node
        i. Any float dtype; acceptance is decided in float64, residuals are taken in float32, or in
        float64 if it is float64.
    draft_probs : Tensor, shape (B, N, V), or None
        The distribution that node i was drawn from, given its elder siblings: without replacement,
        what they left of q, renormalised. Up to the mass of ``OUTSIDE``. None: every draft is
        certain.
    draft_tokens : Tensor of integers, shape (B, N)
        ``NO_DRAFT`` (-1) where there is no node; ``OUTSIDE`` (-2) for something that is no token
        of the target: it is always rejected.
    parents : Tensor of integers, shape (B, N)
        The parent of node i: a node before it, or ``ROOT`` (-1). Siblings are in the order of
        drawing. ``NO_NODE`` (-2) after the last node of a row, where no distribution is read.
    rule : str
        "topdown" or "traversal".
    coins : Coins
        accept[:, i] is tossed for node i; `race` draws the last token, or `final` if there is no
        race. For a seed for each row: ``row_coins(seeds, iteration, N)``.

    Returns
    -------
    tokens : Tensor of int64, shape (B, N + 1)
        The tokens of the accepted path and one more, padded with -1.
    counts : Tensor of int64, shape (B,)
        How many tokens each row has.

    Raises
    ------
    TypeError
        Distributions are no floats, or tokens or parents no integers.
    ValueError
        Shapes do not fit, `coins` has neither `final` nor `race`, or there is no such rule.
        Values are taken on trust: see `validate_tree`.

    Examples
    --------
    Two siblings, and a child of the second: the first is refused, both others are accepted.

    >>> p = torch.tensor([[[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]])
    >>> tokens, parents = torch.tensor([[0, 1, 0]]), torch.tensor([[-1, -1, 1]])
    >>> coins = Coins(torch.tensor([[0.1, 0.2, 0.3]]), final=torch.tensor([0.9]))
    >>> verify_tree(p, None, tokens, parents, coins=coins)
    (tensor([[ 1,  0,  1, -1]]), tensor([3]))
    """
    check_tree_shapes(target_probs, draft_probs, draft_tokens, parents)
    check_coins(coins, target_probs)
    if rule not in RULES:
        raise ValueError(f"rule = {rule!r}: expected one of {', '.join(RULES)}")
    parents = parents.long()
    drafts = draft_tokens.long().masked_fill(parents == NO_NODE, NO_DRAFT)
    trees = _Trees(target_probs, draft_probs, drafts, parents)
    walk = _top_down if rule == "topdown" else _traversal
    accepted, weights = walk(trees, coins.accept)
    path = drafts.gather(1, accepted.long().argsort(dim=1, descending=True, stable=True))
    kept = accepted.sum(dim=1)
    return blocks_of(padded_drafts(path, None), kept, last_token(weights, coins))


class _Trees(NamedTuple):
    p: Tensor
    q: Tensor | None
    drafts: Tensor
    parents: Tensor

    @property
    def nodes(self) -> range:
        return range(self.drafts.shape[1])

    @property
    def wide(self) -> torch.dtype:
        return torch.promote_types(self.p.dtype, torch.float32)

    @property
    def above(self) -> Tensor:
        """The row of p that is read before node i, shape (B, N); 0 where there is no node."""
        return self.parents.clamp(min=ROOT) + 1

    def below(self, node: Tensor, i: int) -> Tensor:
        """Where node i is a child of this node, shape (B, 1)."""
        return self.parents[:, i, None] == node


class _Rest(NamedTuple):
    """What a node still emits after refused children: A p', where p' is law / total."""

    law: Tensor
    total: Tensor
    chance: Tensor


def _top_down(trees: _Trees, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Which nodes are accepted, shape (B, N), and the weights of the last token, (B, V)."""
    one = torch.ones_like(trees.p[:, 0, :1], dtype=torch.float64)
    rest = _Rest(trees.p[:, 0].to(trees.wide, copy=True), one, one)
    at = trees.parents.new_full((len(one), 1), ROOT)
    accepted = torch.zeros_like(trees.drafts, dtype=torch.bool)
    for i in trees.nodes:
        here = trees.below(at, i)
        passed = here & (uniforms[:, i, None] < _chance(rest, trees, i))
        rest = _entered(_refused(rest, trees, i, here), trees, i, passed)
        at = torch.where(passed, i, at)
        accepted[:, i, None] = passed
    return accepted, rest.law


def _traversal(trees: _Trees, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """The same, with the first success among descendants before ancestors."""
    laws, chances = _emptied(trees)
    found = _leading(trees, torch.nn.functional.pad(uniforms, (1, 0)) < chances)
    at = trees.parents.new_full((len(laws), 1), ROOT)
    accepted = torch.zeros_like(trees.drafts, dtype=torch.bool)
    for i in trees.nodes:
        passed = trees.below(at, i) & found[:, i + 1, None]
        at = torch.where(passed, i, at)
        accepted[:, i, None] = passed
    return accepted, laws[torch.arange(len(at), device=at.device), at[:, 0] + 1]


def _leading(trees: _Trees, found: Tensor) -> Tensor:
    """Which nodes are found, or have such a node below them; shape (B, N + 1), the root first."""
    above = trees.above
    for i in reversed(trees.nodes):
        parent = above[:, i, None]
        found.scatter_(1, parent, found.gather(1, parent) | found[:, i + 1, None])
    return found


def _emptied(trees: _Trees) -> tuple[Tensor, Tensor]:
    """Weights of p', shape (B, N + 1, V), and A, (B, N + 1), once all children are refused."""
    laws = trees.p.to(trees.wide, copy=True)
    totals = torch.ones_like(laws[..., 0], dtype=torch.float64)
    chances, rows = totals.clone(), torch.arange(len(laws), device=laws.device)
    for i, parent in enumerate(trees.above.unbind(1)):
        place, parent = (rows, parent), parent[:, None]
        rest = _Rest(laws[place], totals.gather(1, parent), chances.gather(1, parent))
        chances[:, i + 1, None] = _chance(rest, trees, i).clamp(max=1)
        rest = _refused(rest, trees, i, trees.parents[:, i, None] >= ROOT)
        laws[place] = rest.law
        totals.scatter_(1, parent, rest.total)
        chances.scatter_(1, parent, rest.chance)
    return laws, chances


def _chance(rest: _Rest, trees: _Trees, i: int) -> Tensor:
    """A p' / q of node i, shape (B, 1): 0 of OUTSIDE, NaN, which no coin is below, of 0 / 0."""
    draft = trees.drafts[:, i, None]
    token = draft.clamp(min=0)
    chance = rest.law.gather(1, token) * rest.chance / rest.total
    if trees.q is not None:
        chance = chance / trees.q[:, i].gather(1, token).double()
    return torch.where(draft >= 0, chance, 0.0)


def _refused(rest: _Rest, trees: _Trees, i: int, here: Tensor) -> _Rest:
    """What is left if node i is refused; p' where nothing is left of it, by rounding alone."""
    scale = (rest.chance / rest.total).to(rest.law.dtype)
    excess = _less(rest.law * scale, trees, i).clamp_(min=0)
    total = excess.sum(dim=1, keepdim=True, dtype=torch.float64)
    left = here & (total > 0)
    chance = torch.where(left, total / (total + (1 - rest.chance)), rest.chance.floor())
    return _Rest(
        torch.where(left, excess, rest.law, out=rest.law),
        torch.where(left, total, rest.total),
        torch.where(here, chance, rest.chance),
    )


def _less(weights: Tensor, trees: _Trees, i: int) -> Tensor:
    """Weights less the law that node i was drawn from, in place."""
    if trees.q is not None:
        return weights.sub_(trees.q[:, i])
    draft = trees.drafts[:, i, None]
    token = draft.clamp(min=0)
    return weights.scatter_(1, token, weights.gather(1, token) - (draft >= 0).to(weights.dtype))


def _entered(rest: _Rest, trees: _Trees, i: int, passed: Tensor) -> _Rest:
    """The law after node i, in rows where it is accepted."""
    law = torch.where(passed, trees.p[:, i + 1], rest.law, out=rest.law)
    return _Rest(law, torch.where(passed, 1.0, rest.total), rest.chance)
