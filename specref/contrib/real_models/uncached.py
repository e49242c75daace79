"""Logits of a model from passes without a cache, which the judge and the speeds compare with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from specref.torch_backend.models.configs import FULL, check_cache, windows

TOKENS = 32_768
"""Of texts that are read in one pass; their logits are 270 MB for 2,048 ids in float32."""


@torch.inference_mode()
def forced_logits(
    model: torch.nn.Module, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> Tensor:
    """The logits that each token of each text was to be drawn by, from passes without a cache.

    * `prompts`, `texts`: What is given, and what follows it.
    * returns Tensor, shape (all tokens of `texts`, V): One text after the other.
    """
    found, device = [], next(model.parameters()).device
    for batch in _batches(prompts, texts):
        whole = [[*prompt, *text] for prompt, text in batch]
        longest, first = max(map(len, whole)), min(len(prompt) for prompt, _ in batch) - 1
        # What stands to the right of a text is not attended to.
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in whole], device=device)
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=longest - first).logits
        for row, (prompt, text) in zip(logits, batch, strict=True):
            start = len(prompt) - 1 - first
            found.append(row[start : start + len(text)])
    return torch.cat(found)


def _batches(
    prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> Iterator[list[tuple[Sequence[int], Sequence[int]]]]:
    both = list(zip(prompts, texts, strict=True))
    step = max(1, TOKENS // max(len(prompt) + len(text) for prompt, text in both))
    for start in range(0, len(both), step):
        yield both[start : start + step]


@dataclass(frozen=True)
class Branch:
    """Tokens that were drafted after the first `start` tokens of a text."""

    start: int
    tokens: Sequence[int]


def branch_logits(
    model: torch.nn.Module, prompt: Sequence[int], text: Sequence[int], branches: Sequence[Branch]
) -> list[Tensor]:
    """The logits that the tokens of each branch were to be drawn by, and the token after them.

    * returns list of Tensor, shape (tokens of the branch + 1, V)
    """
    if not branches:
        return []
    if _reads_branches(model):
        return _in_one_pass(model, prompt, text, branches)
    return [
        forced_logits(model, [[*prompt, *text[: one.start]]], [[*one.tokens, 0]])
        for one in branches
    ]


def _reads_branches(model: Any) -> bool:
    """Whether a mask alone says what each token of a model sees, in all layers."""
    try:
        check_cache("model", model, trees=True)
    except ValueError:
        return False
    return set(windows(model.config)) == {FULL}


@torch.inference_mode()
def _in_one_pass(
    model: torch.nn.Module, prompt: Sequence[int], text: Sequence[int], branches: Sequence[Branch]
) -> list[Tensor]:
    """One pass over the text and all branches behind it, each of which sees its own context.

    Texts are short and blocks are many: a pass for each would read the same tokens again.
    """
    ids, places = [*prompt, *text], list(range(len(prompt) + len(text)))
    sees = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
    ends = np.cumsum([len(ids), *(len(one.tokens) for one in branches)]).tolist()
    sees = torch.nn.functional.pad(sees, (0, ends[-1] - len(ids), 0, ends[-1] - len(ids)))
    kept = []
    for one, (first, end) in zip(branches, pairwise(ends), strict=True):
        context, length = len(prompt) + one.start, end - first
        ids += one.tokens
        places += range(context, context + length)
        sees[first:end, :context] = True
        sees[first:end, first:end] = torch.ones(length, length, dtype=torch.bool).tril()
        kept += [context - 1, *range(first, end)]
    of = next(model.parameters())
    mask = torch.zeros(sees.shape, dtype=of.dtype).masked_fill_(~sees, torch.finfo(of.dtype).min)
    logits = model(
        input_ids=torch.tensor([ids], device=of.device),
        position_ids=torch.tensor([places], device=of.device),
        attention_mask=mask[None, None].to(of.device),
        use_cache=False,
        logits_to_keep=torch.tensor(kept, device=of.device),
    ).logits[0]
    return list(logits.split([len(one.tokens) + 1 for one in branches]))
