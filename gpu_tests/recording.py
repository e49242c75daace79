"""Whole generations with what every token was drawn by: the target's law and the drafter's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from gpu_tests.pairs import LOOKAHEAD, Case
from gpu_tests.prefixes import Prefixes, forced_laws, prefixes
from specref.contrib.real_models.generating import Generator, Proposal
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.planted import Planted
from specref.torch_backend.drafters.drafts import Drafts
from specref.torch_backend.methods import BLOCK
from specref.torch_backend.statistics import Generation, Iteration


@dataclass(frozen=True)
class Draws:
    """Every emitted token of some texts, N in all, one row after the other; on the host.

    Attributes
    ----------
    p : Tensor, shape (N, V)
        The target's law given all tokens before, by teacher forcing.
    q : Tensor, shape (N, V)
        The law that the draft there was declared to be drawn from. Exact match declares none:
        its drafts are certain. The last one of the block where nothing was drafted; p in a
        block without drafts, and where drafts have a verifier that alone knows their law.
    tokens : Tensor of int64, shape (N,)
    position : Tensor of int64, shape (N,)
        In the block.
    drafted, accepted : Tensor of bool, shape (N,)
        Whether a draft was submitted there, all before it being accepted, and whether it was.
    """

    p: Tensor
    q: Tensor
    tokens: Tensor
    position: Tensor
    drafted: Tensor
    accepted: Tensor


@dataclass(frozen=True)
class Record(Draws):
    """The draws of a generation of ours; of drafts that are verified by block their prefixes."""

    generation: Generation
    prefixes: Prefixes | None


def record(
    pair: Pair,
    case: Case,
    prompts: Sequence[Sequence[int]],
    tokens: int,
    *,
    lookahead: int = LOOKAHEAD,
    seed: int = 0,
    planted: Planted = MappingProxyType({}),
) -> Record:
    """Generate one text after each prompt, and read off what it was drawn by.

    Parameters
    ----------
    seed : int
        Of the first text; the others count on.
    planted : mapping from str to callable
        What stands in the decode loop instead of its functions: `verify`, `row_coins`, ….
    """
    by_block, shape = case.verification == BLOCK, case.setting.shape
    generator = Generator(pair, case.method, case.setting, lookahead, by_block, bounding=False)
    made = generator(prompts, range(seed, seed + len(prompts)), tokens, planted)
    p = forced_laws(pair.target.model, prompts, made.generation.tokens, shape)
    joint = prefixes(pair.target.model, shape, made) if by_block else None
    return Record(*_read(made.generation, made.proposals, p), made.generation, joint)


def _read(made: Generation, proposals: Sequence[Proposal], p: Tensor) -> list[Tensor]:
    """What `Draws` has, in its order."""
    places = torch.tensor(list(_places(made.iterations)), device=p.device).T
    row, iteration, position, count, prefix = places
    q = p.to(torch.float32, copy=True)
    place = torch.zeros(len(made.tokens), dtype=torch.int64, device=p.device)
    for number, proposal in enumerate(proposals):
        here = (iteration == number) & (count > 0)
        at = torch.minimum(position, count - 1)[here]
        place[proposal.rows] = torch.arange(len(proposal.rows), device=p.device)
        if not proposal.by_drafter:
            q[here] = _laws(proposal.drafts, p.shape[1], place[row[here]], at)
    tokens = torch.tensor([token for text in made.tokens for token in text])
    drafted, accepted = (position < count).cpu(), (position < prefix).cpu()
    return [p.cpu(), q.cpu(), tokens, position.cpu(), drafted, accepted]


def _places(iterations: Sequence[Sequence[Iteration]]) -> Iterator[tuple[int, ...]]:
    for row, log in enumerate(iterations):
        for number, it in enumerate(log):
            for position in range(it.emitted):
                yield row, number, position, it.drafted, it.prefix


def _laws(drafts: Drafts, size: int, row: Tensor, position: Tensor) -> Tensor:
    if drafts.laws is not None:
        return drafts.laws[row, position]
    certain = torch.nn.functional.one_hot(drafts.tokens[row, position], size)
    return certain.float()
