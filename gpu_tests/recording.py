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
from specref.torch_backend import generate, generation, loop, slrs
from specref.torch_backend.byte_laws import ByteLaws
from specref.torch_backend.drafts import Drafter, Drafts
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
        its drafts are certain. The last one of the block where nothing was drafted, and p in a
        block without drafts.
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
    """The draws of a generation of ours."""

    generation: Generation


class Recorder:
    """A drafter whose drafts are kept."""

    def __init__(self, drafter: Drafter) -> None:
        self.drafter = drafter
        self.drafts: list[Drafts] = []

    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        drafts = self.drafter.draft(contexts, lookahead, seeds, iteration)
        laws = None if drafts.laws is None else drafts.laws.float()
        self.drafts.append(replace(drafts, laws=laws))
        return drafts


class Remembered(ByteLaws):
    """Reads the prefix tree once for each context."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._known: dict[tuple[int, ...], Tensor] = {}

    def __call__(self, row: int, context: list[int]) -> Tensor:
        key = tuple(context)
        if key not in self._known:
            self._known[key] = super().__call__(row, context)
        return self._known[key]


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
        What stands in the decode loop instead of its functions `verify`, `verify_matching`.
    """
    with listening(planted) as recorders:
        made = generate(
            pair.target,
            pair.drafter,
            prompts,
            seeds=range(seed, seed + len(prompts)),
            method=case.method,
            tokenizer=pair.tokenizer,
            drafter_tokenizer=pair.drafter_tokenizer,
            lookahead=lookahead,
            max_new_tokens=tokens,
            eos=pair.tokenizer.eos_token_id,
            temperature=case.temperature,
            top_p=case.top_p,
        )
    p = forced_laws(pair.target, prompts, made.tokens, case.shape)
    return _read(made, recorders[0].drafts if recorders else [], p)


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
        stack.enter_context(patch.object(slrs, "ByteLaws", Remembered))
        for name, function in planted.items():
            stack.enter_context(patch.object(loop, name, function))
        yield recorders


def _read(made: Generation, drafts: Sequence[Drafts], p: Tensor) -> Record:
    places = torch.tensor(list(_places(made.iterations)), device=p.device).T
    row, iteration, position, count, prefix = places
    q = p.to(torch.float32, copy=True)
    for number, proposal in enumerate(drafts):
        here = (iteration == number) & (count > 0)
        at = torch.minimum(position, count - 1)[here]
        q[here] = _laws(proposal, p.shape[1], row[here], at)
    tokens = torch.tensor([token for text in made.tokens for token in text])
    drafted, accepted = (position < count).cpu(), (position < prefix).cpu()
    return Record(p.cpu(), q.cpu(), tokens, position.cpu(), drafted, accepted, made)


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
