"""Tokens a pass of the target and tokens a second, ours and Transformers', in the same minutes.

Paths take turns prompt by prompt, so that they share what else the machine does. Greedy texts are
compared with plain greedy decoding; where two part, the target's two largest logits tell whether
rounding can.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np

from specref.contrib.real_models.generating import LOOKAHEAD, Generator
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.settings import Setting
from specref.contrib.real_models.transformers_side import Hugging, paths_of
from specref.contrib.real_models.uncached import forced_logits

GAP = 1e-3
"""Two logits of a cached and an uncached pass in float32 can change places within it."""
OURS, THEIRS = "specref", "transformers"
Make: TypeAlias = Callable[[Sequence[int], int, int], tuple[list[int], int]]
"""From a prompt, a seed and a length to a text and the passes of the target that it took."""


@dataclass
class Path:
    """One way to generate, and what it took.

    * `by`, `method`: Whose, and what.
    * `sampled`: At temperature 1; else greedy.
    * `texts`, `tokens`, `forwards`: Forwards are of the target.
    * `equal`, `near_ties`: Greedy texts that are those of plain greedy decoding, and those that
      part from them where the two largest logits are within `GAP`.
    * `error`: What it raised instead.
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
    lookahead: int = LOOKAHEAD,
) -> list[Path]:
    """Every path on every prompt, sampled and greedy.

    * `tokens`: Of each text, at most.
    * `advance`: Told what was done after each text.
    """
    found = []
    for sampled in (True, False):
        makers = _makers(pair, sampled, lookahead)
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


def _makers(pair: Pair, sampled: bool, lookahead: int) -> list[tuple[Path, Make]]:
    made: list[tuple[Path, Make]] = []
    for method in dict.fromkeys(("autoregressive", *pair.methods)):
        setting = Setting(1.0 if sampled else 0.0)
        generator = Generator(pair, method, setting, lookahead)
        made.append((Path(OURS, method, sampled), _ours(generator)))
    for name in paths_of(pair, sampled):
        hugging = Hugging(pair, name, sampled, lookahead)
        made.append((Path(THEIRS, name, sampled), _theirs(hugging)))
    return made


def _ours(generator: Generator) -> Make:
    def make(prompt: Sequence[int], seed: int, tokens: int) -> tuple[list[int], int]:
        made = generator([prompt], [seed], tokens).generation
        return list(made.tokens[0]), made.target_forwards

    return make


def _theirs(hugging: Hugging) -> Make:
    def make(prompt: Sequence[int], seed: int, tokens: int) -> tuple[list[int], int]:
        made = hugging(prompt, tokens, np.random.default_rng(seed))
        return made.tokens, made.forwards

    return make


def _run(
    path: Path,
    make: Make,
    prompt: Sequence[int],
    seed: int,
    tokens: int,
) -> None:
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
