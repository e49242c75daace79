"""Log-probabilities that one system reports of its own tokens, judged without a model at hand.

Lists of likeliest tokens have to be lists of one distribution, with the token itself where it
ranks. And the tokens have to be drawn from it: given that a token is in its list, its law is the
list's own, as it stands ("processed") or after the declared settings ("raw"). Which tokens are in
a list does not depend on the token, so that bets on it are fair (`EntropyMartingale`).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specref.arrays import Floats
from specref.contrib.compare.answers import ROUNDING
from specref.contrib.real_models.entropy import EntropyMartingale
from specref.contrib.real_models.settings import Setting

STAGES = ("raw", "processed")
MOST = 5_000
"""Tokens that are bet on, at some 0.1 milliseconds each."""
CUT = 0.01
"""Nats from the last token that a filter keeps, within which rounding may decide."""
SAME = 1e-3
"""Nats between two reports of one token in one answer."""
WHOLE = 1e-3
"""Of the probability that a list may lack for top-p to be computed from it."""


@dataclass(frozen=True)
class ReportedLogprobs:
    """What one file's log-probabilities say of themselves.

    Attributes
    ----------
    name : str
    texts : int
        Records that report any.
    faults : dict
        {what is wrong: how many texts}.
    examples : dict
        The first line of each.
    judged : int
        Tokens that were held against their lists.
    evidence : dict
        {stage: log10 of what bets against it have won}; -log10(alpha) decides.
    excluded : tuple of str
    declared : str or None
    """

    name: str
    texts: int
    faults: dict[str, int]
    examples: dict[str, str]
    judged: int
    evidence: dict[str, float]
    excluded: tuple[str, ...]
    declared: str | None

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults and not self.misdeclared

    @property
    def misdeclared(self) -> bool:
        """Whether tokens are not drawn from what was declared."""
        return self.declared in self.excluded

    def __str__(self) -> str:
        parts = [
            f"{kind} in {count:,} of {self.texts:,} texts ({self.examples[kind]})"
            for kind, count in self.faults.items()
        ]
        if self.misdeclared:
            against = f"10^{self.evidence[str(self.declared)]:.0f} against"
            parts.append(f"{self.declared} ones are not what tokens were drawn from ({against})")
        if parts:
            return f"{self.name}: WRONG: {'; '.join(parts)}"
        left = [stage for stage in self.evidence if stage not in self.excluded]
        told = f"{self.name}: nothing wrong in {self.texts:,} texts"
        if left:
            told += f"; {self.judged:,} tokens fit them as {' or '.join(left)} ones"
        elif self.evidence:
            told += (
                "; tokens are drawn from neither raw nor processed ones: does the server have "
                "settings of its own?"
            )
        return told


@dataclass
class Reported:
    """Judges the records of one file, as they are read.

    * `setting`: Declared: what raw log-probabilities are shaped by.
    * `alpha`: Of each stage.
    * `declared`: "raw" or "processed".
    * `tolerance`: Nats, as in sums.
    """

    setting: Setting
    alpha: float
    declared: str | None
    tolerance: float
    texts: int = 0
    judged: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    bets: dict[str, EntropyMartingale] = field(default_factory=dict)

    def add(self, number: int, record: Mapping[str, Any]) -> None:
        """One record with "logprobs", "top_logprobs" or "faults".

        * raises `ValueError`: Its lists have no form of lists.
        """
        logs, lists = record.get("logprobs"), record.get("top_logprobs")
        given = record.get("faults") or ()
        if lists is None and not given:
            self.texts += logs is not None
            return
        if not isinstance(given, (list, tuple)):
            raise ValueError(f"faults = {given!r}: expected a list of strings")
        told = [str(one) for one in given]
        self.texts += 1
        ids = record["token_ids"]
        if lists is not None:
            if not isinstance(lists, list) or len(lists) != len(ids):
                raise ValueError(f"top_logprobs: expected {len(ids)} lists of [token, number]")
            for place, (token, ranked) in enumerate(zip(ids, lists, strict=True)):
                try:
                    tokens = [int(one) for one, _ in ranked]
                    values = np.array([value for _, value in ranked], dtype=np.float64)
                except (TypeError, ValueError):
                    raise ValueError(
                        f"top_logprobs[{place}]: expected a list of [token, number]"
                    ) from None
                own = float(logs[place]) if logs is not None else math.nan
                told += [
                    f"{fault}, at token {place}"
                    for fault in _faults(token, own, tokens, values, self.tolerance)
                ]
                if self.judged < MOST and token in tokens and (values <= ROUNDING).all():
                    self._bet(values, tokens.index(token))
        for fault in {one.partition(":")[0]: one for one in reversed(told)}.items():
            self.faults[fault[0]] += 1
            self.examples.setdefault(fault[0], f"line {number}:{fault[1].partition(':')[2]}")

    def _bet(self, values: Floats, chosen: int) -> None:
        self.judged += 1
        for stage in STAGES:
            setting = self.setting if stage == "raw" else Setting()
            whole = float(np.exp(values).sum()) > 1 - WHOLE
            if (setting.top_p or 1) < 1 and not whole:
                continue
            law = setting.law(np.maximum(values, -1e3))
            if law[chosen] <= 0 and values[chosen] > values[law > 0].min() - CUT:
                continue
            self.bets.setdefault(stage, EntropyMartingale(self.alpha)).observe(law, chosen)

    def found(self, name: str) -> ReportedLogprobs | None:
        """What was found; None if nothing is reported."""
        if not self.texts:
            return None
        reports = {stage: bet.report() for stage, bet in self.bets.items()}
        return ReportedLogprobs(
            name,
            self.texts,
            dict(self.faults),
            self.examples,
            self.judged,
            {stage: one.log10_evidence for stage, one in reports.items()},
            tuple(stage for stage, one in reports.items() if one.lossy),
            self.declared,
        )


def _faults(
    token: int, own: float, tokens: Sequence[int], values: Floats, tolerance: float
) -> Iterator[str]:
    """What is wrong with one list, the kind before the colon."""
    if not tokens:
        yield "a token without a list of the likeliest: none"
        return
    if not (values <= ROUNDING).all():
        yield f"lists with no logarithm of a probability: {values.max()}"
    if len(set(tokens)) < len(tokens):
        yield "a list with one token twice: it"
    if (np.diff(values) > SAME).any():
        yield "lists that are not in order: one"
    total = float(np.exp(values).sum())
    if total > math.exp(tolerance):
        yield f"lists that add up to more than 1: {total:.3f}"
    if token in tokens:
        listed = float(values[tokens.index(token)])
        if abs(listed - own) > SAME:
            yield f"two values of one token: {own:.3f}, and {listed:.3f} in its list"
    elif own > float(values.min()) + tolerance:
        yield f"a token that its list lacks though it ranks: {own:.3f}"
