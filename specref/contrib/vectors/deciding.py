"""The outcomes of cases: those that coins decide, and all those of an iteration of two models.

Exactly, and by the algorithm itself. A case of coins needs as much precision as the narrowest
floats in which they decide the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from specref.algorithms.standard import Draft
from specref.chance import Chance, Step, Traced, enumerate_paths
from specref.contrib.vectors.groups import Coins, Row, StepCase, VerifyCase
from specref.distributions import Probability, as_distribution
from specref.models import Model
from specref.rules import RULES
from specref.vectors import reading
from specref.vectors.by_law import LETTERS, verification
from specref.vectors.reading import PRECISIONS
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


EPSILON: Mapping[str, Fraction] = MappingProxyType(
    {name: Fraction(float(np.finfo(name).eps)) for name in PRECISIONS}
)
SLACK = 64
Side: TypeAlias = tuple[list[Fraction], Fraction]
"""Numbers that are compared, and the least distance of two."""


def precision(case: VerifyCase, outcome: Outcome) -> str:
    """The narrowest of float16, float32 and float64 that decides a case.

    Each comparison is between numbers that are exact there, as are those they come from, or
    its two sides are more than 64 units of rounding apart; and every uniform, read or not, is
    one there as well. Arithmetic is correctly rounded; whether subnormals are kept is no matter.

    * raises `ValueError`: Not even float64 does.
    """
    sides = coins_compared(case, outcome), final_compared(case, outcome), raced(case, outcome)
    uniforms = list(map(Fraction, (*case.coins.accept, case.coins.final)))
    for name, epsilon in EPSILON.items():
        if not all(stays_uniform(u, name) for u in uniforms):
            continue
        exact = [all(is_exact(number, name) for number in numbers) for numbers, _ in sides]
        if all(yes or gap > SLACK * epsilon for yes, (_, gap) in zip(exact, sides, strict=True)):
            return name
    raise ValueError(f"{case.id}: float64 does not decide it")


def is_exact(number: Fraction, name: str) -> bool:
    """Whether a number is 0 or one of these floats, and not a subnormal one."""
    normal = number == 0 or abs(number) >= Fraction(float(np.finfo(name).smallest_normal))
    return normal and rounded(number, name) == number


def rounded(number: Fraction, name: str) -> Fraction:
    """The nearest of these floats."""
    return Fraction(float(np.dtype(name).type(float(number))))


def stays_uniform(u: Fraction, name: str) -> bool:
    """Whether a number in [0, 1) stays there when rounded, 0 only if it was, and not subnormal."""
    least = Fraction(float(np.finfo(name).smallest_normal))
    return u == 0 or (u >= least and rounded(u, name) < 1)


def coins_compared(case: VerifyCase, outcome: Outcome) -> Side:
    """Of coins, thresholds, and the probabilities that these are made of."""
    numbers = [number for asked in outcome.asked for number in (asked.coin, asked.probability)]
    gap = min((abs(one.coin - one.probability) for one in outcome.asked), default=Fraction(1))
    if RULES[case.rule].coins == "jointly" and len(case.drafted) > 1:
        return numbers + [number for law in (*case.p, *case.laws) for number in law], gap
    tokens = [(asked.position, case.drafted[asked.position]) for asked in outcome.asked]
    return numbers + [law[i][token] for law in (case.p, case.laws) for i, token in tokens], gap


def final_compared(case: VerifyCase, outcome: Outcome) -> Side:
    """Of the last uniform, the edges of the law and of [0, 1), and the laws these are made of."""
    place, final = outcome.accepted, Fraction(case.coins.final)
    laws = (case.p[place], *(case.laws[place : place + 1] if outcome.last == "residual" else ()))
    gap = min(abs(final - edge) for edge in edges(outcome))
    return [final, *edges(outcome), *(n for law in laws for n in law)], gap


def edges(outcome: Outcome) -> set[Fraction]:
    """The cumulative probabilities of the last token, from the lowest up and the highest down."""
    return {*accumulate(outcome.law), *accumulate(outcome.law[::-1])}


def inner_edges(outcome: Outcome) -> set[Fraction]:
    """The cumulative probabilities of the last token, strictly between 0 and 1."""
    return {edge for edge in accumulate(outcome.law) if 0 < edge < 1}


def raced(case: VerifyCase, outcome: Outcome) -> Side:
    """Of arrivals, none of which is exact: how far the second is behind the first, relatively."""
    law, noise = outcome.law, case.coins.race
    arrivals = sorted(Fraction(noise[t]) / weight for t, weight in enumerate(law) if weight)
    gap = Fraction(1) if len(arrivals) == 1 else 1 - arrivals[0] / arrivals[1]
    return [Fraction(1, 3)], gap


MOST_REPLAYS = 8


@dataclass(frozen=True)
class Replay:
    """One random path: every decision, the block, and its probability."""

    steps: tuple[Step, ...]
    block: Tokens
    weight: Fraction

    @property
    def shape(self) -> tuple[tuple[str, bool], ...]:
        """Which sites were asked, and what was accepted."""
        return tuple((one.site, is_accept(one) and bool(one.choice)) for one in self.steps)


def is_accept(step: Step) -> bool:
    """Whether a decision is a yes or no."""
    return isinstance(step.choice, bool)


def paths(case: StepCase) -> list[Replay]:
    """Every random path of a case."""
    target, drafter = case.target.model(), case.drafter.model()

    def program(chance: Chance) -> tuple[tuple[Step, ...], Tokens]:
        traced = Traced(chance)
        step = RULES[case.algorithm].step
        block = step(target, drafter, case.context, case.lookahead, traced)
        return tuple(traced.steps), block

    return [Replay(*path.outcome, Fraction(path.weight)) for path in enumerate_paths(program)]


def law(found: Sequence[Replay]) -> dict[Tokens, Fraction]:
    """{block: probability}, the shortest first."""
    total: dict[Tokens, Fraction] = {}
    for path in found:
        total[path.block] = total.get(path.block, Fraction(0)) + path.weight
    return dict(sorted(total.items(), key=lambda item: (len(item[0]), item[0])))


def replays(found: Sequence[Replay]) -> list[Replay]:
    """The likeliest path of each shape, at most eight, in the order of enumeration."""
    likeliest: dict[tuple[tuple[str, bool], ...], Replay] = {}
    for path in found:
        known = likeliest.get(path.shape)
        if known is None or path.weight > known.weight:
            likeliest[path.shape] = path
    return list(likeliest.values())[:MOST_REPLAYS]


def uniform(step: Step) -> float:
    """The middle of the uniforms that lead to a choice: by u < probability, or inverse CDF."""
    if is_accept(step):
        yes = Fraction(step.weights[1])
        return float(yes / 2 if step.choice else (yes + 1) / 2)
    end = sum((Fraction(weight) for weight in step.weights[: step.choice + 1]), Fraction(0))
    return float(end - Fraction(step.weight) / 2)
