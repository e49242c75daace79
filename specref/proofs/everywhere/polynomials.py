"""Rational functions as products of powers of polynomials, so that what divides cancels.

A polynomial is a factor of its own: primitive, over the integers, with a positive first
coefficient. Sums are expanded over their common denominator, products are not.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd, isqrt
from typing import TypeAlias

from specref.proofs.everywhere.deadline import look

Monomial: TypeAlias = tuple[int, ...]
"""Variables, sorted, repeated as often as their exponent says."""
LARGEST_END = 10_000
Terms: TypeAlias = dict[Monomial, int]


class Polynomial:
    """A primitive polynomial over the integers: {monomial: coefficient}, sorted."""

    __slots__ = ("__dict__", "_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Polynomial) and self.terms == other.terms)

    @cached_property
    def variables(self) -> frozenset[int]:
        return frozenset(v for monomial, _ in self.terms for v in monomial)

    def at(self, values: Callable[[int], Fraction]) -> Fraction:
        total = Fraction(0)
        for monomial, coefficient in self.terms:
            term = Fraction(coefficient)
            for v in monomial:
                term *= values(v)
            total += term
        return total

    def modulo(self, residues: Callable[[int], int], prime: int) -> int:
        total = 0
        for monomial, coefficient in self.terms:
            term = coefficient
            for v in monomial:
                term = term * residues(v) % prime
            total += term
        return total % prime

    def show(self, name: Callable[[int], str]) -> str:
        shown = ""
        for monomial, coefficient in self.terms:
            sign = "-" if coefficient < 0 else "+"
            size = abs(coefficient)
            names = ([str(size)] if size != 1 or not monomial else []) + [
                name(v) for v in monomial
            ]
            shown += f" {sign} " if shown else sign.replace("+", "")
            shown += "·".join(names)
        return shown

    def __str__(self) -> str:
        return self.show(lambda v: f"x{v}")

    __repr__ = __str__


class Product:
    """A rational function: a coefficient, and powers of primitive polynomials."""

    __slots__ = ("coefficient", "powers")

    def __init__(self, coefficient: Fraction, powers: Mapping[Polynomial, int]) -> None:
        self.coefficient = coefficient
        self.powers = powers if coefficient else {}

    def at(self, values: Callable[[int], Fraction]) -> Fraction:
        """The value at a point where nothing that divides is 0."""
        found = self.coefficient
        for polynomial, exponent in self.powers.items():
            found *= polynomial.at(values) ** exponent
        return found

    def modulo(self, residues: Callable[[int], int], prime: int) -> int:
        found = self.coefficient.numerator * pow(self.coefficient.denominator, -1, prime)
        for polynomial, exponent in self.powers.items():
            found = found * pow(polynomial.modulo(residues, prime), exponent, prime) % prime
        return found % prime

    def show(self, name: Callable[[int], str]) -> str:
        above: list[str] = []
        below: list[str] = []
        for polynomial, exponent in self.powers.items():
            shown = polynomial.show(name)
            shown = f"({shown})" if len(polynomial.terms) > 1 else shown
            (above if exponent > 0 else below).extend([shown] * abs(exponent))
        if self.coefficient.numerator != 1 or not above:
            above.insert(0, str(self.coefficient.numerator))
        if self.coefficient.denominator != 1:
            below.insert(0, str(self.coefficient.denominator))
        divided = "·".join(below)
        return "·".join(above) + (f"/({divided})" if below else "")

    def __str__(self) -> str:
        return self.show(lambda v: f"x{v}")

    __repr__ = __str__


NOTHING = Product(Fraction(0), {})
ONE = Product(Fraction(1), {})


def constant(value: Fraction) -> Product:
    return Product(value, {})


def variable(index: int) -> Product:
    return Product(Fraction(1), {Polynomial((((index,), 1),)): 1})


def times(a: Product, b: Product) -> Product:
    powers = dict(a.powers)
    for polynomial, exponent in b.powers.items():
        added = powers.get(polynomial, 0) + exponent
        if added:
            powers[polynomial] = added
        else:
            powers.pop(polynomial, None)
    return Product(a.coefficient * b.coefficient, powers)


def ratio(a: Product, b: Product) -> Product:
    return times(a, Product(1 / b.coefficient, {p: -e for p, e in b.powers.items()}))


def opposite(a: Product) -> Product:
    return Product(-a.coefficient, a.powers)


def plus(a: Product, b: Product) -> Product:
    """The sum, over the common denominator, with common factors before it."""
    if not a.coefficient:
        return b
    if not b.coefficient:
        return a
    shared = {
        polynomial: exponent
        for polynomial in a.powers.keys() | b.powers.keys()
        if (exponent := min(a.powers.get(polynomial, 0), b.powers.get(polynomial, 0)))
    }
    scale = a.coefficient.denominator * b.coefficient.denominator
    total = _expanded(a, shared, int(a.coefficient * scale))
    for monomial, coefficient in _expanded(b, shared, int(b.coefficient * scale)).items():
        total[monomial] = total.get(monomial, 0) + coefficient
    return times(Product(Fraction(1, scale), shared), product_of(total))


def difference(a: Product, b: Product) -> Product:
    return plus(a, opposite(b))


def product_of(terms: Mapping[Monomial, int]) -> Product:
    """A polynomial as a product: its content, the variables that divide it, and the rest."""
    terms = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    if not terms:
        return NOTHING
    content = gcd(*terms.values())
    shared = _shared(iter(terms))
    rest = sorted((_without(monomial, shared), c // content) for monomial, c in terms.items())
    if rest[0][1] < 0:
        content, rest = -content, [(monomial, -c) for monomial, c in rest]
    found = Product(Fraction(content), {})
    if rest != [((), 1)]:
        found = times(found, _factored(Polynomial(tuple(rest))))
    for v in shared:
        found = times(found, variable(v))
    return found


def sign_polynomial(product: Product) -> tuple[Polynomial, int]:
    """A polynomial and a factor of 1 or -1, which have the sign of a product without poles."""
    terms: Terms = {(): 1 if product.coefficient > 0 else -1}
    for polynomial, exponent in product.powers.items():
        for _ in range(1 if exponent % 2 else 2):
            terms = _multiplied(terms, polynomial)
    content = gcd(*terms.values())
    sign = 1 if min(terms.items())[1] > 0 else -1
    rest = sorted((monomial, sign * c // content) for monomial, c in terms.items() if c)
    return Polynomial(tuple(rest)), sign


def renamed(polynomial: Polynomial, variables: Sequence[int]) -> Polynomial:
    """The polynomial in 0, 1, … for these variables, which are in ascending order."""
    number = {v: index for index, v in enumerate(variables)}
    return Polynomial(
        tuple((tuple(number[v] for v in monomial), c) for monomial, c in polynomial.terms)
    )


def linear_in(polynomial: Polynomial, v: int) -> tuple[Product, Product] | None:
    """A and B of A v + B, where neither has v; None if there is none."""
    if max(monomial.count(v) for monomial, _ in polynomial.terms) > 1:
        return None
    rest, slope = _coefficients(polynomial, v)
    return slope, rest


def substituted(polynomial: Polynomial, values: Mapping[int, Product]) -> Product:
    """The polynomial with functions in place of some variables."""
    if not polynomial.variables & values.keys():
        return Product(Fraction(1), {polynomial: 1})
    kept: Terms = {}
    total = NOTHING
    for monomial, coefficient in polynomial.terms:
        look()
        inside = [v for v in monomial if v in values]
        if not inside:
            kept[monomial] = coefficient
            continue
        term = product_of({tuple(v for v in monomial if v not in values): coefficient})
        for v in inside:
            term = times(term, values[v])
        total = plus(total, term)
    return plus(total, product_of(kept))


def replaced(product: Product, values: Mapping[int, Product]) -> Product:
    """The function with functions in place of some variables; what divides must not become 0."""
    found = constant(product.coefficient)
    for polynomial, exponent in product.powers.items():
        inner = substituted(polynomial, values)
        for _ in range(abs(exponent)):
            found = times(found, inner) if exponent > 0 else ratio(found, inner)
    return found


def _factored(polynomial: Polynomial) -> Product:
    """A polynomial that is linear in some variable, as a product of such as have no factors.

    A factor of A v + B without v divides A and B; without such factors it has none. One that is
    quadratic, with a discriminant that is a square, is the product of two that are linear.
    """
    whole = Product(Fraction(1), {polynomial: 1})
    counts = Counter(v for monomial, _ in polynomial.terms for v in monomial)
    if all(len(monomial) < 2 for monomial, _ in polynomial.terms):
        return whole
    if len(counts) == 1 and max(len(monomial) for monomial, _ in polynomial.terms) > 2:
        return _by_rational_roots(polynomial) or whole
    for v, _ in sorted(counts.items(), key=lambda one: (one[1], one[0])):
        look()
        parts = _coefficients(polynomial, v)
        if len(parts) == 3:
            roots = _linear_factors(parts, v)
            if roots:
                return roots
        if len(parts) != 2:
            continue
        rest, slope = parts
        shared = {
            factor: min(exponent, rest.powers[factor])
            for factor, exponent in slope.powers.items()
            if factor in rest.powers
        }
        if not shared:
            return whole
        common = Product(Fraction(1), shared)
        kept = plus(times(ratio(slope, common), variable(v)), ratio(rest, common))
        return times(common, kept)
    return whole


def _by_rational_roots(polynomial: Polynomial) -> Product | None:
    """A polynomial in one variable with a factor taken out; None without small rational roots."""
    (v,) = polynomial.variables
    terms = {len(monomial): c for monomial, c in polynomial.terms}
    degree = max(terms)
    if 0 not in terms or max(abs(terms[0]), abs(terms[degree])) > LARGEST_END:
        return None
    for below in _divisors(terms[degree]):
        look()
        for above in (sign * one for one in _divisors(terms[0]) for sign in (1, -1)):
            root = Fraction(above, below)
            if gcd(above, below) == 1 and not sum(c * root**k for k, c in terms.items()):
                # Division of the highest power first; by the lemma of Gauss it leaves integers.
                quotient: Terms = {}
                carried = 0
                for k in range(degree, 0, -1):
                    carried = (terms.get(k, 0) + above * carried) // below
                    quotient[(v,) * (k - 1)] = carried
                return times(product_of({(v,): below, (): -above}), product_of(quotient))
    return None


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, abs(number) + 1) if number % one == 0]


def _coefficients(polynomial: Polynomial, v: int) -> list[Product]:
    """What stands before v^0, v^1, …"""
    powers: list[Terms] = []
    for monomial, coefficient in polynomial.terms:
        count = monomial.count(v)
        powers += [{} for _ in range(count + 1 - len(powers))]
        powers[count][_without(monomial, (v,) * count)] = coefficient
    return [product_of(terms) for terms in powers]


def _linear_factors(coefficients: list[Product], v: int) -> Product | None:
    """C + B v + A v^2 as a product, if B^2 - 4 A C is a square."""
    c, b, a = coefficients
    twice = times(a, constant(Fraction(2)))
    discriminant = difference(times(b, b), times(times(twice, c), constant(Fraction(2))))
    root = _square_root(discriminant)
    if root is None:
        return None
    middle = plus(times(twice, variable(v)), b)
    found = times(plus(middle, root), difference(middle, root))
    found = ratio(found, times(twice, constant(Fraction(2))))
    return found if min(found.powers.values()) > 0 else None  # else factors are left in A


def _square_root(product: Product) -> Product | None:
    """The function whose square this is."""
    above, below = product.coefficient.numerator, product.coefficient.denominator
    found = constant(Fraction(isqrt(abs(above)), isqrt(below)))
    if found.coefficient**2 != product.coefficient:
        return None
    for polynomial, exponent in product.powers.items():
        root = Product(Fraction(1), {polynomial: 1})
        if exponent % 2:
            root, exponent = _root_of(polynomial), exponent * 2
        if not root.coefficient:
            return None
        for _ in range(abs(exponent) // 2):
            found = times(found, root) if exponent > 0 else ratio(found, root)
    return found


def _root_of(polynomial: Polynomial) -> Product:
    """The polynomial whose square this is, from its greatest term on; 0 if there is none."""

    def order(monomial: Monomial) -> tuple[int, Monomial]:
        return len(monomial), monomial

    terms = dict(polynomial.terms)
    first = max(terms, key=order)
    half = first[::2]
    size = isqrt(abs(terms[first]))
    root: Terms = {half: size}
    if half != first[1::2] or size**2 != terms[first]:
        return NOTHING
    for _ in terms:
        square: Terms = {}
        for one, c in root.items():
            look()
            for other, d in root.items():
                both = tuple(sorted(one + other))
                square[both] = square.get(both, 0) + c * d
        rest = {m: c for m in terms.keys() | square if (c := terms.get(m, 0) - square.get(m, 0))}
        if not rest:
            return product_of(root)
        last = max(rest, key=order)
        if Counter(half) - Counter(last) or rest[last] % (2 * size):
            return NOTHING
        root[_without(last, half)] = rest[last] // (2 * size)
    return NOTHING


def _expanded(product: Product, without: Mapping[Polynomial, int], scale: int) -> Terms:
    terms: Terms = {(): scale}
    for polynomial in {**product.powers, **without}:
        for _ in range(product.powers.get(polynomial, 0) - without.get(polynomial, 0)):
            terms = _multiplied(terms, polynomial)
    return terms


def _multiplied(terms: Terms, polynomial: Polynomial) -> Terms:
    found: Terms = {}
    for left, a in terms.items():
        look()
        for right, b in polynomial.terms:
            monomial = tuple(sorted(left + right)) if left and right else left or right
            found[monomial] = found.get(monomial, 0) + a * b
    return found


def _shared(monomials: Iterator[Monomial]) -> Monomial:
    """The variables that divide all of these."""
    shared = next(monomials)
    for monomial in monomials:
        if not shared:
            break
        left = list(monomial)
        kept = []
        for v in shared:
            if v in left:
                left.remove(v)
                kept.append(v)
        shared = tuple(kept)
    return shared


def _without(monomial: Monomial, variables: Monomial) -> Monomial:
    left = list(monomial)
    for v in variables:
        left.remove(v)
    return tuple(left)
