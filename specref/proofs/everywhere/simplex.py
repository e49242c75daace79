"""Polynomials over rows, in terms of which their signs are seen: those of Bernstein.

Variables of a row are not negative, and what they leave of 1, the rest, is not either. With powers
of (variables + rest), which are 1, a polynomial is made homogeneous in the variables and the rest
of each row. If its coefficients are >= 0 then, so is it, wherever entries are; and it is 0 only
where each of its terms is.
"""

from collections.abc import Callable

from specref.proofs.everywhere import signs
from specref.proofs.everywhere.deadline import look
from specref.proofs.everywhere.polynomials import Polynomial, Terms

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
        return signs.ANY
    found = signs.ZERO
    for coefficient in terms.values():
        found |= signs.POSITIVE if coefficient > 0 else signs.NEGATIVE
    if found == signs.ANY:
        return signs.ANY
    # At each row some variable, or the rest, is not 0; its highest power is in one of the terms.
    corners = 1
    for row in {row_of(v) for v in polynomial.variables}:
        corners *= 1 + sum(row_of(v) == row for v in polynomial.variables)
    pure = sum(len({_row(v, row_of) for v in m}) == len(set(m)) for m in terms)
    return found & signs.NONZERO if pure == corners else found


def _row(v: int, row_of: Callable[[int], object]) -> object:
    return row_of(v if v >= 0 else -1 - v)
