"""Blocks to verify on held-out texts: real logits, drafts, coins, and what the reference says."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_tests.pairs import held_out
from specref.arrays import Floats
from specref.coins import Coins as ReferenceCoins
from specref.coins import draw_coins
from specref.contrib.real_models.judging import forced_logits
from specref.contrib.real_models.pairs import Pair
from specref.statistics.floats.floats import verify_float64
from specref.torch_backend import OUTSIDE, Coins, shape_logits
from specref.torch_backend.methods import DRAFTERS

BATCH = 512
MARGIN = 1e-5
LONGEST = 32
Last: TypeAlias = Literal["race", "final"]


class Reference(NamedTuple):
    """What the reference is given; drafts outside of the vocabulary are of one more token."""

    p: Floats
    q: Floats
    drafts: NDArray[np.int64]
    coins: ReferenceCoins


@dataclass(frozen=True)
class Blocks:
    """Some blocks as the backend is given them, and the same in float64 for the reference."""

    p: Tensor
    q: Tensor
    drafts: Tensor
    coins: Coins
    reference: Reference

    def by(self, last: Last) -> "Blocks":
        """The same, whose last tokens are drawn by a race, or by an inverse CDF alone."""
        kept = {"race": self.coins.race} if last == "race" else {"final": self.coins.final}
        return replace(self, coins=Coins(self.coins.accept, **kept))

    def expected(self) -> Tensor:
        """The reference's tokens, padded with -1; the last by a race if there is one."""
        tokens = verify_float64(*self.reference)
        if self.coins.race is None:
            last = by_inverse_cdf(self.reference, tokens)
            np.put_along_axis(tokens, (tokens >= 0).sum(1, keepdims=True) - 1, last[:, None], 1)
        return torch.from_numpy(tokens).to(self.p.device)

    def decided(self, margin: float = MARGIN) -> Tensor:
        """Which rows come out the same for all p and q within a margin, relatively."""
        last: Last = "final" if self.coins.race is None else "race"
        return torch.from_numpy(decided(self.reference, margin, last)).to(self.p.device)


def held_out_blocks(pair: Pair, method: str, count: int, lookahead: int = 4) -> list[Blocks]:
    """Blocks after beginnings of held-out documents, as a method drafts them there."""
    documents = held_out(pair)
    contexts = [
        documents[number % len(documents)][: 1 + 7 * number % LONGEST] for number in range(count)
    ]
    rng = np.random.default_rng(1)
    return [
        _blocks(pair, method, contexts[start : start + BATCH], start, lookahead, rng)
        for start in range(0, count, BATCH)
    ]


@torch.inference_mode()
def _blocks(
    pair: Pair,
    method: str,
    contexts: list[list[int]],
    start: int,
    lookahead: int,
    rng: np.random.Generator,
) -> Blocks:
    seeds = torch.arange(start, start + len(contexts), device=pair.target.model.device)
    drafter = DRAFTERS[method](pair.for_methods(shape_logits))
    drafts = drafter.draft(contexts, lookahead, seeds, 0)
    assert drafts.laws is not None
    known = drafts.tokens.clamp(min=0).tolist()
    texts = [[*row, 0] for row in known]
    logits = forced_logits(pair.target.model, contexts, texts).view(
        len(contexts), len(texts[0]), -1
    )
    drawn = draw_coins(len(contexts), drafts.tokens.shape[1], logits.shape[2] + 1, rng)
    accept, race = (torch.from_numpy(a).to(logits.device) for a in (drawn.accept, drawn.race))
    return Blocks(
        shape_logits(logits),
        drafts.laws,
        drafts.tokens,
        Coins(accept, torch.from_numpy(drawn.final).to(logits.device), race[:, :-1]),
        _reference(logits, drafts.laws, drafts.tokens, drawn),
    )


def _reference(logits: Tensor, laws: Tensor, drafts: Tensor, coins: ReferenceCoins) -> Reference:
    exact = logits.double().cpu().numpy()
    weights = np.exp(exact - exact.max(-1, keepdims=True))
    p, q = weights / weights.sum(-1, keepdims=True), laws.double().cpu().numpy()
    outside = np.maximum(1 - q.sum(-1, keepdims=True), 0)
    tokens = drafts.cpu().numpy()
    return Reference(
        np.concatenate([p, np.zeros_like(p[..., :1])], -1),
        np.concatenate([q, outside], -1),
        np.where(tokens == OUTSIDE, p.shape[-1], tokens),
        coins,
    )


def by_inverse_cdf(given: Reference, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last token of each block, by the final random number, in float64."""
    weights, law = _weights(given, (tokens >= 0).sum(1) - 1)
    weights = np.where(weights.any(1, keepdims=True), weights, law)
    ends = np.where(weights > 0, weights.cumsum(1), 0)
    point = given.coins.final * ends.max(1)
    return np.asarray((ends > point[:, None]).argmax(1))


def decided(given: Reference, margin: float, last: Last) -> NDArray[np.bool_]:
    """Which rows have one outcome, were every p and q to move by `margin`, relatively."""
    p, q, drafts, coins = given
    rows, positions = np.ogrid[: drafts.shape[0], : drafts.shape[1]]
    at = rows, positions, np.maximum(drafts, 0)
    ratio = np.where(drafts < 0, 0, p[at] / np.where(drafts < 0, 1, q[at]))
    yes = coins.accept < ratio * (1 - margin) / (1 + margin)
    no = coins.accept >= ratio * (1 + margin) / (1 - margin)
    kept = np.logical_and.accumulate(yes, axis=1).sum(1)
    whole = np.append(no, np.ones((len(p), 1), bool), axis=1)
    least, most = (_weights(given, kept, side)[0] for side in (margin, -margin))
    one = _one_winner(least, most, coins.race)
    if last == "final":
        one = _one_end(least, most, coins.final)
    return np.asarray(whole[np.arange(len(p)), kept] & one)


def _weights(
    given: Reference, kept: NDArray[np.int64], side: float = 0.0
) -> tuple[Floats, Floats]:
    """(p - q)+ where drafts are kept so far, p less and q more by a share; and p."""
    p, q, drafts, _ = given
    rows = np.arange(len(p))
    ends = np.append(drafts, np.full((len(p), 1), -1), axis=1)[rows, kept] < 0
    law = np.where(ends[:, None], 0, np.append(q, q[:, -1:], axis=1)[rows, kept])
    return np.maximum(p[rows, kept] * (1 - side) - law * (1 + side), 0), p[rows, kept]


def _one_end(least: Floats, most: Floats, final: Floats) -> NDArray[np.bool_]:
    """Whether an inverse CDF leads to one token for all weights between these."""
    low, high = least.cumsum(1), most.cumsum(1)
    before, after = high - most, low[:, -1:] - (low - least)
    begins = np.divide(before, before + after, out=np.ones_like(low), where=before + after > 0)
    after = high[:, -1:] - high
    ends = np.divide(low, low + after, out=np.zeros_like(low), where=low + after > 0)
    return np.asarray(((begins <= final[:, None]) & (final[:, None] < ends)).any(1))


def _one_winner(least: Floats, most: Floats, race: Floats) -> NDArray[np.bool_]:
    """Whether one token wins a race for all weights between these."""
    with np.errstate(divide="ignore"):
        latest, earliest = race / least, race / most
    winner = latest.argmin(1)[:, None]
    finish = np.take_along_axis(latest, winner, 1)[:, 0]
    np.put_along_axis(earliest, winner, np.inf, 1)
    return np.asarray(finish < earliest.min(1))
