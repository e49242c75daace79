"""Bets on tokens of a large vocabulary, many rows at once, in few passes over a row.

A bet on a token has mean 1 if the token has law p given all tokens before it. Texts have random
numbers of their own, so products over all tokens of all texts have mean 1 as well, and so has
their average over components: that it ever reaches 1 / alpha has probability at most alpha.

The components are those of `specref.statistics.campaign.large`, which knows one row at a time: the
next token's law under known bugs, at four strengths, and tilts; and those of the surprise of a
token (`specref.contrib.real_models.entropy`).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from specref.contrib.real_models.entropy import STAKES as SURPRISE_STAKES
from specref.statistics.campaign.bets import RARE, STAKES, STRENGTHS
from specref.statistics.campaign.large import LENIENCE, POINTWISE

Take: TypeAlias = Callable[[Tensor], Tensor]

TINY = 1e-300
"""Makes 0 / 0 a 0, and changes no other quotient of float64 probabilities."""
ROUNDED = 1e-9
"""Sums over 10^5 tokens below it may be rounding alone: no bet is made on them."""
TILTED = ("q > p", "q / (p + q)", "argmax p", "argmax q", "rare")


class Rows(NamedTuple):
    """p and q [N, V] in float64, tokens [N], and where nothing was drafted [N]."""

    p: Tensor
    q: Tensor
    tokens: Tensor
    last: Tensor

    def at(self, values: Tensor) -> Tensor:
        """What some rows [N, V] have at the tokens."""
        return values.gather(1, self.tokens[:, None])[:, 0]


def names() -> list[str]:
    """The components, in the order of `log_bets`."""
    bugs = [f"{bug}, {strength:.0%}" for bug in POINTWISE for strength in STRENGTHS]
    tilts = [f"{f} {'more' if s > 0 else 'less'} often" for f in TILTED for s in STAKES.tolist()]
    warm = [f"temperature {1 / (1 - s):.2f}" for s in SURPRISE_STAKES.tolist()]
    return bugs + tilts + warm


def log_bets(rows: Rows) -> Tensor:
    """What each component wins on each token, shape (N, components); inf where p excludes it."""
    won = torch.cat([_bugs(rows), _tilts(rows), _surprise(rows)], 1)
    return won.masked_fill((rows.at(rows.p) <= 0)[:, None], torch.inf)


def bug_ratios(rows: Rows, take: Take) -> Iterator[Tensor]:
    """law / p of each bug of `POINTWISE` at what `take` takes; 1 where it says nothing."""
    here = take(rows.p)
    for law, total, last in _laws(rows, take):
        known = (rows.last == last)[:, None] & (total > 0) & (here > 0)
        yield torch.where(known, law / (total * here + TINY), 1)


def _bugs(rows: Rows) -> Tensor:
    strengths = torch.tensor(STRENGTHS, dtype=rows.p.dtype, device=rows.p.device)
    ratios = torch.cat([*bug_ratios(rows, lambda values: rows.at(values)[:, None])], 1)[..., None]
    return torch.log(1 - strengths + strengths * ratios).flatten(1)


def _laws(rows: Rows, take: Take) -> Iterator[tuple[Tensor, Tensor, bool]]:
    """Each bug's weights at what `take` takes, their sum over p's support, and its place.

    Sums over the vocabulary are taken of few tensors: Python's `where` on them costs most.
    """
    p, q = rows.p, rows.q
    here, there = take(p), take(q)
    overlap, all_q = _sum(torch.minimum(p, q)), _sum(q)
    inside = _sum(q * (p > 0))
    one, rejected = torch.ones_like(overlap), (1 - overlap).clamp(min=0)
    gaps = 1 + all_q - 2 * overlap
    low, gap = torch.minimum(here, there), (here - there).abs()
    left = torch.where(rejected > ROUNDED, (here - there).clamp(min=0) / rejected, here)
    apart = torch.where(gaps > ROUNDED, gap / gaps, here)
    reached = torch.where(gaps > ROUNDED, (gaps - (all_q - inside)) / gaps, one)
    yield low + rejected * here, one, False
    yield low + rejected * apart, overlap + rejected * reached, False
    yield low + rejected * there, overlap + rejected * inside, False
    yield there, inside, False
    lenient = torch.minimum(LENIENCE * p, q)
    yield _completed(take(lenient), _sum(lenient), left)
    best = (q == q.amax(1, keepdim=True)).double()
    greedy = best * (p / (q + TINY)).clamp(max=1) / _sum(best)
    yield _completed(take(greedy), _sum(greedy), left)
    inverted = torch.minimum(q, q * q / (p + TINY))
    missing = (1 - _sum(inverted)).clamp(min=0)
    yield take(inverted) + missing * left, _sum(inverted * (p > 0)) + missing, False
    yield left, one, True
    yield there, inside, True


def _completed(accepted: Tensor, mass: Tensor, left: Tensor) -> tuple[Tensor, Tensor, bool]:
    missing = (1 - mass).clamp(min=0)
    return accepted + missing * left, mass + missing, False


def _sum(values: Tensor) -> Tensor:
    return values.sum(1, keepdim=True)


def _tilts(rows: Rows) -> Tensor:
    """1 + stake (f - mean of f) / reach, for features f of a token between 0 and 1."""
    p, q = rows.p, rows.q
    stakes = torch.as_tensor(np.asarray(STAKES), device=p.device)
    share = q / (p + q + TINY)
    rare = p < RARE * _sum(p * p)
    flags = (q > p, None, p == p.amax(1, keepdim=True), q == q.amax(1, keepdim=True), rare)
    won = []
    for flag in flags:
        feature = share if flag is None else flag
        mean, taken = (p * feature).sum(1), rows.at(feature)
        # A share is nowhere farther than 1 from its mean, a flag as far as its mean says.
        reach = torch.ones_like(mean) if flag is None else torch.maximum(mean, 1 - mean)
        unit = (taken.double() - mean) / reach
        constant = (mean <= ROUNDED) | (mean >= 1 - ROUNDED)
        won.append(torch.log1p(stakes * unit.masked_fill(constant, 0)[:, None]))
    return torch.cat(won, 1)


def _surprise(rows: Rows) -> Tensor:
    log_p = rows.p.log()
    taken, rounded = rows.at(log_p), log_p.float()  # twelve passes, at a relative error of 1e-7
    stakes = np.asarray(SURPRISE_STAKES).tolist()
    sums = [((1 - s) * rounded).logsumexp(1).double() for s in stakes]
    return torch.stack([-s * taken - one for s, one in zip(stakes, sums, strict=True)], 1)
