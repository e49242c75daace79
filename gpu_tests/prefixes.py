"""Drafts that are accepted jointly: what the laws say of each drafted prefix.

By block verification at least k of the drafts x_1 ... x_n are accepted with probability

    P_k = min(1, P_{k-1} p(x_k) / q(x_k)),    P_0 = 1,

given x_1 ... x_k and all before the block (Sun et al. 2024), the later drafts being averaged over.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from gpu_tests.forcing import forced_laws
from specref.torch_backend.drafters.drafts import Drafts, Shape
from specref.torch_backend.statistics import Generation


class Prefixes(NamedTuple):
    """Every draft that was submitted, M in all, those after a rejection too; on the host.

    Attributes
    ----------
    position : Tensor of int64, shape (M,)
        In its block.
    chance : Tensor of float64, shape (M,)
        P with it: p by teacher forcing, q as declared.
    accepted : Tensor of bool, shape (M,)
    """

    position: Tensor
    chance: Tensor
    accepted: Tensor


class Block(NamedTuple):
    """What drafts follow, the drafts, q of each, and how many of them were kept."""

    context: list[int]
    drafts: list[int]
    q: Tensor
    kept: int


def prefixes(
    target: PreTrainedModel,
    shape: Shape,
    prompts: Sequence[Sequence[int]],
    made: Generation,
    drafts: Sequence[tuple[list[int], Drafts]],
) -> Prefixes:
    """Of texts whose drafts are all of the target's vocabulary.

    Parameters
    ----------
    drafts : sequence of (list of int, Drafts)
        Of each iteration: for which rows, and what.
    """
    blocks = list(_blocks(prompts, made, drafts))
    texts = [block.drafts for block in blocks]
    laws = forced_laws(target, [block.context for block in blocks], texts, shape)
    ids = torch.tensor([token for text in texts for token in text], device=laws.device)
    p = laws.gather(1, ids[:, None])[:, 0].double()
    ratios = (p / torch.cat([block.q for block in blocks])).cpu()
    position = [torch.arange(len(text)) for text in texts]
    return Prefixes(
        torch.cat(position),
        torch.cat([_survival(one) for one in ratios.split(list(map(len, texts)))]),
        torch.cat([one < block.kept for one, block in zip(position, blocks, strict=True)]),
    )


def _survival(ratios: Tensor) -> Tensor:
    """P_1 to P_n."""
    chances = [1.0]
    for ratio in ratios.tolist():
        chances.append(min(1.0, chances[-1] * ratio))
    return torch.tensor(chances[1:], dtype=torch.float64)


def _blocks(
    prompts: Sequence[Sequence[int]],
    made: Generation,
    drafts: Sequence[tuple[list[int], Drafts]],
) -> Iterator[Block]:
    """The blocks with drafts, in the order of the iterations."""
    emitted = [0] * len(prompts)
    for number, (rows, proposal) in enumerate(drafts):
        assert proposal.laws is not None
        chances = proposal.laws.gather(2, proposal.tokens.clamp(min=0)[..., None])[..., 0].double()
        for row, ids, q in zip(rows, proposal.tokens.tolist(), chances, strict=True):
            log = made.iterations[row][number]
            if log.drafted:
                context = [*prompts[row], *made.tokens[row][: emitted[row]]]
                yield Block(context, ids[: log.drafted], q[: log.drafted], log.prefix)
            emitted[row] += log.emitted
