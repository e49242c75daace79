"""Texts at temperature 0, and whether a difference is a near-tie of the target's logits."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from gpu_tests.pairs import LOOKAHEAD
from specref.contrib.real_models.generating import Generator
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.planted import Planted
from specref.contrib.real_models.settings import Setting
from specref.contrib.real_models.speed import GAP, gap_where_they_part

Texts = Sequence[Sequence[int]]


class Agreement(NamedTuple):
    """How many texts are equal, part at a near-tie, or part elsewhere."""

    equal: int
    near_ties: int
    different: int


def compared(pair: Pair, prompts: Texts, texts: Texts, others: Texts) -> Agreement:
    """Where two texts part, are the target's two largest logits within `GAP` of each other?"""
    equal = near = 0
    for prompt, text, other in zip(prompts, texts, others, strict=True):
        if list(text) == list(other):
            equal += 1
            continue
        near += gap_where_they_part(pair.target, prompt, text, other) <= GAP
    return Agreement(equal, near, len(texts) - equal - near)


def greedy(
    pair: Pair,
    method: str,
    prompts: Texts,
    tokens: int,
    planted: Planted = MappingProxyType({}),
) -> Texts:
    """Our texts at temperature 0."""
    generator = Generator(pair, method, Setting(0.0), LOOKAHEAD, bounding=False)
    return generator(prompts, range(len(prompts)), tokens, planted).generation.tokens


def greedy_by_transformers(pair: Pair, prompts: Texts, tokens: int) -> Texts:
    """Texts of `generate(do_sample=False)`, in one batch padded on the left."""
    pad, eos = pair.target.tokenizer.pad_token_id, pair.target.tokenizer.eos_token_id
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(row)) + list(row) for row in prompts])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts])
    model: Any = pair.target.model
    found = model.generate(
        ids.to(model.device),
        attention_mask=mask.to(model.device),
        max_new_tokens=tokens,
        do_sample=False,
    )
    texts = found[:, longest:].tolist()
    return [row[: row.index(eos) + 1] if eos in row else row for row in texts]
