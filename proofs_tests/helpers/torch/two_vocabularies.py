"""Every random path of a generation by union or TLI, for block verification.

A target of the tokens "a", "b", "ab" and EOS, and a drafter of EOS, "b", "x" and "a": each method
by its definition, with none of the code that is tested.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from proofs_tests.helpers.torch.models import shaped, small
from proofs_tests.helpers.torch.paths import Choice, JointGenerator, Law, middle
from specref.distributions import Probabilities
from specref.torch_backend.validation import OUTSIDE
from specref.vocabulary import Tokens

TARGET, DRAFTER, END = ("a", "b", "ab", "<e>"), ("<e>", "b", "x", "a"), "<e>"
EOS, SIZE = 3, 4
IMAGES = (EOS, 1, OUTSIDE, 0)
SHARED: Mapping[int, int] = MappingProxyType({0: 3, 1: 1, EOS: 0})
READ_AS: Mapping[int, Tokens] = MappingProxyType({0: (3,), 1: (1,), 2: (3, 1)})


def tokenizer(strings: Sequence[str]) -> Any:
    """It writes letters: none is merged."""
    backend = Tokenizer(models.BPE({string: i for i, string in enumerate(strings)}, []))
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)


@cache
def law_after(model: PreTrainedModel) -> Law:
    """The law of a model after any ids."""

    @cache
    def law(ids: Tokens) -> Probabilities:
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -1]
        return np.asarray(logits.softmax(-1))

    return law


@dataclass(frozen=True)
class TwoVocabularies(JointGenerator):
    """A drafter with ids of its own, whose law is shaped; it reads the prompt as well."""

    prompt: Tokens
    shape: Mapping[str, Any]

    def read(self, context: Tokens) -> Tokens:
        return tuple(index for token in self.prompt + context for index in READ_AS[token])


class Union(TwoVocabularies):
    """Drafts are what the drafter says (Timor et al. 2025, Algorithm 1)."""

    def choices(self, read: Tokens) -> tuple[Probabilities, list[Choice]]:
        q = shaped(self.drafter(read), **self.shape)
        return declared(
            Choice(IMAGES[i], q[i], (middle(q, i),), (*read, i))
            for i in np.flatnonzero(q).tolist()
        )


class Tli(TwoVocabularies):
    """The drafter's law on shared tokens, renormalised (Timor et al. 2025, Algorithm 4)."""

    def choices(self, read: Tokens) -> tuple[Probabilities, list[Choice]]:
        mass = np.zeros(SIZE)
        mass[list(SHARED)] = self.drafter(read)[list(SHARED.values())]
        q = shaped(mass / mass.sum(), **self.shape)
        return declared(
            Choice(x, q[x], (middle(q, x),), (*read, SHARED[x]))
            for x in np.flatnonzero(q).tolist()
        )


def declared(choices: Iterable[Choice]) -> tuple[Probabilities, list[Choice]]:
    """The law of some ways to draw a target token, which may be `OUTSIDE`, and these."""
    law, found = np.zeros(SIZE), list(choices)
    for one in found:
        law[one.token] += one.weight if one.token != OUTSIDE else 0
    return law, found


def arguments(method: str) -> dict[str, Any]:
    """What `generate` is given."""
    return {
        "target": small("gpt2", 5, SIZE),
        "drafter": small("llama", 1, len(DRAFTER)),
        "tokenizer": tokenizer(TARGET),
        "drafter_tokenizer": tokenizer(DRAFTER),
        "method": method,
        "verification": "block",
        "eos": EOS,
    }
