"""Whether drafts were used at all, as far as a server's answers say.

Servers ignore fields that they do not know: one that was asked to speculate may not have done so,
and one that was asked not to may have. Without a count nothing is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Exercised(StrEnum):
    """Whether one side speculated, and the other did not."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass
class Drafts:
    """What the records of one file say of drafts; `add` is told of each.

    * `counted`: Records that have a count of drafted tokens.
    * `drafted`: Those tokens.
    * `tokens`, `seconds`: Of records that say how long they took.
    * `units`: What their tokens are known by.
    """

    counted: int = 0
    drafted: int = 0
    tokens: int = 0
    seconds: float = 0.0
    units: set[str] = field(default_factory=set)

    def add(self, number: int, record: Mapping[str, Any]) -> None:
        """Count one record.

        * raises `ValueError`: Its count is none.
        """
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

    * raises `ValueError`: Tokens of the two sides are known by different things.

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
