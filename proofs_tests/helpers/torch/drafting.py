"""Drafters of the torch backend under known coins: their exact laws, and those of blocks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from proofs_tests.helpers.torch.laws import verified_laws
from specref.torch_backend.drafters.drafts import Drafts
from specref.torch_backend.randomness import Coins
from specref.torch_backend.verification.chains import verify
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

Target = Callable[[Sequence[int]], Tensor]
Law = dict[tuple[int, ...], float]
GRID, HALVINGS = 256, 27


def toy_vocabulary(*pieces: bytes, eos: bool = True) -> TokenVocabulary:
    """Tokens of these bytes, and EOS after them; a repeated one is a byte fallback."""
    again = [piece in pieces[:index] for index, piece in enumerate(pieces)]
    strings = [
        f"<0x{piece.hex()}>" if twin else repr(piece)
        for piece, twin in zip(pieces, again, strict=True)
    ]
    tokenizer = Greedy(pieces)
    if not eos:
        return TokenVocabulary(tuple(strings), pieces, {}, tokenizer)
    return TokenVocabulary((*strings, "<eos>"), (*pieces, None), {"eos": len(pieces)}, tokenizer)


class Greedy:
    """A tokenizer by longest match."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = sorted(enumerate(pieces), key=lambda item: (-len(item[1]), item[0]))

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        data, ids = text.encode(), []
        while data:
            index, piece = next(item for item in self.pieces if data.startswith(item[1]))
            ids.append(index)
            data = data[len(piece) :]
        return ids


def table_law(context: Sequence[int], size: int, seed: int = 0) -> Tensor:
    """A law that depends on the whole context, float64, no entry near 0."""
    return _table_law(tuple(context), size, seed)


@lru_cache(100_000)
def _table_law(context: tuple[int, ...], size: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(hash((context, size, seed)) % 2**63)
    weights = torch.rand(size, generator=generator, dtype=torch.float64) + 0.1
    return weights / weights.sum()


class TableModel:
    """A `CachedModel` of tabulated laws, in float64; remembers what it read."""

    positions, device, use_cache = 1 << 20, torch.device("cpu"), True

    def __init__(self, size: int, seed: int = 0, allowed: Sequence[int] | None = None) -> None:
        self.size, self.seed, self.forwards = size, seed, 0
        self.banned = [] if allowed is None else sorted(set(range(size)) - set(allowed))
        self.rows: list[list[int]] = []

    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        self.rows = [list(row) for row in rows]
        return self._last()

    def extend(self, tokens: Tensor) -> Tensor:
        self.rows = [row + ids for row, ids in zip(self.rows, tokens.tolist(), strict=True)]
        return self._last()

    def _last(self) -> Tensor:
        self.forwards += 1
        laws = torch.stack([table_law(row, self.size, self.seed) for row in self.rows])
        laws[:, self.banned] = 0
        return laws.log()[:, None]


def tiny_llama(size: int, seed: int = 0, positions: int = 256) -> Any:
    """A random model in float64 whose law depends on the whole context."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=positions,
        initializer_range=0.6,
        use_cache=True,
    )
    model: Any = LlamaForCausalLM(config)
    return model.double().eval()


def softmax(logits: Tensor) -> Tensor:
    return logits.softmax(-1)


class Piece(NamedTuple):
    """An interval of a coin on which the outcome is the same."""

    outcome: Any
    width: float
    middle: float


def pieces(outcomes: Callable[[Tensor], Sequence[Any]]) -> list[Piece]:
    """Where an outcome, piecewise constant in a coin in [0, 1), changes: to 6e-11.

    A piece narrower than 1 / GRID beside equal neighbours can be missed; then the widths of
    what is found are wrong, and what compares them fails.
    """
    points = (torch.arange(GRID, dtype=torch.float64) + 0.5) / GRID
    found = list(outcomes(points))
    changes = [i for i in range(GRID - 1) if found[i] != found[i + 1]]
    low, high = points[changes], points[[i + 1 for i in changes]]
    for _ in range(HALVINGS if changes else 0):
        middle = (low + high) / 2
        same = [a == found[i] for a, i in zip(outcomes(middle), changes, strict=True)]
        low = torch.where(torch.tensor(same), middle, low)
        high = torch.where(torch.tensor(same), high, middle)
    ends = [0.0, *((low + high) / 2).tolist(), 1.0]
    starts = [0, *(i + 1 for i in changes)]
    return [
        Piece(found[start], b - a, (a + b) / 2)
        for start, a, b in zip(starts, ends, ends[1:], strict=False)
    ]


@contextmanager
def planned(module: ModuleType, coins: Tensor) -> Iterator[None]:
    """Let a drafter draw these numbers, shape (B, count)."""
    original = module.uniforms

    def uniforms(seeds: Tensor, iteration: int, site: int, count: int) -> Tensor:
        assert coins.shape == (len(seeds), count)
        return coins

    module.uniforms = uniforms  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.uniforms = original  # type: ignore[attr-defined]


def drafted(
    drafter: Any, module: ModuleType, context: Sequence[int], coins: Tensor, lookahead: int
) -> Drafts:
    """Drafts after one context, a row for each row of coins."""
    seeds = torch.zeros(len(coins), dtype=torch.int64)
    with planned(module, coins):
        drafts: Drafts = drafter.draft([list(context)] * len(coins), lookahead, seeds, 0)
    return drafts


def laws_of(drafts: Drafts) -> Tensor:
    """What was declared."""
    assert drafts.laws is not None
    return drafts.laws


class Path(NamedTuple):
    """Drafts that some coins give: tokens, their declared laws, and the coins' volume."""

    tokens: tuple[int, ...]
    laws: Tensor
    weight: float


def draft_paths(
    drafter: Any, module: ModuleType, context: Sequence[int], lookahead: int
) -> list[Path]:
    """All that a drafter with one coin for each draft can draft; its laws checked on the way.

    Raises
    ------
    AssertionError
        A declared law is not the law that drafts are drawn from.
    """
    paths: list[Path] = []
    pending: list[tuple[tuple[float, ...], tuple[int, ...], float]] = [((), (), 1.0)]
    while pending:
        past, tokens, weight = pending.pop()
        if len(past) == lookahead or (tokens and tokens[-1] < 0):
            coins = torch.tensor([[*past, *[0.5] * (lookahead - len(past))]]).double()
            drafts = drafted(drafter, module, context, coins, lookahead)
            paths.append(Path(tuple(drafts.tokens[0].tolist()), laws_of(drafts)[0], weight))
            continue
        found = _next_pieces(drafter, module, context, past)
        pending += [
            ((*past, piece.middle), (*tokens, piece.outcome), weight * piece.width)
            for piece in found
        ]
    return paths


def _next_pieces(
    drafter: Any, module: ModuleType, context: Sequence[int], past: tuple[float, ...]
) -> list[Piece]:
    declared: list[Tensor] = []

    def outcomes(coin: Tensor) -> list[int]:
        before = torch.tensor(past, dtype=torch.float64).expand(len(coin), -1)
        coins = torch.cat([before, coin[:, None]], 1)
        drafts = drafted(drafter, module, context, coins, len(past) + 1)
        declared.append(laws_of(drafts)[:, -1])
        tokens: list[int] = drafts.tokens[:, -1].tolist()
        return tokens

    found = pieces(outcomes)
    laws = torch.cat(declared)
    assert (laws - laws[0]).abs().max() < 1e-12, "the declared law depends on its own coin"
    sampled = torch.zeros_like(laws[0])
    for piece in found:
        if piece.outcome >= 0:
            sampled[piece.outcome] += piece.width
    assert (sampled - laws[0]).abs().max() < 1e-9, "the declared law is not the sampled law"
    return found


def block_law(target: Target, context: Sequence[int], path: Path) -> Law:
    """The law of the block that `verify` makes of some drafts."""
    drafts = [max(token, 0) for token in path.tokens]
    p = torch.stack([target([*context, *drafts[:i]]) for i in range(len(drafts) + 1)])
    (law,) = verified_laws(_verified, p[None], path.laws[None], torch.tensor([path.tokens]))
    return law


def _verified(p: Tensor, q: Tensor | None, tokens: Tensor, coins: Coins) -> tuple[Tensor, Tensor]:
    return verify(p, q, tokens, coins=coins)


def completed(
    law: Law, target: Target, context: Sequence[int], length: int, eos: int | None
) -> Law:
    """The joint law of `length` tokens: blocks up to EOS, extended by the target; EOS stays."""
    joint: Law = {}
    pending = [(_until(block, eos), weight) for block, weight in law.items()]
    while pending:
        block, weight = pending.pop()
        if len(block) >= length:
            joint[block[:length]] = joint.get(block[:length], 0.0) + weight
        elif eos is not None and block[-1:] == (eos,):
            pending.append(((*block, eos), weight))
        else:
            p = target([*context, *block]).tolist()
            pending += [((*block, token), weight * mass) for token, mass in enumerate(p)]
    return joint


def _until(block: tuple[int, ...], eos: int | None) -> tuple[int, ...]:
    return block[: block.index(eos) + 1] if eos in block else block


def distance(first: Law, second: Law) -> float:
    """The largest difference of two laws at any outcome."""
    return max(abs(first.get(key, 0.0) - second.get(key, 0.0)) for key in {*first, *second})


def joint_error(
    paths: Sequence[Path], target: Target, context: Sequence[int], eos: int | None = None
) -> float:
    """How far the completed blocks of all drafts are from the target's own joint law."""
    length = len(paths[0].tokens) + 1
    blocks: Law = {}
    for path in paths:
        for block, mass in block_law(target, context, path).items():
            blocks[block] = blocks.get(block, 0.0) + path.weight * mass
    own = completed({(): 1.0}, target, context, length, eos)
    return distance(completed(blocks, target, context, length, eos), own)
