"""Groups of whole iterations: two toy models, and other contexts and lookaheads."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from specref.conformance.vectors.cases import Toy, row
from specref.vocabulary import Tokens

ONE_VOCABULARY = ("standard", "block")
BY_TOKEN = ("union", "tli")
BY_TEXT = ("slem", "slrs")
ALL = (*BY_TOKEN, *BY_TEXT)
CITES: Mapping[str, str] = MappingProxyType(
    {
        "standard": "Leviathan et al. 2023, Algorithm 1",
        "block": "Sun et al. 2024, Algorithm 2",
        "union": "Timor et al. 2025, Algorithm 1",
        "tli": "Timor et al. 2025, Algorithm 4",
        "slem": "Timor et al. 2025, Algorithm 2",
        "slrs": "Timor et al. 2025, Algorithm 3",
    }
)


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
