"""Batched verification of drafts: the standard rule, and exact match.

Nothing here waits for the device: no number is read on the host, and no shape depends on one.
"""

import torch
from torch import Tensor

from specref.torch_backend.randomness import Coins
from specref.torch_backend.shaping import draw
from specref.torch_backend.validation import (
    NO_DRAFT,
    OUTSIDE,
    check_coins,
    check_shapes,
    padded_drafts,
    validate,
)

__all__ = ["NO_DRAFT", "OUTSIDE", "Coins", "validate", "verify", "verify_matching"]


def verify(
    target_probs: Tensor,
    draft_probs: Tensor | None,
    draft_tokens: Tensor,
    *,
    lens: Tensor | None = None,
    coins: Coins,
) -> tuple[Tensor, Tensor]:
    """Standard speculative decoding of a batch (Leviathan et al. 2023, Algorithm 1).

    With drafts and distributions of the right kind this is also the verification of Timor et al.
    2025, Algorithms 1 (union), 3 (SLRS) and 4 (TLI): q may sum to less than 1, and a draft may be
    ``OUTSIDE``. Draft i is accepted iff u < p / q, where 0 / 0 is no acceptance; the token after a
    rejection has the distribution norm((p - q)+), or p where rounding leaves nothing of p - q.

    Parameters
    ----------
    target_probs : Tensor, shape (B, K + 1, V)
        Row i is the target's distribution after the first i drafts. Any float dtype; acceptance is
        decided in float64, residuals are taken in float32, or in float64 if it is float64.
    draft_probs : Tensor, shape (B, K, V), or None
        The distributions that drafts were drawn from, up to the mass of ``OUTSIDE``. None: every
        draft is certain.
    draft_tokens : Tensor of integers, shape (B, K)
        ``NO_DRAFT`` (-1) from the end of a row on; ``OUTSIDE`` (-2) for something that is no
        token of the target, which is always rejected.
    lens : Tensor of integers, shape (B,), optional
        How many drafts a row has; the rest of it is not read.
    coins : Coins
        `race` draws the last token, or `final` if there is no race.

    Returns
    -------
    tokens : Tensor of int64, shape (B, K + 1)
        Accepted drafts and one more token, padded with -1.
    counts : Tensor of int64, shape (B,)
        How many tokens each row has.

    Raises
    ------
    TypeError
        Distributions are no floats, or tokens or lengths no integers.
    ValueError
        Shapes do not fit, or `coins` has neither `final` nor `race`. Values are taken on trust:
        see `validate`.

    Examples
    --------
    >>> p = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]).expand(2, -1, -1)
    >>> q = torch.tensor([[[0.8, 0.2]]]).expand(2, -1, -1)
    >>> coins = Coins(torch.tensor([[0.6], [0.7]]), final=torch.tensor([0.0, 0.0]))
    >>> verify(p, q, torch.tensor([[0], [0]]), coins=coins)
    (tensor([[ 0,  1],
            [ 1, -1]]), tensor([2, 1]))
    """
    check_shapes(target_probs, draft_probs, draft_tokens, lens)
    check_coins(coins, target_probs)
    drafts = padded_drafts(draft_tokens, lens)
    kept = _leading(_accepted(target_probs, draft_probs, drafts, coins.accept))
    weights = _last_weights(target_probs, draft_probs, drafts, kept)
    return blocks_of(drafts, kept, last_token(weights, coins))


def verify_matching(
    target_probs: Tensor, draft_tokens: Tensor, *, lens: Tensor | None = None, coins: Coins
) -> tuple[Tensor, Tensor]:
    """Exact match of a batch: target samples, kept while they equal the drafts.

    Timor et al. 2025, Algorithm 2 (SLEM), with sampling. Lossless however drafts are made.

    Parameters
    ----------
    target_probs, draft_tokens, lens
        As for `verify`.
    coins : Coins
        `accept` draws the samples at the drafts by inverse CDFs, and `final` the last.

    Returns
    -------
    tokens, counts
        As `verify`: the samples that match, and the first that does not.

    Raises
    ------
    TypeError, ValueError
        As `verify`, or `coins.final` is None.

    Examples
    --------
    >>> p = torch.tensor([[[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]])
    >>> coins = Coins(torch.tensor([[0.1, 0.9]]), final=torch.tensor([0.4]))
    >>> verify_matching(p, torch.tensor([[0, 0]]), coins=coins)
    (tensor([[ 0,  1, -1]]), tensor([2]))
    """
    check_shapes(target_probs, None, draft_tokens, lens)
    check_coins(coins, target_probs)
    if coins.final is None:
        raise ValueError("coins.final is None: expected a tensor, for the last sample")
    drafts = padded_drafts(draft_tokens, lens)
    uniforms = torch.cat([coins.accept, coins.final[:, None]], dim=1)
    positions = zip(target_probs.unbind(1), uniforms.unbind(1), strict=True)
    samples = torch.stack([draw(p, u) for p, u in positions], dim=1)
    kept = _leading(samples == drafts)
    return blocks_of(drafts, kept, samples.gather(1, kept[:, None]))


def _accepted(
    target_probs: Tensor, draft_probs: Tensor | None, drafts: Tensor, uniforms: Tensor
) -> Tensor:
    """Which drafts pass on their own, shape (B, K)."""
    tokens = drafts[:, :-1, None]
    p, q = (
        1.0 if laws is None else laws.gather(2, tokens.clamp(min=0)).double()
        for laws in (target_probs[:, :-1], draft_probs)
    )
    return ((uniforms[..., None] < p / q) & (tokens >= 0))[..., 0]


def _leading(flags: Tensor) -> Tensor:
    return flags.long().cumprod(dim=1).sum(dim=1)


def _last_weights(
    target_probs: Tensor, draft_probs: Tensor | None, drafts: Tensor, kept: Tensor
) -> Tensor:
    """Weights of the last token, shape (B, V): a residual, or p if no draft was rejected."""
    p = target_probs[torch.arange(len(kept), device=kept.device), kept]
    p = p.to(torch.promote_types(p.dtype, torch.float32))
    # In place: rows of a large vocabulary cost more to allocate than to read.
    excess = rejected_law(draft_probs, drafts, kept, p).to(p.dtype).neg_().add_(p).clamp_(min=0)
    left = excess.amax(dim=1, keepdim=True) > 0
    return torch.where(left, excess, p, out=excess)


def rejected_law(draft_probs: Tensor | None, drafts: Tensor, kept: Tensor, like: Tensor) -> Tensor:
    """The law q of each row's rejected draft, shape (B, V); 0 in rows without one."""
    token = drafts.gather(1, kept[:, None])
    if draft_probs is None or not draft_probs.shape[1]:
        certain = (token >= 0).to(like.dtype)
        return torch.zeros_like(like).scatter_(1, token.clamp(min=0), certain)
    position = kept.clamp(max=draft_probs.shape[1] - 1)
    q = draft_probs[torch.arange(len(kept), device=kept.device), position]
    return q.masked_fill_(token == NO_DRAFT, 0)


def last_token(weights: Tensor, coins: Coins) -> Tensor:
    """A token of each row of weights, by its race or its last coin; shape (B, 1)."""
    if coins.race is not None:
        arrival = coins.race.double() / weights
        return arrival.masked_fill_(weights <= 0, torch.inf).argmin(dim=1, keepdim=True)
    assert coins.final is not None
    return draw(weights, coins.final)[:, None]


def blocks_of(drafts: Tensor, kept: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """The drafts that are kept and the last token, padded with -1; and how many these are."""
    position = torch.arange(drafts.shape[1], device=drafts.device)
    tokens = drafts.masked_fill(position >= kept[:, None], NO_DRAFT)
    return tokens.scatter_(1, kept[:, None], last), kept + 1
