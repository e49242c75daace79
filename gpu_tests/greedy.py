"""Texts at temperature 0, and whether a difference is a near-tie of the target's logits."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from gpu_tests.forcing import forced_logits
from gpu_tests.pairs import Pair
from specref.torch_backend import generate

GAP = 1e-3
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
        near += gap_where_they_part(pair, prompt, text, other) <= GAP
    return Agreement(equal, near, len(texts) - equal - near)


def gap_where_they_part(
    pair: Pair, prompt: Sequence[int], text: Sequence[int], other: Sequence[int]
) -> float:
    """The largest logit less the second, by teacher forcing; infinite if one text just ends."""
    pairs = zip(text, other, strict=False)
    same = next((place for place, (a, b) in enumerate(pairs) if a != b), None)
    if same is None:
        return float("inf")
    logits = forced_logits(pair.target, [prompt], [text[: same + 1]])[-1]
    largest, second = logits.topk(2).values.tolist()
    return float(largest - second)


def greedy(pair: Pair, method: str, prompts: Texts, tokens: int, **options: Any) -> Texts:
    """Our texts at temperature 0."""
    made = generate(
        pair.target,
        pair.drafter,
        prompts,
        seeds=range(len(prompts)),
        method=method,
        tokenizer=pair.tokenizer,
        drafter_tokenizer=pair.drafter_tokenizer,
        max_new_tokens=tokens,
        temperature=0.0,
        eos=pair.tokenizer.eos_token_id,
        **options,
    )
    return made.tokens


def greedy_by_transformers(pair: Pair, prompts: Texts, tokens: int) -> Texts:
    """Texts of `generate(do_sample=False)`, in one batch padded on the left."""
    pad, eos = pair.tokenizer.pad_token_id, pair.tokenizer.eos_token_id
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(row)) + list(row) for row in prompts])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts])
    model: Any = pair.target
    found = model.generate(
        ids.to(model.device),
        attention_mask=mask.to(model.device),
        max_new_tokens=tokens,
        do_sample=False,
    )
    texts = found[:, longest:].tolist()
    return [row[: row.index(eos) + 1] if eos in row else row for row in texts]
