"""The exact law of one token of `verify`, for p and q in a dtype, and a probe that it is that."""

import torch
from torch import Tensor

from specref.torch_backend import Coins, verify

PROBED = 1e-8


def laws_in(dtype: torch.dtype, p: Tensor, q: Tensor, lenience: float = 1.0) -> Tensor:
    """The laws of tokens when p and q [N, V] are rounded to a dtype, drafts drawn from that q.

    Acceptance is decided in float64 and residuals are taken in float32, as `verify` says it
    does; a draft is accepted with probability min(1, lenience p / q).
    """
    p, q = p.to(dtype), q.to(dtype)
    drafts = q.double() / q.double().sum(-1, keepdim=True)
    ratio = torch.where(q > 0, p.double() / q.double(), 0)
    accepted = drafts * (lenience * ratio).clamp(max=1)
    last = residual(p, q)
    rejected = 1 - accepted.sum(-1, keepdim=True)
    return accepted + rejected * last / last.sum(-1, keepdim=True)


def residual(p: Tensor, q: Tensor) -> Tensor:
    """The weights (p - q)+, or p where they are all 0, in float64."""
    wide = torch.promote_types(p.dtype, torch.float32)
    excess = (p.to(wide) - q.to(wide)).clamp(min=0).double()
    return torch.where(excess.sum(-1, keepdim=True) > 0, excess, p.double())


def total_variation(laws: Tensor, others: Tensor) -> Tensor:
    """Row by row."""
    return (laws - others).abs().sum(-1) / 2


def misplaced(dtype: torch.dtype, p: Tensor, q: Tensor) -> Tensor:
    """Tokens for which `verify` does not do what `laws_in` takes for granted; p and q are [V].

    A draft is to be accepted by the last coin below p / q and by none from there on; and the
    last token, drawn by a coin within a millionth of either end of its interval, is to be it.
    """
    p, q = p.to(dtype), q.to(dtype)
    ratio = torch.where(q > 0, p.double() / q.double(), 0)
    drafts = ((q > 0) & (ratio < 1)).nonzero()[:, 0]
    below = torch.nextafter(ratio[drafts], torch.zeros_like(ratio[drafts]))
    yes = _accepted(p, q, drafts, below) | (ratio[drafts] == 0)
    wrong = drafts[~yes | _accepted(p, q, drafts, ratio[drafts])]
    return torch.cat([wrong, _wrong_last(p, q, drafts[:1])])


def _accepted(p: Tensor, q: Tensor, drafts: Tensor, accept: Tensor) -> Tensor:
    coins = Coins(accept[:, None], final=torch.zeros_like(accept))
    _, counts = verify(*_rows(p, q, len(drafts)), drafts[:, None], coins=coins)
    return counts == 2


def _wrong_last(p: Tensor, q: Tensor, draft: Tensor) -> Tensor:
    weights = residual(p, q)
    ends = weights.cumsum(0) / weights.sum()
    width = weights / weights.sum()
    tokens = (width > PROBED).nonzero()[:, 0]
    inside = (width - 1e-6 * width)[tokens], (1e-6 * width)[tokens]
    wrong = []
    for back in inside:
        final = ends[tokens] - back
        coins = Coins(torch.full_like(final, 1 - 2.0**-53)[:, None], final=final)
        found, _ = verify(*_rows(p, q, len(tokens)), draft.expand(len(tokens), 1), coins=coins)
        wrong.append(tokens[found[:, 0] != tokens])
    return torch.cat(wrong)


def _rows(p: Tensor, q: Tensor, count: int) -> tuple[Tensor, Tensor]:
    return p.expand(count, 2, -1), q.expand(count, 1, -1)
