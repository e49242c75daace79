"""Transformers' own `generate` on a pair: its ways of assisted decoding, one text at a time."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TypeAlias

import torch

from specref.contracts.process_state import seeded
from specref.contrib.real_models.generating import ends_of
from specref.contrib.real_models.pairs import Pair

Path: TypeAlias = Literal["plain", "prompt lookup", "assisted", "TLI", "SLEM"]
CERTAIN = "assistant_confidence_threshold"


class Timed(NamedTuple):
    """A text, and how often the target was called for it."""

    tokens: list[int]
    forwards: int


def paths_of(pair: Pair, sampled: bool) -> tuple[Path, ...]:
    """The ways there are: SLEM is greedy and TLI sampled, for two vocabularies; there is no other.

    Transformers chooses between the two by `do_sample`.
    """
    if "standard" in pair.methods:
        return ("plain", "prompt lookup", "assisted")
    return ("plain", "prompt lookup", "TLI" if sampled else "SLEM")


class Hugging:
    """Transformers' `generate` of a pair by one path.

    * `pair`: It is not changed: the drafter is copied where Transformers would prune it.
    * `path`: One of `paths_of`.
    * `sampled`: At temperature 1 without filters, else greedy.
    """

    def __init__(self, pair: Pair, path: Path, sampled: bool, lookahead: int) -> None:
        self.pair, self.model = pair, pair.target.model
        config: Any = copy.deepcopy(self.model.generation_config)
        config.update(do_sample=sampled, top_k=0 if sampled else None, temperature=None)
        config.update(top_p=None, pad_token_id=config.eos_token_id)
        ends = sorted(ends_of(pair.target.tokenizer))
        config.update(eos_token_id=ends or None)
        self.options: dict[str, Any] = {"generation_config": config}
        if path == "prompt lookup":
            config.prompt_lookup_num_tokens = lookahead
        elif path != "plain":
            self.options["assistant_model"] = self._assistant(lookahead)
        if path in ("TLI", "SLEM"):
            self.options["tokenizer"] = copy.deepcopy(pair.target.tokenizer)
            self.options["assistant_tokenizer"] = copy.deepcopy(pair.drafter.tokenizer)

    def _assistant(self, lookahead: int) -> Any:
        assistant: Any = copy.deepcopy(self.pair.drafter.model)
        assistant.generation_config.update(
            num_assistant_tokens=lookahead, num_assistant_tokens_schedule="constant"
        )
        setattr(assistant.generation_config, CERTAIN, 0.0)
        return assistant

    def __call__(self, prompt: Sequence[int], tokens: int, rng: Any) -> Timed:
        """One text; whatever Transformers raises, it raises."""
        model: Any = self.model
        ids = torch.tensor([list(prompt)], device=model.device)
        self.options["generation_config"].max_new_tokens = tokens
        with seeded(rng, str(model.device)), _counting(model) as calls:
            made = model.generate(ids, attention_mask=torch.ones_like(ids), **self.options)
        return Timed(made[0, ids.shape[1] :].tolist(), len(calls))


@contextmanager
def _counting(model: Any) -> Iterator[list[None]]:
    calls: list[None] = []
    handle = model.register_forward_pre_hook(lambda *_: calls.append(None))
    try:
        yield calls
    finally:
        handle.remove()
