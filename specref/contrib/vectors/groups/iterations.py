"""Groups of whole iterations: two toy models, and other contexts and lookaheads."""

from dataclasses import dataclass
from typing import get_args

from specref.contrib.vectors.cases import Toy, row
from specref.rules import RULES, Vocabularies
from specref.vocabulary import Tokens


def _published(vocabularies: Vocabularies) -> tuple[str, ...]:
    rules = (rule for rule in RULES.values() if rule.vectors)
    return tuple(rule.name for rule in rules if rule.vocabularies == vocabularies)


ONE_VOCABULARY, BY_TOKEN, BY_TEXT = map(_published, get_args(Vocabularies))
ALL = (*BY_TOKEN, *BY_TEXT)


@dataclass(frozen=True)
class StepGroup:
    """Two models, and a case for each (context, lookahead): add at the end, places are ids."""

    slug: str
    comment: str
    target: Toy
    drafter: Toy
    places: tuple[tuple[Tokens, int], ...]
    algorithms: tuple[str, ...]


def toy(tokens: str, *rows: str, eos: str | None = None) -> Toy:
    """A toy model: one law, or the law of the start and those after each token.

    Examples
    --------
    >>> toy("a b", "1/2 1/2", "1/1 0/1", "0/1 1/1").rows[1]
    (Fraction(0, 1), Fraction(1, 1))
    """
    first, *others = map(row, rows)
    return Toy(tuple(tokens.split()), {None: first, **dict(enumerate(others))}, eos)


START, THREE = (((), 1), ((), 2)), (((), 1), ((), 2), ((), 3))
AB, ABC = "a b", "a b c"
ORDER_ONE = toy(ABC, "1/3 1/3 1/3", "1/2 1/2 0/1", "1/6 1/2 1/3", "1/3 2/3 0/1")
ORDER_ONE_DRAFTER = toy(ABC, "1/6 2/3 1/6", "2/3 1/3 0/1", "5/6 0/1 1/6", "1/2 1/3 1/6")
EOS = toy("a b $", "1/2 1/4 1/4", "1/4 1/4 1/2", "1/2 0/1 1/2", "1/1 0/1 0/1", eos="$")
EOS_DRAFTER = toy("a b $", "1/4 1/4 1/2", "1/2 1/4 1/4", "1/3 1/3 1/3", "1/1 0/1 0/1", eos="$")
EOS_MOVED = toy("$ b a", "1/2 1/4 1/4", "1/1 0/1 0/1", "1/3 1/3 1/3", "1/4 1/4 1/2", eos="$")
MERGES = toy("a b ab", "1/4 1/4 1/2")
