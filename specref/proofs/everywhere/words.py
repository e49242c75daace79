"""Conditions in words: which tell a region apart, and how they read."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.deadline import OutOfTimeError
from specref.proofs.everywhere.polynomials import Polynomial, Product
from specref.proofs.everywhere.rows import Clause, Rows, Space
from specref.proofs.everywhere.slices import Covered, Equation, Lossy

MOST_READINGS = 64


@dataclass(frozen=True)
class Separating:
    """Conditions of a lossy region, as few as exclude each lossless one of its outcome."""

    space: Space
    equations: tuple[Equation, ...]
    clauses: tuple[Clause, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Such as ``p(a) > 97/100``."""
        space = self.space
        equations = (f"{space.name(v)} = {form.show(space.name)}" for v, form in self.equations)
        return (*equations, *(in_words(one, space) for one in self.clauses))

    def hold(self, rows: Rows) -> bool:
        def value(v: int) -> Fraction:
            row, token = self.space.variables[v]
            return rows[row][token]

        try:
            return all(form.at(value) == value(v) for v, form in self.equations) and all(
                signs.of((x > 0) - (x < 0)) & allowed
                for polynomial, allowed in self.clauses
                for x in [polynomial.at(value)]
            )
        except ZeroDivisionError:
            return False


def separating(lossy: Lossy, lossless: Sequence[Covered]) -> Separating:
    """The conditions that tell a lossy region from the lossless ones of its outcome."""
    kept = list(dict(lossy.clauses).items())
    for one in list(kept):
        fewer = [other for other in kept if other != one]
        if all(_excludes(fewer, other) for other in lossless):
            kept = fewer
    return Separating(lossy.sample.chart.space, tuple(lossy.equations), tuple(kept))


def _excludes(clauses: Sequence[Clause], covered: Covered) -> bool:
    allowed: dict[Polynomial, int] = {}
    for polynomial, mask in covered.clauses:
        allowed[polynomial] = allowed.get(polynomial, signs.ANY) & mask
    return any(
        not mask & allowed.get(polynomial, signs.ANY) for polynomial, mask in clauses
    ) or any(all(_excludes(clauses, one) for one in part) for part in covered.parts)


def in_words(one: Clause, space: Space) -> str:
    """A condition, such as ``p(a) > 97/100`` or ``q(b|a) <= p(b|a)``."""
    polynomial, allowed = one
    names: dict[int, str] = {}
    terms, sign = _shortest(polynomial, space, names)
    allowed = allowed if sign > 0 else signs.opposite(allowed)

    def name(v: int) -> str:
        return names.get(v) or space.name(v)

    left = {m: c for m, c in terms if c > 0 and m}
    right = {m: -c for m, c in terms if c < 0 and m}
    constant = dict(terms).get((), 0)
    if not left:
        left, right, constant, allowed = right, left, -constant, signs.opposite(allowed)
    scale = abs(next(iter(left.values()))) if len(left) == 1 else 1
    bound = Fraction(-constant, scale)
    beside = _side(left, scale, name), _side(right, scale, name)
    if not right:
        said = f"{beside[0]} {{}} {bound}"
    elif bound == 0:
        said = f"{beside[0]} {{}} {beside[1]}"
    else:
        plus = f" + {bound}" if bound > 0 else f" - {-bound}"
        said = f"{beside[0]} {{}} {beside[1]}{plus}"
    return said.format(signs.SYMBOLS[allowed])


def _side(terms: dict[polynomials.Monomial, int], scale: int, name: Callable[[int], str]) -> str:
    said = []
    for monomial, coefficient in terms.items():
        factor = Fraction(coefficient, scale)
        named = "·".join(
            f"{name(v)}^{len(list(group))}" if monomial.count(v) > 1 else name(v)
            for v, group in itertools.groupby(monomial)
        )
        said.append(named if factor == 1 else f"{factor}·{named}")
    return " + ".join(said)


def _shortest(
    polynomial: Polynomial, space: Space, names: dict[int, str]
) -> tuple[tuple[tuple[polynomials.Monomial, int], ...], int]:
    """The terms in whichever entries of each row, all but one, make them fewest; and a sign."""
    best = (polynomial.terms, 1)
    choices = []
    for row in sorted(space.rows_of(polynomial)):
        size = len(space.entries(row))
        last = len(space.variables) + space.of_row(row)[0]  # beyond those of the space
        names[last] = space.entry_name(row, size - 1)
        variables = space.of_row(row)
        rest = polynomials.ONE
        for w in (*variables, last):
            rest = polynomials.difference(rest, polynomials.variable(w))
        choices.append(
            [{}, *({v: polynomials.plus(rest, polynomials.variable(v))} for v in variables)]
        )
    for number, chosen in enumerate(itertools.product(*choices)):
        if number == MOST_READINGS:
            break
        values: dict[int, Product] = {}
        for one in chosen:
            values |= one
        try:
            form = polynomials.substituted(polynomial, values)
        except OutOfTimeError:  # one with more terms is true, too
            break
        if form.powers:
            other, sign = polynomials.sign_polynomial(form)
            if len(other.terms) < len(best[0]):
                best = (other.terms, sign)
    return best
