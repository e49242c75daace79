"""Batched block verification: drafts are accepted jointly.

With A_0 = 1 and A_i = min(1, A_{i-1} p / q) along the drafts, and R_i = (A_i p - q)+ of the laws
after i of n drafts, the accepted length is the last i whose coin is below

    h_i = sum R_i / (sum R_i + 1 - A_i),    h_n = A_n,

or 0, and the next token has the law norm(R_i), or p after all n.

A law q may sum to less than 1, the rest being ``OUTSIDE``, where A is 0. It is shown from the
last draft back that, once x_1 ... x_i are drafted, at least i are accepted with probability A_i,
and that the target's law follows them then. A draft y comes next and is accepted with
q min(1, A_i p / q) = min(q, A_i p). So nothing beyond i is accepted with
1 - sum min(q, A_i p) = 1 - A_i + sum R_i, whatever q sums to; i itself is with h_i of that, which
is sum R_i, and y follows with R_i(y). Both ways together give A_i p(y).

Nothing here waits for the device: no number is read on the host, and no shape depends on one.
"""

import torch
from torch import Tensor

from specref.torch_backend.randomness import Coins
from specref.torch_backend.validation import NO_DRAFT, check_coins, check_shapes, padded_drafts
from specref.torch_backend.verification.chains import blocks_of, last_token, rejected_law


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
    with certain drafts. Reads every row of p and q that has a draft.

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
    check_coins(coins, target_probs)
    drafts = padded_drafts(draft_tokens, lens)
    survival = _survival(target_probs, draft_probs, drafts)
    kept = _kept(_stopping(target_probs, draft_probs, drafts, survival), coins.accept)
    weights = _weights(target_probs, draft_probs, drafts, kept, survival)
    return blocks_of(drafts, kept, last_token(weights, coins))


def _survival(target_probs: Tensor, draft_probs: Tensor | None, drafts: Tensor) -> Tensor:
    """A_0 to A_K, shape (B, K + 1): 0 from OUTSIDE and after the last draft on, NaN from 0 / 0."""
    known, tokens = drafts[:, :-1] >= 0, drafts[:, :-1, None].clamp(min=0)
    ratios = target_probs[:, :-1].gather(2, tokens).double()
    if draft_probs is not None:
        ratios = ratios / draft_probs.gather(2, tokens).double()
    chances = [torch.ones_like(drafts[:, 0], dtype=torch.float64)]
    for ratio in torch.where(known, ratios[..., 0], 0.0).unbind(1):
        chances.append((chances[-1] * ratio).clamp(max=1))
    return torch.stack(chances, dim=1)


def _stopping(
    target_probs: Tensor, draft_probs: Tensor | None, drafts: Tensor, survival: Tensor
) -> Tensor:
    """h_1 to h_K, shape (B, K); NaN, which no coin is below, for 0 / 0."""
    chances = list(survival[:, 1:].unbind(1))
    for i in range(1, len(chances)):
        position = torch.full_like(drafts[:, 0], i)
        excess = _excess(target_probs, draft_probs, drafts, position, survival)
        total = excess.sum(dim=1, dtype=torch.float64)
        before_last = total / (total + 1 - survival[:, i])
        chances[i - 1] = torch.where(drafts[:, i] == NO_DRAFT, survival[:, i], before_last)
    return torch.stack(chances, dim=1) if chances else survival[:, 1:]


def _kept(chances: Tensor, uniforms: Tensor) -> Tensor:
    """The last position whose coin succeeds, or 0, shape (B,)."""
    position = torch.arange(1, chances.shape[1] + 1, device=chances.device)
    succeeded = torch.where(uniforms < chances, position, 0)
    return torch.nn.functional.pad(succeeded, (1, 0)).amax(dim=1)


def _weights(
    target_probs: Tensor,
    draft_probs: Tensor | None,
    drafts: Tensor,
    kept: Tensor,
    survival: Tensor,
) -> Tensor:
    """Weights of the last token, shape (B, V): a residual, or p where nothing is left of it."""
    excess = _excess(target_probs, draft_probs, drafts, kept, survival)
    p = target_probs[torch.arange(len(kept), device=kept.device), kept]
    left = excess.amax(dim=1, keepdim=True) > 0
    return torch.where(left, excess, p.to(excess.dtype), out=excess)


def _excess(
    target_probs: Tensor,
    draft_probs: Tensor | None,
    drafts: Tensor,
    position: Tensor,
    survival: Tensor,
) -> Tensor:
    """(P p - q)+ at one position of each row, shape (B, V); q is 0 after the last draft."""
    p = target_probs[torch.arange(len(position), device=position.device), position]
    p = p.to(torch.promote_types(p.dtype, torch.float32))
    q = rejected_law(draft_probs, drafts, position, p).to(p.dtype)
    return p.mul_(survival.gather(1, position[:, None])).sub_(q).clamp_(min=0)
