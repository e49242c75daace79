"""The trained pairs of `fixtures/models`, loaded on a device."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from transformers import AutoTokenizer, PreTrainedModel

from fixtures.model_pairs.samples import HELD_OUT, PROMPTS, read_documents
from fixtures.model_pairs.storing import MODELS, load_model, read_card
from specref.torch_backend import methods
from specref.torch_backend.drafters.drafts import Drafter, Shape


@dataclass(frozen=True, eq=False)
class Pair:
    """A target and a drafter, each with its tokenizer.

    Attributes
    ----------
    name : str
        Its kind in the card, for the first of the kind; the others have their models named.
    acceptance : float
        As the card has it: the mean of sum min(p, q') over places of held-out texts.
    """

    name: str
    acceptance: float
    target: PreTrainedModel
    drafter: PreTrainedModel
    tokenizer: Any
    drafter_tokenizer: Any

    def drafts_by(self, method: str, shape: Shape) -> Drafter:
        """The drafter of a method, as `generate` builds it."""
        models = self.target, self.drafter, self.tokenizer, self.drafter_tokenizer
        return methods.DRAFTERS[method](methods.Pair(*models, shape, use_cache=True))

    def prompts(self, count: int) -> list[list[int]]:
        """The first prompts as token ids of the target, both kinds in turn."""
        texts = read_documents(MODELS / PROMPTS)
        half = len(texts) // 2
        turns = [text for both in zip(texts[:half], texts[half:], strict=True) for text in both]
        return [self.tokenizer.encode(prompt.text) for prompt in turns[:count]]

    def held_out(self) -> list[list[int]]:
        """The held-out documents as token ids of the target."""
        return [self.tokenizer.encode(text.text) for text in read_documents(MODELS / HELD_OUT)]


@cache
def card_entries() -> dict[str, dict[str, Any]]:
    """{name: entry} of the pairs in the card; empty if they are not built."""
    named: dict[str, dict[str, Any]] = {}
    for entry in read_card().get("pairs", []):
        kind = entry["kind"]
        name = f"{kind}, {entry['target']} + {entry['drafter']}" if kind in named else kind
        named[name] = entry
    return named


class Models:
    """The models of the card on one device, each loaded once."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._model, self._tokenizer = cache(self._load), cache(load_tokenizer)

    def pair(self, name: str, dtype: torch.dtype = torch.float32) -> Pair:
        """Load a pair by its name, weights and arithmetic in a dtype."""
        entry = card_entries()[name]
        names = entry["target"], entry["drafter"]
        models = (self._model(one, dtype) for one in names)
        return Pair(name, entry["acceptance"], *models, *map(self._tokenizer, names))

    def _load(self, name: str, dtype: torch.dtype) -> PreTrainedModel:
        model: Any = load_model(MODELS / name)
        loaded: PreTrainedModel = model.to(self.device, dtype)
        return loaded


def load_tokenizer(name: str) -> Any:
    """A tokenizer of its own for each call."""
    return AutoTokenizer.from_pretrained(MODELS / name, local_files_only=True)
