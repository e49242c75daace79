"""Standard speculative decoding in torch, in bfloat16 or float16; and two mistakes."""

from typing import Any, TypeAlias

Tensor: TypeAlias = Any


def verify_bfloat16(
    target_probs: Tensor, draft_probs: Tensor | None, draft_tokens: Tensor
) -> tuple[Tensor, Tensor]:
    """Probabilities in bfloat16, random numbers in float32.

    Parameters
    ----------
    target_probs : Tensor, shape (B, K + 1, V)
    draft_probs : Tensor, shape (B, K, V), or None
        None: every draft is taken as certain.
    draft_tokens : Tensor of int, shape (B, K)
        -1 where there is no draft.

    Returns
    -------
    tokens : Tensor of int, shape (B, K + 1)
        Padded with -1.
    counts : Tensor of int, shape (B,)
    """
    return _verified(target_probs, draft_probs, draft_tokens, "bfloat16")


def verify_float16(
    target_probs: Tensor, draft_probs: Tensor | None, draft_tokens: Tensor
) -> tuple[Tensor, Tensor]:
    """The same with probabilities in float16."""
    return _verified(target_probs, draft_probs, draft_tokens, "float16")


def bfloat16_coins(
    target_probs: Tensor, draft_probs: Tensor | None, draft_tokens: Tensor
) -> tuple[Tensor, Tensor]:
    """With coins in bfloat16, of which one in 256 is 0: whatever has p > 0 is kept (lossy)."""
    return _verified(target_probs, draft_probs, draft_tokens, "bfloat16", coins="bfloat16")


def residual_is_p(
    target_probs: Tensor, draft_probs: Tensor | None, draft_tokens: Tensor
) -> tuple[Tensor, Tensor]:
    """With a draw from p, not from the residual, after a rejection (lossy)."""
    return _verified(target_probs, draft_probs, draft_tokens, "bfloat16", subtract=False)


def _verified(
    target_probs: Tensor,
    draft_probs: Tensor | None,
    draft_tokens: Tensor,
    dtype: str,
    coins: str = "float32",
    subtract: bool = True,
) -> tuple[Tensor, Tensor]:
    import torch

    x, rows = draft_tokens.clamp(min=0), torch.arange(len(draft_tokens))
    certain = torch.nn.functional.one_hot(x, target_probs.shape[2])
    given = target_probs, certain if draft_probs is None else draft_probs
    p, q = (laws.to(getattr(torch, dtype)) for laws in given)
    px, qx = (laws[:, : x.shape[1]].gather(2, x[..., None])[..., 0] for laws in (p, q))
    uniforms = torch.rand(x.shape, dtype=getattr(torch, coins))
    kept = ((uniforms * qx < px) & (draft_tokens >= 0)).int().cumprod(dim=1).sum(dim=1)
    weights = p[rows, kept]
    rejected = rows[kept < (draft_tokens >= 0).sum(dim=1)]
    residual = (weights[rejected] - q[rejected, kept[rejected]]).clamp(min=0)
    left = residual.any(dim=1) & subtract  # nothing is, after a rejection by rounding alone
    weights[rejected[left]] = residual[left]
    tokens = torch.full((len(x), x.shape[1] + 1), -1)
    tokens[:, :-1] = torch.where(torch.arange(x.shape[1]) < kept[:, None], x, -1)
    noise = torch.empty(weights.shape).exponential_()
    tokens[rows, kept] = (weights / noise).argmax(dim=1)
    return tokens, kept + 1
