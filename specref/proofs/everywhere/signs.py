"""Sets of signs, as three bits: what may be known of a number before its value is."""

from collections.abc import Iterable

NEGATIVE, ZERO, POSITIVE = 1, 2, 4
NONZERO = NEGATIVE | POSITIVE
AT_MOST_ZERO, AT_LEAST_ZERO = NEGATIVE | ZERO, POSITIVE | ZERO
ANY = NEGATIVE | ZERO | POSITIVE
SYMBOLS = {1: "<", 2: "=", 3: "<=", 4: ">", 5: "!=", 6: ">=", 7: "any", 0: "none"}
_BIT = {-1: NEGATIVE, 0: ZERO, 1: POSITIVE}


def of(sign: int) -> int:
    """The set of one sign, -1, 0 or 1."""
    return _BIT[sign]


def members(signs: int) -> tuple[int, ...]:
    """The signs of a set."""
    return tuple(sign for sign, bit in _BIT.items() if signs & bit)


def _union(signs: Iterable[int]) -> int:
    found = 0
    for sign in signs:
        found |= _BIT[sign]
    return found


_OPPOSITE = [_union(-a for a in members(m)) for m in range(8)]
_TIMES = [
    [_union(a * b for a in members(m) for b in members(n)) for n in range(8)] for m in range(8)
]
_SUMS = {(-1, 1): ANY, (1, -1): ANY}


def _sum_of(m: int, n: int) -> int:
    found = 0
    for a in members(m):
        for b in members(n):
            found |= _SUMS.get((a, b), _BIT[a or b])
    return found


_PLUS = [[_sum_of(m, n) for n in range(8)] for m in range(8)]


def opposite(signs: int) -> int:
    """The signs of -a."""
    return _OPPOSITE[signs]


def times(a: int, b: int) -> int:
    """The signs of a b."""
    return _TIMES[a][b]


def plus(a: int, b: int) -> int:
    """The signs of a + b."""
    return _PLUS[a][b]


def power(signs: int, exponent: int) -> int:
    """The signs of a to a power; a negative one takes for granted that a is not 0."""
    if exponent < 0:
        signs &= NONZERO
    if exponent % 2:
        return signs
    return (POSITIVE if signs & NONZERO else 0) | (signs & ZERO)
