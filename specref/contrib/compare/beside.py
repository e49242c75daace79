"""What is found beside distributions: texts that should be equal, and whether drafts were used.

At temperature 0 two texts may part where two tokens are nearly equally likely, since they round
differently. There the log-probabilities of both tokens say so: what remains is a difference.

Servers ignore fields that they do not know: one that was asked to speculate may not have done so,
and one that was asked not to may have. Without a count nothing is known.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Greedy:
    """Texts at temperature 0 with speculation against those without.

    Attributes
    ----------
    texts, equal : int
    near : int
        Those that part where the two tokens are within the tolerance of each other.
    apart : int
        Those that part where they are not.
    unknown : int
        Those that part where nothing says how likely the tokens are.
    example : str
        Where one parts, the clearest.
    """

    texts: int
    equal: int
    near: int
    apart: int
    unknown: int
    example: str

    def __str__(self) -> str:
        parts = [f"{self.equal:,} of {self.texts:,} texts at temperature 0 are equal"]
        if self.near:
            parts.append(f"{self.near:,} part at near-ties")
        if self.apart:
            parts.append(f"{self.apart:,} DIFFER")
        if self.unknown:
            parts.append(f"{self.unknown:,} part where no log-probability tells of a near-tie")
        return "; ".join(parts) + (f" ({self.example})" if self.example else "")


@dataclass(frozen=True)
class Seeds:
    """Texts that were asked for twice under one seed.

    Attributes
    ----------
    texts, equal : int
    """

    texts: int
    equal: int

    def __str__(self) -> str:
        obeyed = "" if self.equal == self.texts else ": seeds do not settle a text"
        return f"{self.equal:,} of {self.texts:,} came again{obeyed}"


Records = Mapping[tuple[Any, Any], Mapping[str, Any]]


def by_seed(path: Path) -> dict[tuple[Any, Any], Mapping[str, Any]]:
    """The records of a file of `collect`, by prompt and seed."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {(one["prompt_id"], one["seed"]): one for one in map(json.loads, lines)}


def seeds_of(first: Records, again: Records) -> Seeds:
    """How many texts are the same the second time.

    >>> seeds_of({("a", 1): {"token_ids": [3]}}, {("a", 1): {"token_ids": [4]}})
    Seeds(texts=1, equal=0)
    """
    both = first.keys() & again.keys()
    same = [first[key]["token_ids"] == again[key]["token_ids"] for key in both]
    return Seeds(len(both), sum(same))


def greedy_agreement(spec: Records, plain: Records, tolerance: float) -> Greedy:
    """Compare texts prompt by prompt, and say of each that parts whether a near-tie explains it.

    >>> one = {("a", 0): {"token_ids": [3]}}
    >>> other = {("a", 0): {"token_ids": [4], "top_logprobs": [[[4, -0.69], [3, -0.7]]]}}
    >>> greedy_agreement(one, other, 0.1).near
    1
    """
    margins: list[tuple[float, str]] = []
    equal = unknown = 0
    both = [key for key in plain if key in spec]
    for key in both:
        ids = spec[key]["token_ids"], plain[key]["token_ids"]
        place = _parts(*ids)
        if place is None:
            equal += 1
            continue
        tokens = [one[place] if place < len(one) else None for one in ids]
        found = [_margin(one[key], place, tokens, tolerance) for one in (plain, spec)]
        known = [one for one in found if one is not None]
        at = f"prompt {key[0]!r}, token {place + 1}: {tokens[0]} and {tokens[1]}"
        if known:
            margins.append((known[0], f"{at}, {known[0]:.3f} nats apart"))
        else:
            unknown += 1
            margins.append((-1.0, at))
    judged = [margin for margin, _ in margins if margin >= 0]
    apart = sum(margin > tolerance for margin in judged)
    example = max(margins)[1] if margins else ""
    return Greedy(len(both), equal, len(judged) - apart, apart, unknown, example)


def _parts(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first place at which two texts differ, or one of them has ended."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


def _margin(
    record: Mapping[str, Any], place: int, tokens: Sequence[int | None], tolerance: float
) -> float | None:
    """How far apart two tokens are by a record's list at a place, if it says so."""
    lists = record.get("top_logprobs") or []
    if place >= len(lists) or None in tokens:
        return None
    known = {int(token): float(value) for token, value in lists[place]}
    values = [known[one] for one in tokens if one in known]
    if len(values) == 2:
        return abs(values[0] - values[1])
    # A token that the list lacks is less likely than all that are in it.
    least = values[0] - min(known.values()) if values else 0.0
    return least if least > tolerance else None


class Exercised(StrEnum):
    """Whether one side speculated, and the other did not."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass
class Drafts:
    """What the records of one file say of drafts; `add` is told of each.

    * `tokens`, `seconds`: Of records that say how long they took.
    * `units`: What their tokens are known by.
    """

    counted: int = 0
    drafted: int = 0
    tokens: int = 0
    seconds: float = 0.0
    units: set[str] = field(default_factory=set)

    def add(self, number: int, record: Mapping[str, Any]) -> None:
        """Count one record; raise `ValueError` if its count is none."""
        drafted = record.get("drafted")
        if drafted is not None:
            if type(drafted) is not int or drafted < 0:
                raise ValueError(f"drafted = {drafted!r}: expected a number of tokens, or null")
            self.counted += 1
            self.drafted += drafted
        if isinstance(record.get("seconds"), (int, float)):
            self.tokens += len(record["token_ids"])
            self.seconds += record["seconds"]
        unit = str(record.get("unit", "ids"))
        if unit != "nothing":
            self.units.add(unit)


@dataclass(frozen=True)
class Speculation:
    """Drafts of both sides.

    Attributes
    ----------
    exercised : Exercised
    drafted : tuple of (int or None)
        Tokens drafted on each side; None where nothing is counted.
    rates : tuple of (float or None)
        Tokens a second of one request on each side: a hint, nothing more.
    """

    exercised: Exercised
    drafted: tuple[int | None, int | None]
    rates: tuple[float | None, float | None]

    @property
    def why(self) -> str:
        """What is counted, in words."""
        on, off = ("no count" if one is None else f"{one:,}" for one in self.drafted)
        told = f"drafted tokens with speculation: {on}; without: {off}"
        if self.exercised == Exercised.UNKNOWN and None not in self.rates:
            told += f"; tokens a second, a hint: {self.rates[0]:.0f} and {self.rates[1]:.0f}"
        return told


def speculation(on: Drafts, off: Drafts) -> Speculation:
    """Whether the first side drafted and the second did not.

    >>> speculation(Drafts(9, 40), Drafts(9, 0)).exercised
    <Exercised.YES: 'yes'>
    >>> speculation(Drafts(9, 40), Drafts(9, 40)).exercised  # the switch was ignored
    <Exercised.NO: 'no'>
    >>> speculation(Drafts(9, 40), Drafts()).exercised
    <Exercised.UNKNOWN: 'unknown'>
    """
    if len(on.units | off.units) > 1:
        raise ValueError(
            f"tokens are known by {' and '.join(sorted(on.units))} with speculation, and by "
            f"{' and '.join(sorted(off.units))} without: expected one form of answers"
        )
    drafted = tuple(one.drafted if one.counted else None for one in (on, off))
    rates = tuple(one.tokens / one.seconds if one.seconds else None for one in (on, off))
    found = Exercised.UNKNOWN
    if drafted[0] == 0 or drafted[1]:
        found = Exercised.NO
    elif drafted[0] and drafted[1] == 0:
        found = Exercised.YES
    return Speculation(found, (drafted[0], drafted[1]), (rates[0], rates[1]))
