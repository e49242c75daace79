"""Toy vocabularies with small random drafters, and one iteration of lazy SLRS over them."""

import random
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from proofs_tests.helpers.torch.drafting import softmax, table_law, tiny_llama, toy_vocabulary
from specref.torch_backend import SlrsDrafter, TokenVocabulary, TreeModel, shape_logits
from specref.torch_backend import loop as loop_module
from specref.torch_backend.drafters.drafts import Drafts

Pair = tuple[TokenVocabulary, TokenVocabulary]

LETTERS = toy_vocabulary(b"b", b"a")
OVERLAPPING = toy_vocabulary(b"ab", b"a", b"b", b"ba")
TARGET = toy_vocabulary(b"b", b"ab", b"a", b"abb")
WAITING = (
    toy_vocabulary(b"\xc3", b"a", b"\xa9"),
    toy_vocabulary("é".encode(), b"a", b"\xa9"),
)
PADDED = (
    TARGET,
    replace(LETTERS, strings=(*LETTERS.strings, "<pad>"), spelled=(*LETTERS.spelled, None)),
)
DRAFTERS = MappingProxyType({"bytes": LETTERS, "overlapping tokens": OVERLAPPING})
PROMPT = (1, 0)


def few(logits: Tensor) -> Tensor:
    """Laws with zeros."""
    return shape_logits(logits, temperature=0.8, top_p=0.8)


def words(rng: random.Random, count: int, longest: int) -> list[bytes]:
    return ["".join(rng.choices("ab", k=rng.randint(1, longest))).encode() for _ in range(count)]


def random_pair(seed: int) -> Pair:
    """Target tokens of one to four letters, drafter tokens of one to three, with twins."""
    rng = random.Random(seed)
    target = dict.fromkeys([*words(rng, rng.randint(2, 6), 4), b"b"])
    drafter = dict.fromkeys([*words(rng, rng.randint(1, 4), 3), b"a", b"b"])
    pieces = [*target, b"b"] if seed % 3 == 0 else target
    return toy_vocabulary(*pieces, eos=seed % 2 == 0), toy_vocabulary(*drafter)


def model_of(vocabulary: TokenVocabulary, seed: int = 0, positions: int = 256) -> Any:
    return tiny_llama(len(vocabulary), seed, positions)


def lazy(drafter: TokenVocabulary, width: int = 1, shape: Any = softmax) -> SlrsDrafter:
    return SlrsDrafter(TreeModel(model_of(drafter, 4)), TARGET, drafter, shape, width)


def table(tokens: Sequence[int]) -> Tensor:
    return table_law((*PROMPT, *tokens), len(TARGET), seed=1)


def verified(drafter: SlrsDrafter, lookahead: int, seeds: Tensor) -> tuple[Drafts, Tensor, Tensor]:
    """One iteration after the prompt: drafts, tokens and counts."""
    drafts = drafter.draft([PROMPT] * len(seeds), lookahead, seeds, 0)
    known = drafts.tokens.clamp(min=0).tolist()
    p = torch.stack([torch.stack([table(row[:k]) for k in range(lookahead + 1)]) for row in known])
    coins = loop_module.row_coins(seeds, 0, lookahead)
    assert drafts.verifier is not None
    tokens, counts, _ = drafts.verifier.verify(p, drafts.tokens, coins)
    return drafts, tokens, counts
