"""Log-probabilities that a system reports of its own tokens, without a model at hand.

Of two files they are compared with each other: one prompt and one beginning have one distribution,
so a token has one log-probability there, whichever file it is in; and the tokens seen there have
probabilities that add up to 1 at most.

Within one file, lists of likeliest tokens have to be lists of one distribution, with the token
itself where it ranks. And the tokens have to be drawn from it: given that a token is in its list,
its law is the list's own, as it stands ("processed") or after the declared settings ("raw"). Which
tokens are in a list does not depend on the token, so that bets on it are fair
(`EntropyMartingale`).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specref.arrays import Floats, Ints
from specref.contrib.compare.answers import ROUNDING
from specref.contrib.compare.records import Texts, numbered
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
class Agreement:
    """What was compared, and where it differs most.

    Attributes
    ----------
    repeated : int
        Tokens with a log-probability that were seen again after the same beginning.
    apart : int
        How many places and tokens have values that are further apart than the tolerance.
    above : int
        Places at which the probabilities of the tokens seen add up to more than 1.
    tolerance, largest : float
    example : str
        The place of the largest difference.
    """

    repeated: int
    apart: int
    above: int
    tolerance: float
    largest: float
    example: str

    @property
    def agree(self) -> bool:
        return not (self.apart or self.above)

    def __str__(self) -> str:
        if self.agree:
            return (
                f"agree within {self.tolerance:g} nats: {self.repeated:,} tokens seen again "
                "after the same beginning"
            )
        parts = []
        if self.apart:
            parts.append(
                f"DIFFER at {self.apart:,} tokens by more than {self.tolerance:g} nats, most "
                f"{self.example}: another stage, the draft model's, or the residual's?"
            )
        if self.above:
            parts.append(
                f"ADD UP TO MORE THAN 1 after {self.above:,} beginnings: they are not those of "
                "one distribution"
            )
        return "; ".join(parts)


def agreement(spec: Texts, plain: Texts, tolerance: float) -> Agreement | None:
    """Compare what both files report, within so many nats; None where a file reports nothing."""
    if spec.logprobs is None or plain.logprobs is None:
        return None
    ids = {name: index for index, name in enumerate(dict.fromkeys([*spec.ids, *plain.ids]))}
    prompts = np.concatenate(
        [np.array([ids[name] for name in one.ids])[one.prompts] for one in (spec, plain)]
    )
    lengths = np.concatenate([spec.lengths, plain.lengths])
    starts = np.concatenate([spec.starts[:-1], plain.starts[:-1] + len(spec.tokens)])
    tokens = np.concatenate([spec.tokens, plain.tokens])
    values = np.concatenate([spec.logprobs, plain.logprobs])
    repeated = apart = above = 0
    largest, example = 0.0, ""
    place, position = prompts, 0
    span = int(tokens.max()) + 1
    rows = np.arange(len(lengths))
    while len(rows):
        at = starts[rows] + position
        codes, where, _ = numbered(place * span + tokens[at])
        known = ~np.isnan(values[at])
        least, most = _extremes(values[at][known], where[known], len(codes))
        seen = np.bincount(where[known], minlength=len(codes))
        repeated += int(np.maximum(seen - 1, 0).sum())
        spread = np.where(seen > 0, most - least, 0)
        apart += int((spread > tolerance).sum())
        above += _above(codes // span, np.where(seen > 0, least, -np.inf), tolerance)
        if spread.max(initial=0) > largest:
            worst = int(spread.argmax())
            largest = float(spread[worst])
            name = list(ids)[int(prompts[rows[np.flatnonzero(where == worst)[0]]])]
            example = (
                f"{largest:.2f} (prompt {name}, position {position + 1}, token "
                f"{int(codes[worst] % span)}: {least[worst]:.2f} and {most[worst]:.2f})"
            )
        position += 1
        # Only beginnings that several texts share can show anything.
        shared = np.bincount(where, minlength=len(codes))[where] > 1
        going = shared & (lengths[rows] > position)
        rows, place = rows[going], where[going]
    return Agreement(repeated, apart, above, tolerance, largest, example)


def _extremes(values: Floats, where: Ints, size: int) -> tuple[Floats, Floats]:
    """The least and the most value of each kind."""
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(least, where, values)
    np.maximum.at(most, where, values)
    return least, most


def _above(places: Ints, logs: Floats, tolerance: float) -> int:
    """At how many places probabilities add up to more than 1, each as small as reported."""
    kinds, where, _ = numbered(places)
    sums = np.bincount(where, weights=np.exp(logs), minlength=len(kinds))
    return int((sums > np.exp(tolerance)).sum())


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

    `setting` is what raw log-probabilities are shaped by, `alpha` that of each stage, `declared`
    one of `STAGES`; the tolerance is in nats, as in sums.
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
        """One record with "logprobs", "top_logprobs" or "faults"; raise `ValueError` if wrong."""
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
