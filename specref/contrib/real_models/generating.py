"""Texts of a method on a pair, with the laws that its drafts were drawn from."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.settings import Setting
from specref.torch_backend import Coins, loop
from specref.torch_backend.drafters.drafts import Drafter, Drafts, Verified
from specref.torch_backend.drafters.lazy_verification import LazyVerifier
from specref.torch_backend.methods import AUTOREGRESSIVE, BLOCK, DRAFTERS, FORMER
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.statistics import Generation

LOOKAHEAD = 3
TIGHTENED = 2
"""How many more forwards of the drafter are spent on the psi of drafts that were decided."""
CLOSE = 0.01
"""How near bounds of the probability that a draft is accepted are to be; then no more is read.
The interval of a count is wider: 0.17 for 368 drafts at level 1e-6."""
PROMPTS = (
    "The old lighthouse keeper climbed the stairs one last time because he knew that",
    "To bake a good loaf of bread you need flour, water, salt and",
    "In the spring of that year the river rose so high that the villagers",
    "def mean(values):\n    total = 0\n    for value in values:",
    "Dear Anna,\nThank you for your letter. I was very happy to hear that",
    "Photosynthesis is the process by which plants turn light into",
    "The committee met on Tuesday to discuss the new budget, and after two hours",
    "import random\n\nclass Deck:\n    def __init__(self):",
    "Once upon a time there was a small fox who lived at the edge of",
    "The three largest cities of the country are, in order of population,",
    "She opened the box slowly. Inside, wrapped in yellow paper, was",
    "A prime number is a natural number greater than one that",
    "Breaking news: scientists have announced that a probe sent to Mars",
    "Q: Why is the sky blue during the day?\nA: Because",
    "The recipe is simple. First, heat the oil in a large pan, then",
    "He did not want to go to the meeting, but his manager told him",
)
"""Beginnings of texts, in plain English and in code, for models to go on with."""


@dataclass(frozen=True)
class Proposal:
    """What was drafted in an iteration.

    * `drafts`: Its laws in float32; without what verifies them, which may hold a tree of laws.
    * `by_drafter`: Whether the drafter verifies them itself.
    * `psi`: Bounds of the law of each draft, where the drafter declares none but can bound it.
    """

    rows: list[int]
    drafts: Drafts
    by_drafter: bool = False
    psi: Tensor | None = None


class Recorder:
    """A drafter whose proposals are kept; what it is given may have been spoiled before.

    * `bounding`: Whether to bound the law of drafts for which none is declared.
    """

    def __init__(
        self, drafter: Drafter, spoiled: Callable[[Drafts], Drafts] | None, bounding: bool
    ) -> None:
        self.drafter, self.proposals, self._spoiled = drafter, list[Proposal](), spoiled
        self._bounding = bounding
        self._rows: list[int] = []

    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        drafts = self.drafter.draft(contexts, lookahead, seeds, iteration)
        drafts = drafts if self._spoiled is None else self._spoiled(drafts)
        if not self.proposals:
            self._rows = list(range(len(contexts)))
        laws = None if drafts.laws is None else drafts.laws.float()
        kept = replace(drafts, laws=laws, verifier=None)
        self.proposals.append(Proposal(self._rows, kept, drafts.verifier is not None))
        if self._bounding and isinstance(drafts.verifier, LazyVerifier):
            drafts = replace(drafts, verifier=Tightening(drafts.verifier, self.proposals))
        return drafts

    def select(self, rows: Sequence[int]) -> None:
        self.drafter.select(rows)
        self._rows = [self._rows[row] for row in rows]


@dataclass(frozen=True)
class Tightening:
    """Verifies by bounds of psi, and goes on to read until they are close."""

    verifier: LazyVerifier
    proposals: list[Proposal]

    def verify(self, p: Tensor, drafts: Tensor, coins: Coins) -> Verified:
        verified = self.verifier.verify(p, drafts, coins)
        row, place = (drafts >= 0).nonzero().unbind(1)
        reached = place < verified.counts[row]
        row, place = row[reached], place[reached]
        search, tokens = row * self.verifier.lookahead + place, drafts[row, place]
        if len(search):
            psi = torch.full((2, *drafts.shape), torch.nan, dtype=torch.float64)
            chances = p[row, place, tokens].double().to(search.device)
            bounds = torch.stack(self._tightened(search, tokens, chances)).cpu()
            psi[:, row.cpu(), place.cpu()] = bounds
            self.proposals[-1] = replace(self.proposals[-1], psi=psi)
        return verified

    def _tightened(self, search: Tensor, tokens: Tensor, chances: Tensor) -> tuple[Tensor, Tensor]:
        """Bounds of psi at some tokens, whose probabilities by the target are `chances`."""
        of = self.verifier
        for _ in range(TIGHTENED):
            lower, upper = of.bounds.of(search, tokens)
            most, least = ((chances / psi).clamp(max=1) for psi in (lower, upper))
            wide = (most - least > CLOSE).nonzero()[:, 0]
            if not len(wide):
                break
            found = of.bounds.take(search[wide], tokens[wide], of.width)
            if not len(found.search):
                break
            searches, parents, ids, places = torch.stack(found[:-1]).tolist()
            rows = [one // of.lookahead for one in searches]
            nodes, laws = of.trees.grow(rows, parents, ids)
            numbers = torch.tensor(nodes, device=laws.device)
            of.bounds.absorb(found.search, numbers, places, found.mass, laws)
        return of.bounds.of(search, tokens)


@dataclass(frozen=True)
class Made:
    """A batch of texts.

    * `proposals`: One for each iteration in which something was drafted.
    """

    prompts: list[list[int]]
    seeds: list[int]
    generation: Generation
    proposals: list[Proposal]


class Generator:
    """A method on a pair with a setting; its drafter is built once.

    * `method`: As in `Pair.methods`.
    * `jointly`: Whether drafts with laws are verified by block, as by "block" always.
    * `bounding`: Whether, by "slrs", the drafter is called once more to bound the law of drafts.
    """

    def __init__(
        self,
        pair: Pair,
        method: str,
        setting: Setting,
        lookahead: int = LOOKAHEAD,
        jointly: bool = False,
        bounding: bool = True,
    ) -> None:
        self.pair, self.method, self.setting, self.lookahead = pair, method, setting, lookahead
        self.jointly, self.bounding = jointly or method == BLOCK, bounding

    @cached_property
    def drafter(self) -> Drafter | None:
        """The drafter, as `generate` builds it."""
        if self.method == AUTOREGRESSIVE:
            return None
        name = "standard" if self.method == BLOCK else self.method
        return DRAFTERS[FORMER.get(name, name)](self.pair.for_methods(self.setting.shape))

    def __call__(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        tokens: int,
        planted: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        spoiled: Callable[[Drafts], Drafts] | None = None,
    ) -> Made:
        """Generate a batch.

        * `tokens`: Of each text, at most.
        * `planted`: What stands in the decode loop instead of its functions.
        * `spoiled`: What drafts become before they are verified.
        """
        target = self.pair.target
        recorder = None if self.drafter is None else Recorder(self.drafter, spoiled, self.bounding)
        rules = loop.Rules(
            self.setting.shape,
            self.lookahead,
            tokens,
            ends_of(target.tokenizer),
            clipped=self.method != "slem",
            jointly=self.jointly,
        )
        numbers = torch.tensor(list(seeds), device=target.model.device)
        with replaced(loop, planted):
            read = CachedModel(target.model, self.pair.use_cache)
            generation = loop.Loop(read, recorder, prompts, numbers, rules).run()
        if self.drafter is not None:
            self.drafter.select([])
        found = [] if recorder is None else recorder.proposals
        return Made([list(prompt) for prompt in prompts], list(seeds), generation, found)


def ends_of(tokenizer: Any) -> frozenset[int]:
    """The token that ends a text, if the tokenizer has one."""
    return frozenset() if tokenizer.eos_token_id is None else frozenset({tokenizer.eos_token_id})


@contextmanager
def replaced(module: Any, functions: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Other functions stand in a module inside; afterwards its own do."""
    own = {name: getattr(module, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(module, name, function)
        yield
    finally:
        for name, function in own.items():
            setattr(module, name, function)
