"""Texts of one file against the target itself, which is at hand: no second file is needed.

Each token's distribution comes from a pass of the model alone over the whole text, shaped in
float64 by the settings that are declared. Under it the surprise of a token less the entropy has
mean 0, and bets on flatter and sharper texts are fair (`EntropyMartingale`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specref.arrays import Floats
from specref.contrib.compare.records import Texts
from specref.contrib.compare.reported import STAGES
from specref.contrib.real_models.entropy import STAKES, EntropyMartingale, EntropyReport
from specref.contrib.real_models.judging import CUT
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.settings import Setting
from specref.contrib.real_models.uncached import forced_logits

FIND = 1.25
"""A pass needs so many tokens that texts of this temperature, or its inverse, would be found."""


@dataclass(frozen=True)
class ByModel:
    """The verdict on one file by the model.

    Attributes
    ----------
    report : EntropyReport
    texts : int
        Those that were read until the verdict.
    at_cut : int
        Tokens that the declared filter excludes by no more than rounding; not judged.
    finds : tuple of (float or None)
        The nearest temperatures below and above 1 that so many tokens are expected to find.
    stages : dict
        Of reported log-probabilities, how many agree with the model's, raw and processed.
    reported : int
        How many there are.
    """

    report: EntropyReport
    texts: int
    at_cut: int
    finds: tuple[float | None, float | None]
    stages: dict[str, int]
    reported: int

    @property
    def decides(self) -> bool:
        """Whether so many tokens would have found texts of the temperatures `FIND`, 1 / `FIND`."""
        below, above = self.finds
        return below is not None and above is not None and above <= FIND and below >= 1 / FIND


def judge_by_model(
    texts: Texts,
    loaded: Loaded,
    setting: Setting,
    alpha: float,
    tolerance: float,
    advance: Callable[[int], None],
) -> ByModel:
    """Judge texts one after the other, until they are lossy or all are read.

    Parameters
    ----------
    texts : Texts
        Their records need the prompt: "prompt_token_ids", or "prompt" as text.
    loaded : Loaded
        The target.
    setting : Setting
        Temperature, top-k and top-p of the system that is judged.
    alpha, tolerance : float
        Of a false LOSSY; and nats between a reported log-probability and the model's.
    advance : callable
        Told after each text how many tokens it had.

    Raises
    ------
    ValueError
        A prompt is missing, or has ids that the model lacks.
    """
    contexts = _contexts(texts, loaded)
    bets, gains = EntropyMartingale(alpha), np.zeros(len(STAKES))
    stages, reported, at_cut, read = dict.fromkeys(STAGES, 0), 0, 0, 0
    for number, prompt in enumerate(texts.prompts.tolist()):
        start, end = texts.starts[number : number + 2].tolist()
        ids = texts.tokens[start:end].tolist()
        logits = forced_logits(loaded.model, [contexts[prompt]], [ids]).double().cpu().numpy()
        read += 1
        for place, (token, row) in enumerate(zip(ids, logits, strict=True)):
            raw, law = Setting().law(row), setting.law(row)
            if texts.logprobs is not None and not math.isnan(texts.logprobs[start + place]):
                reported += 1
                for stage, one in zip(STAGES, (raw, law), strict=True):
                    known = math.log(one[token]) if one[token] > 0 else -math.inf
                    stages[stage] += abs(known - texts.logprobs[start + place]) <= tolerance
            if law[token] <= 0 and row[token] > row[law > 0].min() - CUT:
                at_cut += 1
                continue
            bets.observe(law, token)
            gains += _gains(law)
        advance(len(ids))
        if bets.tokens and bets.report().lossy:
            break
    return ByModel(bets.report(), read, at_cut, _finds(gains, alpha), stages, reported)


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


def _gains(law: Floats) -> Floats:
    """What each bet is expected to win on a token if its own temperature is right."""
    log_p = np.log(law[law > 0])
    tilted = np.outer(1 - STAKES, log_p)
    tilted -= tilted.max(axis=1, keepdims=True)
    log_r = tilted - np.log(np.exp(tilted).sum(axis=1, keepdims=True))
    return np.asarray((np.exp(log_r) * (log_r - log_p)).sum(axis=1))


def _finds(gains: Floats, alpha: float) -> tuple[float | None, float | None]:
    needed = math.log(len(STAKES) / alpha)
    found = [1 / (1 - s) for s, gain in zip(STAKES, gains, strict=True) if gain >= needed]
    below, above = [t for t in found if t < 1], [t for t in found if t > 1]
    return max(below, default=None), min(above, default=None)
