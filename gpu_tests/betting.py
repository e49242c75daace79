"""The bets of `Campaign.observe` and `EntropyMartingale`, on all tokens of a device at once.

A bet on a token has mean 1 if the token has law p given all tokens before it. Texts have coins
of their own, so products over all tokens of all texts have mean 1 as well, and so has their
average over components: that it reaches 1 / alpha has probability at most alpha.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gpu_tests.recording import Draws
from specref.contrib.real_models.entropy import STAKES as SURPRISE_STAKES
from specref.statistics.campaign.bets import RARE, ROUNDING, STAKES, STRENGTHS
from specref.statistics.campaign.large import LENIENCE

ALPHA = 1e-9
NUMBERS = 1 << 24
"""Of p that are looked at at once: 8,192 rows of 2,048 tokens, 110 of 152,064."""


class Rows(NamedTuple):
    """p and q [N, V] in float64, tokens [N], and where nothing was drafted [N]."""

    p: Tensor
    q: Tensor
    tokens: Tensor
    last: Tensor


def log10_evidence(draws: Draws, device: str) -> float:
    """How strongly the bets say that the tokens are not drawn by p; infinite if p excludes one.

    Lossy, at level alpha, from -log10(alpha) on.
    """
    total = torch.stack([log_bets(rows).sum(0) for rows in chunks(draws, device)]).sum(0)
    if total.isposinf().any():
        return math.inf
    return float(total.logsumexp(0) - math.log(len(total))) / math.log(10)


def chunks(draws: Draws, device: str) -> Iterator[Rows]:
    """The rows of some draws, some at a time, on a device."""
    count = max(1, NUMBERS // draws.p.shape[1])
    tensors = draws.p, draws.q, draws.tokens, ~draws.drafted
    for rows in zip(*(tensor.split(count) for tensor in tensors), strict=True):
        p, q, tokens, last = (tensor.to(device) for tensor in rows)
        p = p.double()
        yield Rows(p / p.sum(1, keepdim=True), q.double(), tokens, last)


def log_bets(rows: Rows) -> Tensor:
    """What each component wins on each token, shape (N, components); inf where p excludes it."""
    won = torch.cat([_pointwise(rows), _tilts(rows), _surprise(rows)], 1)
    return won.masked_fill(_at(rows.p, rows)[:, None] <= 0, torch.inf)


def _pointwise(rows: Rows) -> Tensor:
    won = []
    for law, last in _laws(rows.p, rows.q):
        law = law.where(rows.p > 0, 0)
        total = law.sum(1)
        ratio = _at(law, rows) / total / _at(rows.p, rows)
        ratio = ratio.where((total > 0) & (rows.last == last), 1)
        won += [torch.log(1 - strength + strength * ratio) for strength in STRENGTHS]
    return torch.stack(won, 1)


def _laws(p: Tensor, q: Tensor) -> Iterator[tuple[Tensor, bool]]:
    """The next token's laws under known bugs, and whether they are of bonus tokens."""
    kept, gap = torch.minimum(p, q), (p - q).abs()
    left = _norm((p - q).clamp(min=0), p)
    rejected = (1 - kept.sum(1, keepdim=True)).clamp(min=0)
    best = (q == q.amax(1, keepdim=True)).double()
    yield kept + rejected * p, False
    yield kept + rejected * _norm(gap, p), False
    yield kept + rejected * q, False
    yield q, False
    yield _completed(torch.minimum(LENIENCE * p, q), left), False
    ratio = torch.where(q > 0, p / q, 0).clamp(max=1)
    yield _completed(best / best.sum(1, keepdim=True) * ratio, left), False
    yield _completed(q * torch.where(p > 0, q / p, 1).clamp(max=1), left), False
    yield left, True
    yield q, True


def _norm(weights: Tensor, otherwise: Tensor) -> Tensor:
    total = weights.sum(1, keepdim=True)
    return torch.where(total > 0, weights / total, otherwise)


def _completed(accepted: Tensor, otherwise: Tensor) -> Tensor:
    return accepted + (1 - accepted.sum(1, keepdim=True)).clamp(min=0) * otherwise


def _tilts(rows: Rows) -> Tensor:
    stakes = torch.tensor(STAKES, device=rows.p.device)
    won = [
        torch.log1p(stakes * _at(_centred(feature, rows.p), rows)[:, None])
        for feature in _features(rows.p, rows.q)
    ]
    return torch.cat(won, 1)


def _features(p: Tensor, q: Tensor) -> Iterator[Tensor]:
    yield q > p
    yield torch.where(p + q > 0, q / (p + q), 0.5)
    yield p == p.amax(1, keepdim=True)
    yield q == q.amax(1, keepdim=True)
    yield p < RARE * (p * p).sum(1, keepdim=True)


def _centred(feature: Tensor, p: Tensor) -> Tensor:
    unit = feature.double().where(p > 0, 0)
    for _ in range(2):
        unit = (unit - (p * unit).sum(1, keepdim=True)).where(p > 0, 0)
        reach = unit.abs().amax(1, keepdim=True)
        unit = torch.where(reach > ROUNDING, unit / reach, 0)
    return unit


def _surprise(rows: Rows) -> Tensor:
    log_p = rows.p.log()
    surprise = -_at(log_p, rows)
    won = [
        stake * surprise - ((1 - stake) * log_p).logsumexp(1)
        for stake in np.asarray(SURPRISE_STAKES).tolist()
    ]
    return torch.stack(won, 1)


def _at(values: Tensor, rows: Rows) -> Tensor:
    return values.gather(1, rows.tokens[:, None])[:, 0]
