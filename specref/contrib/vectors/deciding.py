"""The outcomes that the coins of a vector decide, exactly and by the algorithm itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.contrib.vectors.cases import Coins, Row, VerifyCase
from specref.distributions import Probability, as_distribution
from specref.models import Model
from specref.vectors import reading
from specref.vectors.by_law import LETTERS, verification
from specref.vocabulary import Tokens, Vocabulary

Draw: TypeAlias = Callable[[Row, Coins, bool], int]
POLICIES: Mapping[str, str] = MappingProxyType(
    dict(zip(reading.POLICIES, ("up_to", "closed"), strict=True))
)


class Asked(NamedTuple):
    """A coin that was compared: with which probability, and what it was."""

    position: int
    probability: Fraction
    coin: Fraction


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    * `accepted`: How many drafts are kept.
    * `last` ({"residual", "bonus"}): Where the last token is from.
    * `law`: Its law.
    * `tokens`: {way to draw it: block}.
    * `asked`: The coins that were compared, in the order of the listing.
    """

    accepted: int
    last: str
    law: Row
    tokens: Mapping[str, Tokens]
    asked: tuple[Asked, ...]


def inverse(law: Row, coins: Coins, closed: bool = False) -> int:
    """The smallest token whose cumulative probability exceeds u (`closed`: reaches it)."""
    u, total = Fraction(coins.final), sum(law)
    ends = list(accumulate(law))
    possible = [token for token, weight in enumerate(law) if weight]
    return next(t for t in possible if ends[t] > u * total or (closed and ends[t] == u * total))


def descending(law: Row, coins: Coins, closed: bool = False) -> int:
    """The inverse CDF from the highest token down."""
    return len(law) - 1 - inverse(law[::-1], coins, closed)


def race(law: Row, coins: Coins, closed: bool = False) -> int:
    """The token with the least noise / weight, among those with weight > 0."""
    arrivals = {t: Fraction(coins.race[t]) / weight for t, weight in enumerate(law) if weight}
    return min(arrivals, key=arrivals.__getitem__)


DRAWS: Mapping[str, Draw] = MappingProxyType(
    dict(zip(reading.DRAWS, (inverse, descending, race), strict=True))
)


class Decided(Chance):
    """A verification under given coins: accepts iff u < probability, or as policies have it."""

    def __init__(
        self, coins: Coins, draw: Draw, up_to: bool = False, closed: bool = False
    ) -> None:
        self.coins, self.how, self.up_to, self.closed = coins, draw, up_to, closed
        self.asked: list[Asked] = []
        self.last = ""
        self.law: Row = ()

    def choose(self, weights: Sequence[Probability], site: str) -> int:
        law: Row = tuple(Fraction(weight) for weight in weights)
        if not site.startswith("accept"):
            self.last, self.law = site, law
            return self.how(law, self.coins, self.closed)
        position, probability = int(site[len("accept[") : -1]), law[1]
        coin = Fraction(self.coins.accept[position])
        self.asked.append(Asked(position, probability, coin))
        return coin < probability or (self.up_to and coin == probability > 0)


def decide(case: VerifyCase, *, up_to: bool = False, closed: bool = False) -> Outcome:
    """The outcome of a case by its rule, for every way to draw the last token.

    * `up_to`: Accept iff u <= probability, but never what is impossible.
    * `closed`: The inverse CDFs stop where a cumulative probability reaches u.
    """
    target = Model(Vocabulary(LETTERS[: len(case.p[0])]), lambda context: case.p[len(context)])
    laws = map(as_distribution, case.laws)
    drafts = [Draft(token, q) for token, q in zip(case.drafted, laws, strict=False)]
    tokens, verify = {}, verification(case.rule)
    for name, draw in DRAWS.items():
        chance = Decided(case.coins, draw, up_to, closed)
        tokens[name] = verify(target, (), drafts, chance)
    accepted = len(tokens["inverse"]) - 1
    return Outcome(accepted, chance.last, chance.law, tokens, tuple(chance.asked))


def alternatives(case: VerifyCase, outcome: Outcome) -> dict[tuple[str, ...], Outcome]:
    """{policies: outcome} of all sets of policies under which a case comes out otherwise."""
    others = {
        names: decide(case, **{POLICIES[name]: True for name in names})
        for number in range(1, len(POLICIES) + 1)
        for names in combinations(POLICIES, number)
    }
    return {names: other for names, other in others.items() if other.tokens != outcome.tokens}
