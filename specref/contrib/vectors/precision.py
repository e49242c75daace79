"""How much precision a case needs: the narrowest floats in which its coins decide the same."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate
from types import MappingProxyType

import numpy as np

from specref.contrib.vectors.cases import VerifyCase
from specref.contrib.vectors.deciding import Outcome
from specref.rules import RULES
from specref.vectors.reading import PRECISIONS

EPSILON: Mapping[str, Fraction] = MappingProxyType(
    {name: Fraction(float(np.finfo(name).eps)) for name in PRECISIONS}
)
SLACK = 64


def precision(case: VerifyCase, outcome: Outcome) -> str:
    """The narrowest of float16, float32 and float64 that decides a case.

    Each comparison is between numbers that are exact there, as are those they come from, or
    its two sides are more than 64 units of rounding apart; and every uniform, read or not, is
    one there as well. Arithmetic is correctly rounded; whether subnormals are kept is no matter.

    * raises `ValueError`: Not even float64 does.
    """
    sides = (
        (coin_numbers(case, outcome), coin_gap(outcome)),
        (final_numbers(case, outcome), final_gap(case, outcome)),
        ([Fraction(1, 3)], race_gap(case, outcome)),
    )
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


def coin_numbers(case: VerifyCase, outcome: Outcome) -> list[Fraction]:
    """The compared coins, their thresholds, and the probabilities that these are made of."""
    numbers = [number for asked in outcome.asked for number in (asked.coin, asked.probability)]
    if RULES[case.rule].coins == "jointly" and len(case.drafted) > 1:
        return numbers + [number for law in (*case.p, *case.laws) for number in law]
    tokens = [(asked.position, case.drafted[asked.position]) for asked in outcome.asked]
    return numbers + [law[i][token] for law in (case.p, case.laws) for i, token in tokens]


def final_numbers(case: VerifyCase, outcome: Outcome) -> list[Fraction]:
    """The last uniform, the edges it is compared with, and the laws that these are made of."""
    place = outcome.accepted
    laws = (case.p[place], *(case.laws[place : place + 1] if outcome.last == "residual" else ()))
    return [Fraction(case.coins.final), *edges(outcome), *(n for law in laws for n in law)]


def coin_gap(outcome: Outcome) -> Fraction:
    """The least distance of a coin from its threshold."""
    gaps = [abs(asked.coin - asked.probability) for asked in outcome.asked]
    return min(gaps, default=Fraction(1))


def final_gap(case: VerifyCase, outcome: Outcome) -> Fraction:
    """The least distance of the last uniform from an edge: of the law, or of [0, 1)."""
    return min(abs(Fraction(case.coins.final) - edge) for edge in edges(outcome))


def edges(outcome: Outcome) -> set[Fraction]:
    """The cumulative probabilities of the last token, from the lowest up and the highest down."""
    return {*accumulate(outcome.law), *accumulate(outcome.law[::-1])}


def inner_edges(outcome: Outcome) -> set[Fraction]:
    """The cumulative probabilities of the last token, strictly between 0 and 1."""
    return {edge for edge in accumulate(outcome.law) if 0 < edge < 1}


def race_gap(case: VerifyCase, outcome: Outcome) -> Fraction:
    """How far the second in the race is behind the first, relatively."""
    law, noise = outcome.law, case.coins.race
    arrivals = sorted(Fraction(noise[t]) / weight for t, weight in enumerate(law) if weight)
    return Fraction(1) if len(arrivals) == 1 else 1 - arrivals[0] / arrivals[1]
