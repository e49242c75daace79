"""Comparisons of two noisy numbers: which of two exponential arrivals comes first.

An exponential race, argmin E / w, and Gumbel's trick, argmax log w - log E, are made of such
comparisons. The earlier of two arrivals is exponential with the sum of their rates, whichever
it was, so that comparing one after the other is exact as long as losers are left alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

from specref.probing.calls import EscapedError
from specref.probing.lazy import Coin, Lazy
from specref.probing.source import READINGS

EARLY, LATE = 2.0**-30, 2.0**6
NEARLY_CERTAIN = 2.0**-29
ANCHORS = (0.5, 1.0, 2.0)
PROPORTIONAL = 1e-7
WIDEST = 60.0


@dataclass(frozen=True)
class Duel:
    """Whether left < right, as a race.

    * `certain`: The answer, if it is the same for nearly all noise.
    * `factor`: Both arrive at once where right's noise is `factor` times left's.
    * `left_if_first`: Whether left < right means that left arrives first.
    """

    certain: bool | None
    factor: float = 1.0
    left_if_first: bool = True
    reading: str = ""

    def first(self, left: Coin, right: Coin) -> float:
        """The probability that left arrives first."""
        return left.rate / (left.rate + self.factor * right.rate)


def duel(left: Lazy, right: Lazy) -> Duel:
    """Read a comparison of two numbers of different coins as an exponential race.

    The caller is `quiet`.

    * raises `EscapedError`: Neither reading of their coins makes it a race, or one has lost or
      been bounded before.
    """
    for number in (left, right):
        number.check_defined()
        coin = number.coin
        if coin.lost:
            raise EscapedError(f"noise of {coin.call} is used again after a race")
        if coin.high - coin.low < 1 << coin.bits:
            raise EscapedError(f"a bounded number of {coin.call} races")
    known = {number.coin.reading for number in (left, right) if not number.coin.exponential}
    if len(known - {None}) == 2:
        raise EscapedError(f"numbers of {left.coin.call} race in two ways")
    for reading in known - {None} or READINGS:
        found = _as_race(left, right, str(reading))
        if found is not None:
            return found
    raise EscapedError(f"numbers of {left.coin.call} are compared, not in an exponential race")


def _value(number: Lazy, reading: str) -> Callable[[float], float]:
    if number.coin.exponential:
        return number.at
    return lambda noise: number.at(READINGS[reading](noise))


def _as_race(left: Lazy, right: Lazy, reading: str) -> Duel | None:
    """The race under a reading of uniforms as noise; None if it is not one."""
    left_value, right_value = _value(left, reading), _value(right, reading)

    def less(x: float, y: float) -> bool:
        return left_value(x) < right_value(y)

    def tie(noise: float) -> float | None:
        value = left_value(noise)
        return _tie(lambda y: value < right_value(y))

    rates = left.coin.rate, right.coin.rate
    lefts = [left_value(x / rates[0]) for x in (EARLY, LATE)]
    rights = [right_value(y / rates[1]) for y in (LATE, EARLY)]
    left_first, *others = (x < y for x in lefts for y in rights)
    if all(other == left_first for other in others):
        return Duel(left_first, reading=reading)
    rough = tie(2.0**-10)
    if rough is None:
        return None
    anchors = [anchor * min(1.0, 2.0**-10 / rough) for anchor in ANCHORS]
    found = tie(anchors[1])
    if found is None:
        return None
    factor = found / anchors[1]
    ends = 1 - PROPORTIONAL / 2, 1 + PROPORTIONAL / 2
    for anchor in (anchors[0], anchors[2]):
        if len({less(anchor, anchor * factor * end) for end in ends}) == 1:
            return None
    return Duel(None, factor, left_first, reading)


def _tie(is_less: Callable[[float], bool]) -> float | None:
    """The noise of right at which the order flips."""
    low, high = -WIDEST, WIDEST
    start = is_less(2.0**low)
    if start == is_less(2.0**high):
        return None
    while high - low > 2.0**-46:
        middle = (low + high) / 2
        low, high = (middle, high) if is_less(2.0**middle) == start else (low, middle)
    return float(2.0 ** ((low + high) / 2))
