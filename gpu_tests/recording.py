"""Whole generations with what every token was drawn by: the target's law and the drafter's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from gpu_tests.cases import LOOKAHEAD, Case
from gpu_tests.forcing import forced_laws
from gpu_tests.pairs import Pair
from gpu_tests.prefixes import Prefixes, prefixes
from specref.torch_backend import generate, generation, loop
from specref.torch_backend.drafters.drafts import Drafter, Drafts
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


class Recorder:
    """A drafter whose drafts are kept, with the numbers of their rows in the first batch."""

    def __init__(self, drafter: Drafter) -> None:
        self.drafter = drafter
        self.drafts: list[tuple[list[int], Drafts]] = []
        self._rows: list[int] | None = None

    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        drafts = self.drafter.draft(contexts, lookahead, seeds, iteration)
        laws = None if drafts.laws is None else drafts.laws.float()
        self._rows = list(range(len(contexts))) if self._rows is None else self._rows
        self.drafts.append((self._rows, replace(drafts, laws=laws)))
        return drafts

    def select(self, rows: Sequence[int]) -> None:
        self.drafter.select(rows)
        self._rows = [(self._rows or [])[row] for row in rows]


def record(
    pair: Pair,
    case: Case,
    prompts: Sequence[Sequence[int]],
    tokens: int,
    *,
    lookahead: int = LOOKAHEAD,
    seed: int = 0,
    planted: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
) -> Record:
    """Generate one text after each prompt, and read off what it was drawn by.

    Parameters
    ----------
    seed : int
        Of the first text; the others count on.
    planted : mapping from str to callable
        What stands in the decode loop instead of its functions: `verify`, `row_coins`, ….
    """
    with listening(planted) as recorders:
        made = generate(
            pair.target,
            pair.drafter,
            prompts,
            seeds=range(seed, seed + len(prompts)),
            method=case.method,
            verification=case.verification,
            tokenizer=pair.tokenizer,
            drafter_tokenizer=pair.drafter_tokenizer,
            lookahead=lookahead,
            max_new_tokens=tokens,
            eos=pair.tokenizer.eos_token_id,
            temperature=case.temperature,
            top_p=case.top_p,
        )
    p = forced_laws(pair.target, prompts, made.tokens, case.shape)
    drafts, jointly = recorders[0].drafts if recorders else [], case.verification == "block"
    joint = prefixes(pair.target, case.shape, prompts, made, drafts) if jointly else None
    return Record(*_read(made, drafts, p), made, joint)


@contextmanager
def listening(planted: Mapping[str, Callable[..., Any]]) -> Iterator[list[Recorder]]:
    """Loops that are made inside have a recorder for a drafter."""
    recorders: list[Recorder] = []

    def make(target: Any, drafter: Drafter | None, *rest: Any) -> loop.Loop:
        if drafter is not None:
            recorders.append(Recorder(drafter))
            drafter = recorders[-1]
        return loop.Loop(target, drafter, *rest)

    with ExitStack() as stack:
        stack.enter_context(patch.object(generation, "Loop", make))
        for name, function in planted.items():
            stack.enter_context(patch.object(loop, name, function))
        yield recorders


def _read(made: Generation, drafts: Sequence[tuple[list[int], Drafts]], p: Tensor) -> list[Tensor]:
    """What `Draws` has, in its order."""
    places = torch.tensor(list(_places(made.iterations)), device=p.device).T
    row, iteration, position, count, prefix = places
    q = p.to(torch.float32, copy=True)
    place = torch.zeros(len(made.tokens), dtype=torch.int64, device=p.device)
    for number, (rows, proposal) in enumerate(drafts):
        here = (iteration == number) & (count > 0)
        at = torch.minimum(position, count - 1)[here]
        place[rows] = torch.arange(len(rows), device=p.device)
        if proposal.verifier is None:
            q[here] = _laws(proposal, p.shape[1], place[row[here]], at)
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
