"""Generation by `torch_backend` and by Transformers, run and counted alike."""

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, PreTrainedTokenizerFast

from gpu_tests.benchmarks.lines import BY_ID, PLAIN, Line
from gpu_tests.pairs import Pair
from specref.contracts.process_state import seeded
from specref.contrib.engines.forwards import Forward, blocks, cache_of
from specref.torch_backend import Decoder

SEEDS_OF_A_RUN = 1000


class SortedTokenizer(PreTrainedTokenizerFast):
    """A tokenizer that lists its vocabulary by id."""

    def get_vocab(self) -> dict[str, int]:
        return dict(sorted(super().get_vocab().items(), key=lambda item: item[1]))


@dataclass(frozen=True)
class Tally:
    """What texts took to generate, added up."""

    seconds: float = 0.0
    emitted: int = 0
    drafted: int = 0
    accepted: int = 0
    iterations: int = 0
    target_forwards: int = 0
    drafter_forwards: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Contender(ABC):
    """A way to generate text: what a row of the table says, on its pair."""

    def __init__(self, pair: Pair, line: Line) -> None:
        self.pair, self.line = pair, line

    def run(self, prompts: Sequence[Sequence[int]], new_tokens: int, seed: int) -> Tally:
        """Generate after all prompts, a batch at a time."""
        total = Tally()
        for first in range(0, len(prompts), self.line.batch):
            batch = prompts[first : first + self.line.batch]
            seeds = [seed * SEEDS_OF_A_RUN + first + row for row in range(len(batch))]
            total += self._texts(batch, new_tokens, seeds)
        return total

    @abstractmethod
    def _texts(
        self, prompts: Sequence[Sequence[int]], new_tokens: int, seeds: list[int]
    ) -> Tally: ...

    def _now(self) -> float:
        if self.pair.target.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


class Ours(Contender):
    """`torch_backend.Decoder`, made once, as Transformers keeps what it knows of tokenizers."""

    def __init__(self, pair: Pair, line: Line) -> None:
        super().__init__(pair, line)
        self.decoder = Decoder(
            pair.target,
            pair.drafter,
            method=line.method,
            verification=line.verification,
            tokenizer=pair.tokenizer,
            drafter_tokenizer=pair.drafter_tokenizer,
            temperature=line.temperature,
        )

    def _texts(self, prompts: Sequence[Sequence[int]], new_tokens: int, seeds: list[int]) -> Tally:
        started = self._now()
        texts = self.decoder.generate(
            prompts, seeds=seeds, lookahead=self.line.lookahead, max_new_tokens=new_tokens
        )
        return Tally(
            self._now() - started,
            texts.emitted,
            texts.drafted,
            texts.accepted,
            len(texts.log),
            texts.target_forwards,
            texts.drafter_forwards,
        )


class Transformers(Contender):
    """Transformers' `generate`, with an assistant of its own, which it may change.

    Its universal speculative decoding (TLI) takes the order in which the assistant's tokenizer
    lists its vocabulary for that of the ids. It is measured as shipped, where that is any order
    and the output is not the target's, and with a tokenizer that lists by id.
    """

    def __init__(self, pair: Pair, line: Line) -> None:
        super().__init__(pair, line)
        self.target, self.assistant = copy.copy(pair.target), copy.deepcopy(pair.drafter)
        self.target.generation_config = GenerationConfig(pad_token_id=pair.tokenizer.pad_token_id)
        self.assistant.generation_config = GenerationConfig(
            num_assistant_tokens=line.lookahead,
            num_assistant_tokens_schedule="constant",
            assistant_confidence_threshold=0,
        )
        self.options = self._options()

    def _options(self) -> dict[str, Any]:
        line = self.line
        options: dict[str, Any] = {"do_sample": bool(line.temperature)}
        if line.temperature:
            options |= {"temperature": line.temperature, "top_k": 0}
        if line.method != PLAIN:
            options["assistant_model"] = self.assistant
        if line.method in ("slem", "tli"):
            kind = SortedTokenizer if line.implementation == BY_ID else PreTrainedTokenizerFast
            theirs = kind.from_pretrained(self.pair.drafter_tokenizer.name_or_path)
            options |= {"tokenizer": self.pair.tokenizer, "assistant_tokenizer": theirs}
        return options

    def _texts(self, prompts: Sequence[Sequence[int]], new_tokens: int, seeds: list[int]) -> Tally:
        (prompt,), (seed,) = prompts, seeds
        target: Any = self.target
        ids = torch.tensor([prompt], device=target.device)
        mask = torch.ones_like(ids)
        watches = Watch(target), Watch(self.assistant)
        with seeded(np.random.default_rng(seed), str(target.device)), watches[0], watches[1]:
            started = self._now()
            text = target.generate(
                ids, attention_mask=mask, max_new_tokens=new_tokens, **self.options
            )
            seconds = self._now() - started
        length = text.shape[1]
        found = blocks([*watches[0].forwards, Forward(length - 1, 0)], len(prompt))
        return Tally(
            seconds,
            length - len(prompt),
            sum(block.drafted for block in found),
            sum(block.accepted for block in found),
            *(len(watch.forwards) for watch in (watches[0], *watches)),
        )


class Watch:
    """The forward passes of a model inside a `with` block."""

    def __init__(self, model: Any) -> None:
        self.model, self.forwards = model, list[Forward]()

    def __enter__(self) -> "Watch":
        self._handle = self.model.register_forward_pre_hook(self._note, with_kwargs=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.remove()

    def _note(self, model: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        cache, ids = cache_of(named), named.get("input_ids")
        held = 0 if cache is None else cache.get_seq_length()
        self.forwards.append(Forward(held, 0 if ids is None else ids.shape[1]))
