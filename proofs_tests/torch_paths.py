"""Every random path of a generation, with coins that make the loop take it.

Enumerated from the laws of the two models, with none of the code that is tested. A draft is
chosen by the middle of its interval of the inverse CDF, a verdict by the middle of its side of
p / q, and the last token as a draft is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
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
