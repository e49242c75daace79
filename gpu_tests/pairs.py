"""The trained pairs of fixtures/models, loaded on a device, and what is generated on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import torch
from transformers import AutoTokenizer

from fixtures.model_pairs.samples import HELD_OUT, PROMPTS, read_documents
from fixtures.model_pairs.storing import MODELS, load_model, read_card
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.record import PLAIN
from specref.contrib.real_models.settings import Setting
from specref.torch_backend.methods import METHODS

LOOKAHEAD = 4


@dataclass(frozen=True)
class Case:
    """A method on a pair, and how laws are shaped; float64 where a cut must not move.

    A variant is given fewer texts. Drafts are verified one by one, or by block.
    """

    method: str
    pair: str
    setting: Setting = PLAIN
    dtype: torch.dtype = torch.float32
    variant: bool = False
    verification: str = "token"


CASES: Mapping[str, Case] = MappingProxyType(
    {
        "autoregressive": Case("autoregressive", "homogeneous"),
        "standard": Case("standard", "homogeneous"),
        "union": Case("union", "small intersection"),
        "tli": Case("tli", "large intersection"),
        "slem": Case("slem", "non-injective"),
        "slrs": Case("slrs", "large intersection", variant=True),
        "slrs, bytes": Case("slrs", "byte-level", variant=True),
        "standard, T 0.7, top-p 0.9": Case(
            "standard", "homogeneous", Setting(0.7, top_p=0.9), torch.float64, variant=True
        ),
        "standard, gpt2": Case(
            "standard", "homogeneous, target_gpt2 + drafter_unigram", variant=True
        ),
        "standard, block": Case("standard", "homogeneous", variant=True, verification="block"),
        "tli, block": Case("tli", "large intersection", variant=True, verification="block"),
        "slem, large intersection": Case("slem", "large intersection", variant=True),
    }
)


def prompts_of(pair: Pair, count: int) -> list[list[int]]:
    """The first prompts as token ids of the target, both kinds in turn."""
    texts = read_documents(MODELS / PROMPTS)
    half = len(texts) // 2
    turns = [text for both in zip(texts[:half], texts[half:], strict=True) for text in both]
    return [pair.target.tokenizer.encode(prompt.text) for prompt in turns[:count]]


def held_out(pair: Pair) -> list[list[int]]:
    """The held-out documents as token ids of the target."""
    return [pair.target.tokenizer.encode(text.text) for text in read_documents(MODELS / HELD_OUT)]


@cache
def card_entries() -> dict[str, dict[str, Any]]:
    """{name: entry} of the pairs in the card; empty if they are not built.

    A name is its kind, for the first of the kind; the others have their models named.
    """
    named: dict[str, dict[str, Any]] = {}
    for entry in read_card().get("pairs", []):
        kind = entry["kind"]
        name = f"{kind}, {entry['target']} + {entry['drafter']}" if kind in named else kind
        named[name] = entry
    return named


class Models:
    """The models of the card on one device, each loaded once."""

    def __init__(self, device: str) -> None:
        self.device, self._loaded = device, cache(self._load)

    def pair(self, name: str, dtype: torch.dtype = torch.float32) -> Pair:
        """Load a pair by its name, weights and arithmetic in a dtype."""
        entry = card_entries()[name]
        target, drafter = (self._loaded(entry[role], dtype) for role in ("target", "drafter"))
        return Pair(name, target, drafter, METHODS)

    def _load(self, name: str, dtype: torch.dtype) -> Loaded:
        model: Any = load_model(MODELS / name)
        tokenizer = AutoTokenizer.from_pretrained(MODELS / name, local_files_only=True)
        return Loaded(name, model.to(self.device, dtype), tokenizer)
