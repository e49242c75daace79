"""Which blocks rounding allows under given coins of one row, besides the exact one.

An operation of unit u gives its exact result times 1 + d, |d| <= u, and n of them one within
n u / (1 - n u) of it, relatively (Higham 2002, Lemma 3.1). The laws are the numbers that were
given, without an error. All that decides is enclosed accordingly, and a block is possible if some
numbers in these intervals decide it. Operations are those of the definitions: a coin is rounded,
p / q or its product with q, p - q, noise / weight, each sum; logarithms are not among them.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from specref.arrays import Floats, Ints
from specref.contracts.capabilities import Capabilities
from specref.rule import CoinOrder
from specref.statistics.floats.floats import FORMATS

OPERATIONS = 4


class Interval(NamedTuple):
    """Numbers, each from `least` to `most`."""

    least: Floats
    most: Floats


class Arithmetic(NamedTuple):
    """The rounding error of one operation: relative `unit`, and `absolute` for tiny numbers."""

    unit: float
    absolute: float

    def error(self, sums: int = 0) -> float:
        """The relative error of a few operations and `sums` additions; at most a million."""
        cost = min((OPERATIONS + sums) * self.unit, 1 - 1e-6)
        return cost / (1 - cost)

    def around(self, values: Floats) -> Interval:
        """The interval into which rounding may move non-negative numbers; 0 is exact."""
        error, slack = self.error(), np.where(values > 0, self.absolute, 0)
        return Interval(np.maximum(values * (1 - error) - slack, 0), values * (1 + error) + slack)


class Length(NamedTuple):
    """Whether a number of kept drafts is possible, and the weights of the last token then."""

    possible: bool
    weights: Interval


Enclose: TypeAlias = Callable[[Floats, Floats, Ints, Interval, int, Arithmetic], Length]


def arithmetic_of(claims: Capabilities) -> Arithmetic:
    """The arithmetic of float32 for laws in half precision, otherwise that of the laws.

    Rounding p and q costs two units. Code that declares a larger tolerance calculates in low
    precision, with a third of it as unit: `floats.rounding_bound` is about three units.
    """
    given, single = FORMATS[claims.dtype], FORMATS["float32"]
    if claims.tolerance > 2 * given.relative:
        return Arithmetic(claims.tolerance / 3, max(given.absolute, single.absolute))
    return Arithmetic(*min(given, single))


def token_by_token(
    p: Floats, q: Floats, drafts: Ints, coins: Interval, kept: int, arithmetic: Arithmetic
) -> Length:
    """Whether the first `kept` drafts may have coins below p / q, and the next one may not.

    Parameters as for `decided.token_by_token`, but for `coins`, which are enclosed.
    """
    at = np.arange(len(drafts)), drafts
    taken = coins.least * q[at] < p[at]
    refused = coins.most * q[at] >= p[at]
    ends = kept == len(drafts)
    weights = p[kept] if ends else np.maximum(p[kept] - q[kept], 0)
    possible = bool(taken[:kept].all() and (ends or refused[kept]))
    return Length(possible, arithmetic.around(weights if weights.any() else p[kept]))


def jointly(
    p: Floats, q: Floats, drafts: Ints, coins: Interval, kept: int, arithmetic: Arithmetic
) -> Length:
    """Whether the coin of `kept` drafts may be below h, and those of all longer prefixes not.

    Parameters as for `token_by_token`; h is that of `decided.jointly`.
    """
    lengths = list(_prefixes(p, q, drafts, arithmetic))
    taken = kept == 0 or coins.least[kept - 1] < lengths[kept][0].most
    longer = range(kept + 1, len(lengths))
    refused = all(coins.most[n - 1] >= lengths[n][0].least for n in longer)
    weights = lengths[kept][1]
    if not weights.least.any():
        weights = Interval(weights.least, np.maximum(weights.most, p[kept]))
    return Length(bool(taken and refused), weights)


def _prefixes(
    p: Floats, q: Floats, drafts: Ints, arithmetic: Arithmetic
) -> Iterator[tuple[Interval, Interval]]:
    """h of each number of drafts, and the weights of the token that follows."""
    error, survival = arithmetic.error(), Interval(*np.ones((2, 1)))
    for i, x in enumerate(drafts.tolist()):
        excess = Interval(
            np.maximum(survival.least * p[i] * (1 - error) - q[i], 0) * (1 - error),
            np.maximum(survival.most * p[i] * (1 + error) - q[i], 0) * (1 + error),
        )
        yield _stopping(survival, excess, arithmetic), excess
        reached = survival.least * (1 - error), survival.most * (1 + error)
        survival = Interval(*(np.minimum(1, one * p[i, x] / q[i, x]) for one in reached))
    yield survival, arithmetic.around(p[len(drafts)])


def _stopping(survival: Interval, excess: Interval, arithmetic: Arithmetic) -> Interval:
    """S / (S + 1 - P), which grows with S and P; the sums are below 2."""
    error, sums = arithmetic.error(), arithmetic.error(len(excess.least))
    least, most = excess.least.sum() * (1 - sums), excess.most.sum() * (1 + sums)
    below = least + 1 - survival.least + 2 * error
    above = max(most + 1 - survival.most - 2 * error, most)
    return Interval(least / below * (1 - error), most / above * (1 + error) if most else most)


ENCLOSED: Mapping[CoinOrder, Enclose] = MappingProxyType(
    {"token by token": token_by_token, "jointly": jointly}
)


def wins(weights: Interval, race: Interval, token: int, arithmetic: Arithmetic) -> bool:
    """Whether a token may be argmin race / weight.

    Examples
    --------
    >>> exact = Arithmetic(0, 0)
    >>> race = exact.around(np.array([2.0, 1.0]))
    >>> [wins(exact.around(np.array([0.5, 0.5])), race, token, exact) for token in (0, 1)]
    [False, True]
    """
    error = arithmetic.error()
    with np.errstate(divide="ignore", invalid="ignore"):
        latest = np.where(weights.least > 0, race.most / weights.least, np.inf).min()
        earliest = race.least[token] / weights.most[token]
    return bool(weights.most[token] > 0 and earliest * (1 - error) <= latest * (1 + error))


def falls(weights: Interval, final: Interval, token: int, arithmetic: Arithmetic) -> bool:
    """Whether a token may be the one that the inverse CDF gives for `final`.

    Examples
    --------
    >>> exact = Arithmetic(0, 0)
    >>> weights, final = exact.around(np.array([0.5, 1.5])), exact.around(np.array([0.25]))
    >>> [falls(weights, final, token, exact) for token in (0, 1)]
    [False, True]
    """
    error = arithmetic.error(len(weights.least))
    ends = Interval(np.cumsum(weights.least) * (1 - error), np.cumsum(weights.most) * (1 + error))
    start = ends.least[token - 1] if token else 0.0
    least, most = final.least[0] * ends.least[-1], final.most[0] * ends.most[-1]
    return bool(weights.most[token] > 0 and start <= most and least < ends.most[token])
