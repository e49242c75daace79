"""Acceptance of one draft over temperature, on trained pairs: sums over laws, nothing is drawn.

At every context p, the drafter's law and psi are computed, and acceptance is what the methods'
rules make of them. psi is expanded until little mass is open, so that SLRS and SLEM have bounds.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from gpu_tests.benchmarks.slrs_acceptance import STANDARD, TLI, UNION, Laws, accepted, summarised
from gpu_tests.benchmarks.slrs_expansion import Expansion, Reading
from gpu_tests.benchmarks.slrs_growth import quantiles
from gpu_tests.pairs import Models, Pair, card_entries
from specref.torch_backend.drafters.drafts import Drafter, Shape
from specref.torch_backend.drafters.mapped import MappedDrafter
from specref.torch_backend.shaping import shape_logits
from specref.torch_backend.vocabularies.contexts import opening, read, windowed
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

Row: TypeAlias = dict[str, Any]
PAIRS = (
    "homogeneous",
    "large intersection",
    "small intersection",
    "small intersection, target_gpt2 + drafter_bpe2k",
    "byte-level",
    "byte-level, target_gpt2 + drafter_bytes",
)


@dataclass(frozen=True)
class Sizes:
    """What is measured: so many places in each of the first held-out documents.

    `tolerance` is the mass of psi that may stay open where the drafter's tokens are not bytes;
    where they are, there are few enough paths to expand all.
    """

    pairs: tuple[str, ...] = PAIRS
    temperatures: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
    documents: int = 20
    places: int = 6
    tolerance: float = 1e-3
    seed: int = 1


def rows(sizes: Sizes) -> Iterator[Row]:
    """Each pair, and the acceptance of each method and temperature on it."""
    models = Models("cpu")
    for name in sizes.pairs:
        measured = MeasuredPair(models.pair(name), sizes)
        found = [
            [measured.laws(context) for context in document] for document in measured.contexts()
        ]
        each = [[accepted(laws, sizes.temperatures) for laws in document] for document in found]
        yield measured.described(found) | {"acceptance": [*summarised(each)]}


class MeasuredPair:
    """A pair, and what is asked of it."""

    def __init__(self, pair: Pair, sizes: Sizes) -> None:
        self.pair, self.sizes = pair, sizes
        self.shapes: list[Shape] = [
            partial(shape_logits, temperature=temperature) for temperature in sizes.temperatures
        ]
        models, tokenizers = (
            (pair.target, pair.drafter),
            (pair.tokenizer, pair.drafter_tokenizer),
        )
        self.target, self.drafter = (
            TokenVocabulary.from_tokenizer(tokenizer, model.config.vocab_size)
            for model, tokenizer in zip(models, tokenizers, strict=True)
        )
        by_bytes = all(len(piece) == 1 for piece in self.drafter.by_bytes)
        tolerance = 0.0 if by_bytes else sizes.tolerance
        self._expand = Expansion(self.target, self.drafter, self.shapes, tolerance)
        self._mapped = {
            method: [pair.drafts_by(method, shape) for shape in self.shapes]
            for method in (UNION, TLI)
        }

    def contexts(self) -> list[list[list[int]]]:
        """By document, beginnings of it: EOS, and up to all of its tokens."""
        rng, start = random.Random(self.sizes.seed), opening(self.target)
        return [
            [[start, *ids[:place]] for place in rng.sample(range(len(ids) + 1), self.sizes.places)]
            for ids in self.pair.held_out()[: self.sizes.documents]
        ]

    @torch.inference_mode()
    def laws(self, context: Sequence[int]) -> Laws:
        """All laws after a context of the target's tokens, which the drafter reads as text."""
        ids = read(context, self.target, self.drafter)[0] or [opening(self.drafter)]
        room = self.pair.drafter.config.max_position_embeddings - self.target.trie.depth
        reading = Reading(self.pair.drafter, windowed(ids, room))
        after = reading([()]).double()
        submitted = {
            method: torch.cat([_law(drafter, after) for drafter in drafters])
            for method, drafters in self._mapped.items()
        }
        if self.target.strings == self.drafter.strings:
            submitted[STANDARD] = self._shaped(after)
        p = self._shaped(Reading(self.pair.target, context)([()]).double())
        return Laws(p, submitted, self._expand(reading))

    def described(self, found: Sequence[Sequence[Laws]]) -> Row:
        """The pair, and what psi took."""
        every = [laws.psi for document in found for laws in document]
        entry = card_entries()[self.pair.name]
        target, drafter = self.target.by_bytes.keys(), self.drafter.by_bytes.keys()
        return {
            "pair": self.pair.name,
            "target": entry["target"],
            "drafter": entry["drafter"],
            "target_tokens": len(target),
            "drafter_tokens": len(drafter),
            "shared": len(target & drafter),
            "documents": len(found),
            "contexts": len(every),
            "nodes": quantiles([law.nodes for law in every]),
            "open": max(float(law.open.max()) for law in every),
        }

    def _shaped(self, logits: Tensor) -> Tensor:
        return torch.cat([shape(logits) for shape in self.shapes])


def _law(drafter: Drafter, logits: Tensor) -> Tensor:
    """The law that is declared at one position."""
    assert isinstance(drafter, MappedDrafter)
    return drafter.pick(logits, logits.new_zeros(len(logits)))[2]
