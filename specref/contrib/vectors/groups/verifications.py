"""Groups of cases that verify a row of drafts: the same laws and drafts, and other coins."""

from dataclasses import dataclass
from math import nextafter

from specref.contrib.vectors.cases import Coins
from specref.rules import RULES

VERIFIERS = [rule for rule in RULES.values() if rule.vectors and rule.verify]
BOTH = tuple(rule.name for rule in VERIFIERS)
TOKEN = tuple(rule.name for rule in VERIFIERS if rule.coins == "token by token")
BLOCK = tuple(rule.name for rule in VERIFIERS if rule.coins == "jointly")
ONE = nextafter(1, 0)


@dataclass(frozen=True)
class Group:
    """Laws and drafts, and coins for one case each: their places are ids, so add at the end."""

    slug: str
    comment: str
    p: tuple[str, ...]
    q: tuple[str, ...] | None
    drafts: tuple[int, ...]
    coins: tuple[Coins, ...]
    rules: tuple[str, ...] = BOTH


def around(edge: float) -> tuple[float, float, float]:
    """A number, the double before it and the double after it."""
    return nextafter(edge, 0), edge, nextafter(edge, 1)


def crossed(accepts: tuple[float, ...], finals: tuple[float, ...]) -> tuple[Coins, ...]:
    """Every coin with every last uniform."""
    return tuple(Coins((u,), final) for u in accepts for final in finals)
