"""Every random path of a generation, with coins that make the loop take it.

Enumerated from the laws of the two models, with none of the code that is tested. A draft is
chosen by the middle of its interval of the inverse CDF, a verdict by the middle of its side of
p / q, and the last token as a draft is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from specref.distributions import Probabilities, corrected
from specref.torch_backend.randomness import ACCEPT, DRAFT, FINAL, Coins
from specref.vocabulary import Tokens

Law: TypeAlias = Callable[[Tokens], Probabilities]
IDLE, NEGLIGIBLE = 0.5, 1e-13


@dataclass(frozen=True)
class Block:
    """What one iteration emits, with its probability and its coins."""

    tokens: Tokens
    accepted: int
    weight: float
    draft: tuple[float, ...]
    accept: tuple[float, ...]
    final: float


@dataclass(frozen=True)
class Path:
    """What is generated, with its probability, block after block."""

    tokens: Tokens = ()
    weight: float = 1.0
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Generator:
    """Standard speculative decoding of `length` tokens, or up to `eos`."""

    target: Law
    drafter: Law
    lookahead: int
    length: int
    eos: int

    def paths(self, path: Path = Path()) -> Iterator[Path]:
        """All of them; their weights sum to 1."""
        left = self.length - len(path.tokens)
        if not left or path.tokens[-1:] == (self.eos,):
            yield path
            return
        for block in self.blocks(path.tokens, min(self.lookahead, left - 1)):
            tokens, weight = path.tokens + block.tokens, path.weight * block.weight
            yield from self.paths(Path(tokens, weight, (*path.blocks, block)))

    def blocks(
        self,
        context: Tokens,
        room: int,
        block: Tokens = (),
        weight: float = 1.0,
        draft: tuple[float, ...] = (),
        accept: tuple[float, ...] = (),
    ) -> Iterator[Block]:
        """All blocks that go on from these accepted drafts."""
        if block[-1:] == (self.eos,):
            yield Block(block, len(block), weight, draft, accept, IDLE)
            return
        p = self.target(context + block)
        if len(block) == room:
            yield from _ended(block, p, weight, draft, accept)
            return
        q = self.drafter(context + block)
        for token in np.flatnonzero(q).tolist():
            ratio, coins = min(1.0, p[token] / q[token]), (*draft, middle(q, token))
            if ratio > NEGLIGIBLE:
                longer, coin = (*block, token), (*accept, ratio / 2)
                share = weight * q[token] * ratio
                yield from self.blocks(context, room, longer, share, coins, coin)
            if 1 - ratio > NEGLIGIBLE:
                share, coin = weight * q[token] * (1 - ratio), (*accept, (1 + ratio) / 2)
                yield from _ended(block, corrected(p, q), share, coins, coin)


class JointGenerator(Generator):
    """The same by block verification (Sun et al. 2024): all drafts, then how many are accepted."""

    def blocks(self, context: Tokens, room: int) -> Iterator[Block]:
        for drafts, weight, draft in self._drafted(context, room):
            survival, chances = self._chances(context, drafts)
            for kept, chance in enumerate(chances):
                share = weight * chance * prod(1 - other for other in chances[kept + 1 :])
                accept = [(1 + other) / 2 for other in chances[1:]]
                accept[kept - 1 : kept] = [chance / 2] if kept else []
                if share > NEGLIGIBLE:
                    law = self._last(context, drafts, kept, survival[kept])
                    yield from self._blocks(drafts[:kept], law, share, draft, tuple(accept))

    def _blocks(
        self, block: Tokens, law: Probabilities, weight: float, *coins: tuple[float, ...]
    ) -> Iterator[Block]:
        if block[-1:] == (self.eos,):
            yield Block(block, len(block), weight, *coins, IDLE)
        else:
            yield from _ended(block, law, weight, *coins)

    def _drafted(
        self, context: Tokens, room: int, weight: float = 1.0, draft: tuple[float, ...] = ()
    ) -> Iterator[tuple[Tokens, float, tuple[float, ...]]]:
        """All drafts, up to EOS, with their probabilities and coins."""
        if not room:
            yield (), weight, draft
            return
        q = self.drafter(context)
        for token in np.flatnonzero(q).tolist():
            share, coins = weight * q[token], (*draft, middle(q, token))
            room_left = 0 if token == self.eos else room - 1
            for rest, *others in self._drafted((*context, token), room_left, share, coins):
                yield ((token, *rest), *others)

    def _chances(self, context: Tokens, drafts: Tokens) -> tuple[list[float], list[float]]:
        """P_0 to P_n, and how likely each length is accepted where no longer one is."""
        survival, chances = [1.0], [1.0]
        for i, token in enumerate(drafts):
            p, q = self.target(context + drafts[:i]), self.drafter(context + drafts[:i])
            survival.append(min(1.0, survival[-1] * p[token] / q[token]))
        for i in range(1, len(drafts)):
            p, q = self.target(context + drafts[:i]), self.drafter(context + drafts[:i])
            excess = np.maximum(survival[i] * p - q, 0).sum()
            chances.append(float(excess / (excess + 1 - survival[i])) if excess else 0.0)
        return survival, chances + survival[len(chances) :]

    def _last(self, context: Tokens, drafts: Tokens, kept: int, survival: float) -> Probabilities:
        p = self.target(context + drafts[:kept])
        if kept == len(drafts):
            return p
        excess = np.maximum(survival * p - self.drafter(context + drafts[:kept]), 0)
        return excess / excess.sum()


def _ended(
    block: Tokens,
    law: Probabilities,
    weight: float,
    draft: tuple[float, ...],
    accept: tuple[float, ...],
) -> Iterator[Block]:
    for token in np.flatnonzero(law).tolist():
        tokens, share = (*block, token), weight * law[token]
        yield Block(tokens, len(block), share, draft, accept, middle(law, token))


def middle(law: Probabilities, token: int) -> float:
    """A coin that draws a token."""
    return float(law[:token].sum() + law[token] / 2)


class ChosenCoins:
    """Stands in for `uniforms` and `row_coins`: the seed of a row is the number of its path."""

    def __init__(self, paths: Sequence[Path], lookahead: int) -> None:
        iterations = zip_longest(*(path.blocks for path in paths))
        self.table = [
            {
                DRAFT: _padded([block.draft if block else () for block in blocks], lookahead),
                ACCEPT: _padded([block.accept if block else () for block in blocks], lookahead),
                FINAL: _padded([(block.final,) if block else () for block in blocks], 1),
            }
            for blocks in iterations
        ]

    def uniforms(self, seeds: Tensor, iteration: int, site: int, count: int) -> Tensor:
        return self.table[iteration][site][seeds, :count]

    def row_coins(self, seeds: Tensor, iteration: int, lookahead: int) -> Coins:
        accept = self.uniforms(seeds, iteration, ACCEPT, lookahead)
        return Coins(accept, self.uniforms(seeds, iteration, FINAL, 1)[:, 0])


def _padded(rows: Sequence[Sequence[float]], width: int) -> Tensor:
    return torch.tensor([[*row, *[IDLE] * (width - len(row))] for row in rows]).double()
