"""Tokens a pass of the target and tokens a second, ours and Transformers', in the same minutes.

Transformers' own `generate` takes one text at a time, by each of its ways of assisted decoding.
Paths take turns prompt by prompt, so that they share what else the machine does. Greedy texts are
compared with plain greedy decoding; where two part, the target's two largest logits tell whether
rounding can.
"""

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch

from specref.contracts.process_state import seeded
from specref.contrib.engines.calling_generate import Block, Forward, blocks, cache_of
from specref.contrib.real_models.generating import LOOKAHEAD, Generator, ends_of
from specref.contrib.real_models.judging import forced_logits
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.settings import Setting

Way: TypeAlias = Literal["plain", "prompt lookup", "assisted", "TLI", "SLEM"]
CERTAIN = "assistant_confidence_threshold"
GAP = 1e-3
"""Two logits of a cached and an uncached pass in float32 can change places within it."""
OURS, THEIRS = "specref", "transformers"
Make: TypeAlias = Callable[[Sequence[int], int, int], tuple[list[int], int]]
"""From a prompt, a seed and a length to a text and the passes of the target that it took."""


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


def paths_of(pair: Pair, sampled: bool) -> tuple[Way, ...]:
    """The ways there are: SLEM is greedy and TLI sampled, for two vocabularies; there is no other.

    Transformers chooses between the two by `do_sample`.
    """
    if "standard" in pair.methods:
        return ("plain", "prompt lookup", "assisted")
    return ("plain", "prompt lookup", "TLI" if sampled else "SLEM")


class Hugging:
    """Transformers' `generate` of a pair by one path.

    * `pair`: It is not changed: the drafter is copied where Transformers would prune it.
    * `sampled`: At temperature 1 without filters, else greedy.
    * `endless`: Whether no token ends a text.
    * `by_id`: Whether the drafter's tokenizer lists its vocabulary by id, not in any order.
    """

    def __init__(
        self,
        pair: Pair,
        path: Way,
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

    handle = None if model is None else model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield passes
    finally:
        if handle:
            handle.remove()


@dataclass
class Path:
    """One way to generate, and what it took.

    * `sampled`: At temperature 1; else greedy.
    * `texts`, `tokens`, `forwards`: Forwards are of the target.
    * `equal`, `near_ties`: Greedy texts that are those of plain greedy decoding, and those that
      part from them where the two largest logits are within `GAP`.
    """

    by: str
    method: str
    sampled: bool
    texts: int = 0
    tokens: int = 0
    forwards: int = 0
    seconds: float = 0.0
    equal: int = 0
    near_ties: int = 0
    error: str | None = None
    greedy: list[list[int]] = field(default_factory=list, repr=False)

    @property
    def different(self) -> int:
        """Greedy texts that part elsewhere."""
        return 0 if self.sampled else self.texts - self.equal - self.near_ties

    def stored(self) -> dict[str, Any]:
        """As it goes into JSON."""
        kept = {name: value for name, value in asdict(self).items() if name != "greedy"}
        rates = {
            "tokens_per_forward": round(self.tokens / max(self.forwards, 1), 3),
            "tokens_per_second": round(self.tokens / max(self.seconds, 1e-9), 2),
            "different": self.different,
        }
        return kept | rates


def measure(
    pair: Pair,
    prompts: Sequence[Sequence[int]],
    tokens: int,
    advance: Callable[[str], None],
) -> list[Path]:
    """Every path on every prompt, sampled and greedy; texts have so many tokens at most.

    `advance` is told what was done after each text.
    """
    found = []
    for sampled in (True, False):
        makers = _makers(pair, sampled)
        for number, prompt in enumerate(prompts):
            for path, make in makers:
                if path.error is None:
                    _run(path, make, prompt, number, tokens)
                advance(f"{path.by}, {path.method}")
        paths = [path for path, _ in makers]
        if not sampled:
            _compare(paths, prompts, pair.target)
        found += paths
    return found


def _makers(pair: Pair, sampled: bool) -> list[tuple[Path, Make]]:
    made: list[tuple[Path, Make]] = []
    for method in dict.fromkeys(("autoregressive", *pair.methods)):
        generator = Generator(pair, method, Setting(1.0 if sampled else 0.0))
        made.append((Path(OURS, method, sampled), partial(_ours, generator)))
    for name in paths_of(pair, sampled):
        hugging = Hugging(pair, name, sampled, LOOKAHEAD)
        made.append((Path(THEIRS, name, sampled), partial(_theirs, hugging)))
    return made


def _ours(
    generator: Generator, prompt: Sequence[int], seed: int, tokens: int
) -> tuple[list[int], int]:
    made = generator([prompt], [seed], tokens).generation
    return list(made.tokens[0]), made.target_forwards


def _theirs(
    hugging: Hugging, prompt: Sequence[int], seed: int, tokens: int
) -> tuple[list[int], int]:
    made = hugging(prompt, tokens, np.random.default_rng(seed))
    return made.tokens, made.forwards


def _run(path: Path, make: Make, prompt: Sequence[int], seed: int, tokens: int) -> None:
    started = time.perf_counter()
    try:
        text, forwards = make(prompt, seed, tokens)
    except Exception as error:  # what Transformers raises on a pair is a finding
        if path.by == OURS:
            raise
        path.error = f"{type(error).__name__}: {error}".splitlines()[0]
        return
    path.seconds += time.perf_counter() - started
    path.texts, path.tokens = path.texts + 1, path.tokens + len(text)
    path.forwards += forwards
    path.greedy.append(text)


def _compare(paths: Sequence[Path], prompts: Sequence[Sequence[int]], target: Loaded) -> None:
    plain = next(path for path in paths if (path.by, path.method) == (THEIRS, "plain"))
    for path in paths:
        for prompt, text, other in zip(prompts, path.greedy, plain.greedy, strict=False):
            if text == other:
                path.equal += 1
            else:
                path.near_ties += gap_where_they_part(target, prompt, text, other) <= GAP


def gap_where_they_part(
    target: Loaded, prompt: Sequence[int], text: Sequence[int], other: Sequence[int]
) -> float:
    """The largest logit less the second there; infinite if one text just ends."""
    pairs = zip(text, other, strict=False)
    same = next((place for place, (a, b) in enumerate(pairs) if a != b), None)
    if same is None:
        return float("inf")
    logits = forced_logits(target.model, [prompt], [text[: same + 1]])[-1]
    largest, second = logits.topk(2).values
    return float(largest - second)
