"""Texts of one file against the target itself, which is at hand: no second file is needed.

Each token's distribution comes from a pass of the model alone over the whole text, shaped in
float64 by the settings that are declared. Under it the surprise of a token less the entropy has
mean 0, and bets on flatter and sharper texts are fair (`EntropyMartingale`).
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from specref.arrays import Floats
from specref.contrib.compare.logprobs import STAGES
from specref.contrib.compare.records import Texts
from specref.contrib.real_models.entropy import STAKES, EntropyMartingale, EntropyReport
from specref.contrib.real_models.judging import CUT, forced_logits
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.settings import Setting

FIND = 1.25
"""A pass needs so many tokens that texts of this temperature, or its inverse, would be found."""
INTERRUPTED, TIME = "interrupted", "--time-limit is over"
LOGITS = 2**24
"""Of the texts that the model reads at once, 64 MiB of them, so that few texts are read in vain
where the first ones decide."""


@dataclass(frozen=True)
class ByModel:
    """The verdict on one file by the model.

    * `texts`, `given`: Those that were read until the verdict, or the end of the time; and all.
    * `at_cut`: Tokens that the declared filter excludes by no more than rounding; not judged.
    * `finds`: The nearest temperatures below and above 1 that so many tokens are expected to find.
    * `stages`: Of reported log-probabilities, how many agree with the model's, raw and processed.
    * `stopped`: Why not all were read, though nothing was found.
    """

    report: EntropyReport
    texts: int
    given: int
    at_cut: int
    finds: tuple[float | None, float | None]
    stages: dict[str, int]
    reported: int
    stopped: str | None = None

    @property
    def decides(self) -> bool:
        """Whether so many tokens would have found texts of the temperatures `FIND`, 1 / `FIND`."""
        below, above = self.finds
        return below is not None and above is not None and above <= FIND and below >= 1 / FIND

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.stopped == INTERRUPTED

    @property
    def head(self) -> str:
        """The verdict and how sure it is, in one line."""
        if self.report.lossy:
            return f"LOSSY by the model (false-positive rate at most {self.report.alpha:.2g})."
        near = f"temperature {1 / FIND:g} or {FIND:g}"
        if self.decides:
            return f"NO DIFFERENCE from the model; {near} would be detected."
        return f"INCONCLUSIVE by the model: too few tokens to detect {near}."


def judge_by_model(
    texts: Texts,
    loaded: Loaded,
    setting: Setting,
    alpha: float,
    tolerance: float,
    advance: Callable[[int], None],
    seconds: float = math.inf,
) -> ByModel:
    """Judge texts one after the other, until they are lossy, all are read, or the time is over.

    Ctrl-C ends it, too, with the verdict on what was read: bets are fair whenever they end.

    * `tolerance`: Nats between a reported log-probability and the model's.
    * `advance`: Told after each text how many tokens it had.
    * raises `ValueError`: A prompt is missing ("prompt_token_ids", or "prompt" as text), or has
      ids that the model lacks.
    """
    contexts = _contexts(texts, loaded)
    bets, ends = EntropyMartingale(alpha), time.monotonic() + seconds
    stages, reported, at_cut, read = dict.fromkeys(STAGES, 0), 0, 0, 0
    stopped = None
    try:
        for ids, logs, logits in _read(texts, contexts, loaded):
            for token, log, row in zip(ids, logs, logits, strict=True):
                law = setting.law(row)
                if not math.isnan(log):
                    reported += 1
                    for stage, one in zip(STAGES, (Setting().law(row), law), strict=True):
                        known = math.log(one[token]) if one[token] > 0 else -math.inf
                        stages[stage] += abs(known - log) <= tolerance
                if law[token] <= 0 and row[token] > row[law > 0].min() - CUT:
                    at_cut += 1
                    continue
                bets.observe(law, token)
            read += 1
            advance(len(ids))
            if bets.tokens and bets.report().lossy:
                break
            if time.monotonic() > ends and read < len(texts):
                stopped = TIME
                break
    except KeyboardInterrupt:
        if not bets.tokens:
            raise
        stopped = None if bets.report().lossy else INTERRUPTED
    finds = _finds(bets.expected, alpha)
    return ByModel(bets.report(), read, len(texts), at_cut, finds, stages, reported, stopped)


def _read(
    texts: Texts, contexts: Sequence[Sequence[int]], loaded: Loaded
) -> Iterator[tuple[list[int], list[float], Floats]]:
    """The tokens of each text, what is reported of each, and its row of logits by the model."""
    size = int(loaded.model.config.get_text_config().vocab_size)
    step = max(1, LOGITS // (size * int(texts.lengths.max())))
    for first in range(0, len(texts), step):
        chosen = range(first, min(first + step, len(texts)))
        places = [slice(*texts.starts[one : one + 2].tolist()) for one in chosen]
        ids = [texts.tokens[place].tolist() for place in places]
        prompts = [contexts[one] for one in texts.prompts[chosen.start : chosen.stop].tolist()]
        logits = forced_logits(loaded.model, prompts, ids).double().cpu().numpy()
        start = texts.starts[first]
        for place, one in zip(places, ids, strict=True):
            logs = [math.nan] * len(one) if texts.logprobs is None else texts.logprobs[place]
            yield one, list(logs), logits[place.start - start : place.stop - start]


def _contexts(texts: Texts, loaded: Loaded) -> list[Sequence[int]]:
    found: list[Sequence[int]] = []
    size = int(loaded.model.config.get_text_config().vocab_size)
    for name in texts.ids:
        known: Any = texts.contexts.get(name)
        if isinstance(known, str):
            known = loaded.tokenizer.encode(known)
        if not known:
            raise ValueError(
                f"{texts.name}: prompt {name} has no prompt_token_ids and no prompt: the model "
                "needs what the texts go on from"
            )
        if not 0 <= min(known) <= max(known) < size:
            raise ValueError(f"{texts.name}: prompt {name} has an id outside of 0 to {size - 1}")
        found.append(known)
    highest = int(texts.tokens.max())
    if highest >= size:
        raise ValueError(f"{texts.name}: it has the token {highest}, and the model {size} ids")
    return found


def _finds(gains: Floats, alpha: float) -> tuple[float | None, float | None]:
    needed = math.log(len(STAKES) / alpha)
    found = [1 / (1 - s) for s, gain in zip(STAKES, gains, strict=True) if gain >= needed]
    below, above = [t for t in found if t < 1], [t for t in found if t > 1]
    return max(below, default=None), min(above, default=None)
