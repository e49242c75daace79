"""Transformers' own `generate` on a pair: its ways of assisted decoding, one text at a time."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TypeAlias

import torch

from specref.contracts.process_state import seeded
from specref.contrib.engines.forwards import Block, Forward, blocks, cache_of
from specref.contrib.real_models.generating import ends_of
from specref.contrib.real_models.pairs import Pair

Path: TypeAlias = Literal["plain", "prompt lookup", "assisted", "TLI", "SLEM"]
CERTAIN = "assistant_confidence_threshold"


class Timed(NamedTuple):
    """A text, the passes of the target that it took, and how many the drafter took."""

    tokens: list[int]
    passes: list[Forward]
    drafter_forwards: int

    @property
    def forwards(self) -> int:
        """Of the target."""
        return len(self.passes)

    def blocks(self, prompt: int) -> tuple[Block, ...]:
        """The blocks of the text, after a prompt of so many tokens."""
        # The forward that would come next tells what was kept of the last block.
        return blocks([*self.passes, Forward(prompt + len(self.tokens) - 1, 0)], prompt)


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
    * `endless`: Whether no token ends a text.
    * `by_id`: Whether the drafter's tokenizer lists its vocabulary by id, not in any order.
    """

    def __init__(
        self,
        pair: Pair,
        path: Path,
        sampled: bool,
        lookahead: int,
        *,
        endless: bool = False,
        by_id: bool = False,
    ) -> None:
        self.pair, self.model = pair, copy.copy(pair.target.model)
        config: Any = copy.deepcopy(self.model.generation_config)
        config.update(do_sample=sampled, top_k=0 if sampled else None, temperature=None)
        config.update(top_p=None, pad_token_id=config.eos_token_id)
        ends = [] if endless else sorted(ends_of(pair.target.tokenizer))
        config.update(eos_token_id=ends or None)
        self.model.generation_config = config
        self.options: dict[str, Any] = {"generation_config": config}
        if path == "prompt lookup":
            config.prompt_lookup_num_tokens = lookahead
        elif path != "plain":
            self.options["assistant_model"] = self._assistant(lookahead, endless)
        if path in ("TLI", "SLEM"):
            self.options["tokenizer"] = copy.deepcopy(pair.target.tokenizer)
            self.options["assistant_tokenizer"] = _listed(pair.drafter.tokenizer, by_id)

    def _assistant(self, lookahead: int, endless: bool) -> Any:
        assistant: Any = copy.deepcopy(self.pair.drafter.model)
        assistant.generation_config.update(
            num_assistant_tokens=lookahead, num_assistant_tokens_schedule="constant"
        )
        setattr(assistant.generation_config, CERTAIN, 0.0)
        if endless:
            assistant.generation_config.eos_token_id = None
        return assistant

    def __call__(self, prompt: Sequence[int], tokens: int, rng: Any) -> Timed:
        """One text; whatever Transformers raises, it raises."""
        model: Any = self.model
        ids = torch.tensor([list(prompt)], device=model.device)
        self.options["generation_config"].max_new_tokens = tokens
        drafter = self.options.get("assistant_model")
        with seeded(rng, str(model.device)), _listening(model) as mine, _listening(drafter) as own:
            made = model.generate(ids, attention_mask=torch.ones_like(ids), **self.options)
        return Timed(made[0, ids.shape[1] :].tolist(), mine, len(own))


def _listed(tokenizer: Any, by_id: bool) -> Any:
    copied = copy.deepcopy(tokenizer)
    if by_id:
        listed = dict(sorted(copied.get_vocab().items(), key=lambda item: item[1]))
        copied.get_vocab = lambda: dict(listed)
    return copied


@contextmanager
def _listening(model: Any) -> Iterator[list[Forward]]:
    """The forward passes of a model inside, if there is one."""
    passes: list[Forward] = []

    def note(_: Any, given: Any, named: dict[str, Any]) -> None:
        cache, ids = cache_of(named), named.get("input_ids")
        fed = given[0] if ids is None and given else ids
        held = 0 if cache is None else cache.get_seq_length()
        passes.append(Forward(held, 0 if fed is None else fed.shape[1]))

    handles = (
        [model.register_forward_pre_hook(note, with_kwargs=True)] if model is not None else []
    )
    try:
        yield passes
    finally:
        for handle in handles:
            handle.remove()
