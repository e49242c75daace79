"""Batched block verification: drafts are accepted jointly, by traversal of a tree that is a chain.

With A_0 = 1 and A_i = min(1, A_{i-1} p / q) along the drafts, and R_i = (A_i p - q)+ of the laws
after i of n drafts, the accepted length is the last i whose coin is below

    h_i = sum R_i / (sum R_i + 1 - A_i),    h_n = A_n,

or 0, and the next token has the law norm(R_i), or p after all n: see `trees`.
"""

import torch
from torch import Tensor

from specref.torch_backend.randomness import Coins
from specref.torch_backend.validation import NO_DRAFT, check_shapes, padded_drafts
from specref.torch_backend.verification.trees import NO_NODE, ROOT, verify_tree


def verify_block(
    target_probs: Tensor,
    draft_probs: Tensor | None,
    draft_tokens: Tensor,
    *,
    lens: Tensor | None = None,
    coins: Coins,
) -> tuple[Tensor, Tensor]:
    """Block verification of a batch (Sun et al. 2024, Algorithm 2).

    Accepts at least as many drafts as `verify` in expectation, and as many with one draft or
    with certain drafts. Reads every row of p and q that has a draft, and keeps a copy of p in
    float32 or wider, as `verify_tree` does.

    Parameters
    ----------
    target_probs, draft_probs, draft_tokens, lens
        As for `verify`.
    coins : Coins
        Draft i may be the last that is accepted iff accept[:, i] < h; `race` draws the last
        token, or `final` if there is no race.

    Returns
    -------
    tokens, counts
        As `verify`.

    Raises
    ------
    TypeError
        Distributions are no floats, or tokens or lengths no integers.
    ValueError
        Shapes do not fit, or `coins` has neither `final` nor `race`. Values are taken on trust:
        see `validate`.

    Examples
    --------
    The first draft has p / q = 1/2, the second 2: together they are certain.

    >>> p, q = torch.tensor([1 / 3, 2 / 3]).expand(1, 3, 2), torch.tensor([2 / 3, 1 / 3])
    >>> coins = Coins(torch.tensor([[0.9, 0.9]]), final=torch.tensor([0.5]))
    >>> verify_block(p, q.expand(1, 2, 2), torch.tensor([[0, 1]]), coins=coins)
    (tensor([[0, 1, 1]]), tensor([3]))
    """
    check_shapes(target_probs, draft_probs, draft_tokens, lens)
    drafts = padded_drafts(draft_tokens, lens)[:, :-1]
    before = torch.arange(ROOT, drafts.shape[1] - 1, device=drafts.device)
    parents = torch.where(drafts == NO_DRAFT, NO_NODE, before)
    return verify_tree(target_probs, draft_probs, drafts, parents, rule="traversal", coins=coins)
