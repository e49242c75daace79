"""Generation by `torch_backend` and by Transformers, run and counted alike."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from types import MappingProxyType

import numpy as np
import torch

from gpu_tests.benchmarks.lines import BY_ID, LOOKUP, PLAIN, Line
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.speed import Hugging, Way
from specref.torch_backend import Decoder

SEEDS_OF_A_RUN = 1000
PATHS: Mapping[str, Way] = MappingProxyType(
    {
        PLAIN: "plain",
        LOOKUP: "prompt lookup",
        "standard": "assisted",
        "tli": "TLI",
        "slem": "SLEM",
    }
)


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
        if self.pair.target.model.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


class Ours(Contender):
    """`torch_backend.Decoder`, made once, as Transformers keeps what it knows of tokenizers."""

    def __init__(self, pair: Pair, line: Line) -> None:
        super().__init__(pair, line)
        self.decoder = Decoder(
            pair.target.model,
            pair.drafter.model,
            method=line.method,
            verification=line.verification,
            tokenizer=pair.target.tokenizer,
            drafter_tokenizer=pair.drafter.tokenizer,
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
    """Transformers' `generate`, one text at a time; nothing ends a text earlier.

    Its universal speculative decoding (TLI) takes the order in which the assistant's tokenizer
    lists its vocabulary for that of the ids. It is measured as shipped, where that is any order
    and the output is not the target's, and with a tokenizer that lists by id.
    """

    def __init__(self, pair: Pair, line: Line) -> None:
        super().__init__(pair, line)
        by_id = line.implementation == BY_ID
        path, sampled = PATHS[line.method], bool(line.temperature)
        self.text = Hugging(pair, path, sampled, line.lookahead, endless=True, by_id=by_id)

    def _texts(self, prompts: Sequence[Sequence[int]], new_tokens: int, seeds: list[int]) -> Tally:
        (prompt,), (seed,) = prompts, seeds
        started = self._now()
        text = self.text(prompt, new_tokens, np.random.default_rng(seed))
        seconds, blocks = self._now() - started, text.blocks(len(prompt))
        return Tally(
            seconds,
            len(text.tokens),
            sum(block.drafted for block in blocks),
            sum(block.accepted for block in blocks),
            *(text.forwards, text.forwards, text.drafter_forwards),
        )
