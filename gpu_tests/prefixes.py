"""Laws by teacher forcing; and of drafts that are accepted jointly, the chance of each prefix.

By block verification at least k of the drafts x_1 ... x_n are accepted with probability

    P_k = min(1, P_{k-1} p(x_k) / q(x_k)),    P_0 = 1,

given x_1 ... x_k and all before the block (Sun et al. 2024), the later drafts being averaged over.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from specref.contrib.real_models.generating import Made
from specref.contrib.real_models.judging import TOKENS, forced_logits
from specref.torch_backend.drafters.drafts import Shape


def forced_laws(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    shape: Shape,
) -> Tensor:
    """The laws that each token of each text was to be drawn by, one row after the other."""
    logits = forced_logits(model, prompts, texts)
    return torch.cat([shape(rows) for rows in logits.split(TOKENS)])


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


def prefixes(target: PreTrainedModel, shape: Shape, made: Made) -> Prefixes:
    """Of texts whose drafts are all of the target's vocabulary."""
    blocks = list(_blocks(made))
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


def _blocks(made: Made) -> Iterator[Block]:
    """The blocks with drafts, in the order of the iterations."""
    emitted, generation = [0] * len(made.prompts), made.generation
    for number, proposal in enumerate(made.proposals):
        tokens, laws = proposal.drafts.tokens, proposal.drafts.laws
        assert laws is not None
        chances = laws.gather(2, tokens.clamp(min=0)[..., None])[..., 0].double()
        for row, ids, q in zip(proposal.rows, tokens.tolist(), chances, strict=True):
            log = generation.iterations[row][number]
            if log.drafted:
                context = [*made.prompts[row], *generation.tokens[row][: emitted[row]]]
                yield Block(context, ids[: log.drafted], q[: log.drafted], log.prefix)
            emitted[row] += log.emitted
