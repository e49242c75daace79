"""Every random path of a generation, with coins that make the loop take it.

Enumerated from the laws of the two models, with none of the code that is tested. A draft is
chosen by the middle of its interval of the inverse CDF, a verdict by the middle of its side of
p / q, and the last token as a draft is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from specref.distributions import Probabilities, corrected, total_variation
from specref.torch_backend import Generation
from specref.torch_backend.randomness import ACCEPT, DRAFT, FINAL, Coins
from specref.torch_backend.validation import OUTSIDE
from specref.vocabulary import Tokens


class FromUniforms:
    """What has `uniforms` has `row_coins`, too."""

    def uniforms(self, seeds: Tensor, iteration: int, site: int, count: int) -> Tensor:
        raise NotImplementedError

    def row_coins(self, seeds: Tensor, iteration: int, lookahead: int) -> Coins:
        accept = self.uniforms(seeds, iteration, ACCEPT, lookahead)
        return Coins(accept, self.uniforms(seeds, iteration, FINAL, 1)[:, 0])


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


class Choice(NamedTuple):
    """A draft, its probability and coins, and all that the drafter has read then."""

    token: int
    weight: float
    coins: tuple[float, ...]
    read: Tokens


class Drafted(NamedTuple):
    """Drafts, the laws that are declared for them, their probability and coins."""

    tokens: Tokens = ()
    laws: tuple[Probabilities, ...] = ()
    weight: float = 1.0
    coins: tuple[float, ...] = ()


class JointGenerator(Generator):
    """The same by block verification (Sun et al. 2024): all drafts, then how many are accepted."""

    def blocks(self, context: Tokens, room: int) -> Iterator[Block]:
        for drafted in self._drafted(self.read(context), room):
            survival, chances = self._chances(context, drafted)
            for kept, chance in enumerate(chances):
                share = drafted.weight * chance * prod(1 - other for other in chances[kept + 1 :])
                accept = [(1 + other) / 2 for other in chances[1:]]
                accept[kept - 1 : kept] = [chance / 2] if kept else []
                if share > NEGLIGIBLE:
                    law = self._last(context, drafted, kept, survival[kept])
                    coins, block = (drafted.coins, tuple(accept)), drafted.tokens[:kept]
                    yield from self._blocks(block, law, share, *coins)

    def read(self, context: Tokens) -> Tokens:
        """What the drafter reads for a text."""
        return context

    def choices(self, read: Tokens) -> tuple[Probabilities, list[Choice]]:
        """The law of the next draft that is declared, and all ways to draw it."""
        q = self.drafter(read)
        tokens = np.flatnonzero(q).tolist()
        return q, [Choice(x, q[x], (middle(q, x),), (*read, x)) for x in tokens]

    def _blocks(
        self, block: Tokens, law: Probabilities, weight: float, *coins: tuple[float, ...]
    ) -> Iterator[Block]:
        if block[-1:] == (self.eos,):
            yield Block(block, len(block), weight, *coins, IDLE)
        else:
            yield from _ended(block, law, weight, *coins)

    def _drafted(self, read: Tokens, room: int) -> Iterator[Drafted]:
        """All drafts, up to EOS or what is no token of the target."""
        if not room:
            yield Drafted()
            return
        law, choices = self.choices(read)
        for token, weight, coins, after in choices:
            for rest in self._drafted(after, 0 if token in (self.eos, OUTSIDE) else room - 1):
                both = (token, *rest.tokens), (law, *rest.laws)
                yield Drafted(*both, weight * rest.weight, coins + rest.coins)

    def _chances(self, context: Tokens, drafted: Drafted) -> tuple[list[float], list[float]]:
        """A_0 to A_n, and how likely each length is accepted where no longer one is."""
        drafts, laws = drafted.tokens, drafted.laws
        survival, chances = [1.0], [1.0]
        for i, token in enumerate(drafts):
            ratio = 0.0 if token < 0 else self.target(context + drafts[:i])[token] / laws[i][token]
            survival.append(min(1.0, survival[-1] * ratio))
        for i in range(1, len(drafts)):
            p = self.target(context + drafts[:i])
            excess = np.maximum(survival[i] * p - laws[i], 0).sum()
            chances.append(float(excess / (excess + 1 - survival[i])) if excess else 0.0)
        return survival, chances + survival[len(chances) :]

    def _last(
        self, context: Tokens, drafted: Drafted, kept: int, survival: float
    ) -> Probabilities:
        p = self.target(context + drafted.tokens[:kept])
        if kept == len(drafted.tokens):
            return p
        excess = np.maximum(survival * p - drafted.laws[kept], 0)
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


class ChosenCoins(FromUniforms):
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


def _padded(rows: Sequence[Sequence[float]], width: int) -> Tensor:
    return torch.tensor([[*row, *[IDLE] * (width - len(row))] for row in rows]).double()


def texts(
    p: Law, length: int, eos: int, text: Tokens = (), weight: float = 1.0
) -> Iterator[tuple[Tokens, float]]:
    """Each text of the target, up to EOS, with its probability."""
    if len(text) == length or text[-1:] == (eos,):
        yield text, weight
        return
    law = p(text)
    for token in np.flatnonzero(law).tolist():
        yield from texts(p, length, eos, (*text, token), weight * law[token])


def off(paths: Iterable[Path], came: Iterable[Tokens], expected: Mapping[Tokens, float]) -> float:
    """Total variation of the law of the texts that came out from what is expected."""
    law: Counter[Tokens] = Counter()
    for path, tokens in zip(paths, came, strict=True):
        law[tokens] += path.weight
    return float(total_variation(law, expected))


def check_taken(paths: Sequence[Path], generation: Generation) -> None:
    """Every row has the tokens, and the accepted lengths, that its coins decide."""
    assert generation.tokens == tuple(path.tokens for path in paths)
    for path, log in zip(paths, generation.iterations, strict=True):
        found = [(iteration.accepted, iteration.emitted) for iteration in log]
        assert found == [(block.accepted, len(block.tokens)) for block in path.blocks]
