"""Sets of signs, as three bits: what may be known of a number before its value is.

Signs of polynomials, and conditions that exclude each other, are seen here without the solver.

In Fourier's and Motzkin's elimination each product of variables is taken for a variable of its
own. What it excludes is excluded; of what it does not exclude nothing is said.

Polynomials over rows are seen in Bernstein's terms. Variables of a row are not negative, and what
they leave of 1, the rest, is not either. With powers of (variables + rest), which are 1, a
polynomial is made homogeneous in the variables and the rest of each row. If its coefficients are
>= 0 then, so is it, wherever entries are; and it is 0 only where each of its terms is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import gcd
from typing import NamedTuple

from specref.proofs.everywhere.deadline import look
from specref.proofs.everywhere.polynomials import Monomial, Polynomial, Terms

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
    return _OPPOSITE[signs]


def times(a: int, b: int) -> int:
    return _TIMES[a][b]


def plus(a: int, b: int) -> int:
    return _PLUS[a][b]


def power(signs: int, exponent: int) -> int:
    """The signs of a to a power; a negative one takes for granted that a is not 0."""
    if exponent < 0:
        signs &= NONZERO
    if exponent % 2:
        return signs
    return (POSITIVE if signs & NONZERO else 0) | (signs & ZERO)


MOST = 100
"""Conditions that an elimination may lead to."""
CONSTANT: Monomial = ()


class Condition(NamedTuple):
    """A sum of products is > 0, or >= 0; and the clauses that it follows from, by number."""

    coefficients: Mapping[Monomial, int]
    strict: bool
    sources: frozenset[int]

    @property
    def cannot_hold(self) -> bool:
        """Whether it says of a constant what is wrong."""
        if self.coefficients.keys() - {CONSTANT}:
            return False
        constant = self.coefficients.get(CONSTANT, 0)
        return constant < 0 or (self.strict and not constant)


def contradiction(clauses: Sequence[tuple[Polynomial, int]]) -> frozenset[int] | None:
    """Clauses that exclude each other, by their numbers; None if none are found.

    That a polynomial is not 0 is not used.
    """
    left = [one for number, clause in enumerate(clauses) for one in _conditions(*clause, number)]
    while True:
        look()
        for one in left:
            if one.cannot_hold:
                return one.sources
        products = {product for one in left for product in one.coefficients} - {CONSTANT}
        if not products:
            return None
        more, product = min((_more(left, product), product) for product in products)
        if len(left) + more > MOST:
            return None
        left = _without(left, product)


def _conditions(polynomial: Polynomial, allowed: int, number: int) -> list[Condition]:
    plus, source = dict(polynomial.terms), frozenset([number])
    minus = {product: -coefficient for product, coefficient in plus.items()}
    strict = not allowed & ZERO
    return [
        Condition(sums, strict, source)
        for sums, least in ((plus, POSITIVE), (minus, NEGATIVE))
        if not allowed & opposite(least)
    ]


def _more(conditions: Sequence[Condition], product: Monomial) -> int:
    """How many conditions more there are without a product."""
    signs_ = [one.coefficients.get(product, 0) for one in conditions]
    above, below = sum(c > 0 for c in signs_), sum(c < 0 for c in signs_)
    return above * below - above - below


def _without(conditions: Sequence[Condition], product: Monomial) -> list[Condition]:
    """What follows for the other products: each lower bound is below each upper one."""
    above = [one for one in conditions if one.coefficients.get(product, 0) > 0]
    below = [one for one in conditions if one.coefficients.get(product, 0) < 0]
    rest = [one for one in conditions if not one.coefficients.get(product)]
    sums: list[Condition] = []
    for one in above:
        look()
        sums += [_sum(one, other, product) for other in below]
    return rest + sums


def _sum(one: Condition, other: Condition, product: Monomial) -> Condition:
    """Two conditions added so that a product is left out."""
    a, b = one.coefficients[product], -other.coefficients[product]
    sums = {
        another: b * one.coefficients.get(another, 0) + a * other.coefficients.get(another, 0)
        for another in sorted(one.coefficients.keys() | other.coefficients.keys())
    }
    size = gcd(*sums.values())
    kept = {another: c // size for another, c in sums.items() if c}
    return Condition(kept, one.strict or other.strict, one.sources | other.sources)


MOST_TERMS = 2_000


def homogeneous(polynomial: Polynomial, row_of: Callable[[int], object]) -> Terms | None:
    """The polynomial in variables and rests of rows; None if that has too many terms."""
    groups: dict[object, list[int]] = {}
    for v in sorted(polynomial.variables):
        groups.setdefault(row_of(v), []).append(v)
    terms: Terms = dict(polynomial.terms)
    for group in groups.values():
        degree = max(sum(v in group for v in monomial) for monomial in terms)
        whole = (-1 - group[0], *group)
        done: Terms = {}
        pending = terms
        while pending:
            grown: Terms = {}
            look()
            for monomial, coefficient in pending.items():
                if sum(v in whole for v in monomial) == degree:
                    done[monomial] = done.get(monomial, 0) + coefficient
                    continue
                for v in whole:
                    more = tuple(sorted((*monomial, v)))
                    grown[more] = grown.get(more, 0) + coefficient
            if len(grown) + len(done) > MOST_TERMS:
                return None
            pending = grown
        terms = {monomial: coefficient for monomial, coefficient in done.items() if coefficient}
    return terms


def signs_over_rows(polynomial: Polynomial, row_of: Callable[[int], object]) -> int:
    """Signs that a polynomial may have where all entries are >= 0, as far as that is seen."""
    terms = homogeneous(polynomial, row_of)
    if terms is None:
        return ANY
    found = ZERO
    for coefficient in terms.values():
        found |= POSITIVE if coefficient > 0 else NEGATIVE
    if found == ANY:
        return ANY
    # At each row some variable, or the rest, is not 0; its highest power is in one of the terms.
    corners = 1
    for row in {row_of(v) for v in polynomial.variables}:
        corners *= 1 + sum(row_of(v) == row for v in polynomial.variables)
    pure = sum(len({_row(v, row_of) for v in m}) == len(set(m)) for m in terms)
    return found & NONZERO if pure == corners else found


def _row(v: int, row_of: Callable[[int], object]) -> object:
    return row_of(v if v >= 0 else -1 - v)
