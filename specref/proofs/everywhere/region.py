"""A region: the conditions under which given paths of a rule run as they did at a sample.

What is claimed of a region. Let y be a completed outcome, and let the weights w of some paths
that lead to it, each with the target's law of what completes its block, sum to p(y) as rational
functions. Then at all rows where the conditions of the region hold, zeros, ties and equal rows
included, the rule emits y with probability at least p(y).

Proof, for rows x, path by path. Follow the path at x, up to its first branch of weight 0, if there
is one. So far all weights are positive, and whatever is asked comes out as at the sample: that is
a condition, or follows from the positive weights and the conditions. Without a branch of weight 0
the path is one of the rule's at x, with its weight. With one it adds nothing, and the function w
is 0 at x, too: it is a product of what is finite, one of them 0; unless something divides that is
0 at x, and then it was checked that w, as reduced, has no pole there and is 0 (`_vanishes`), or x
is excluded by a condition. So the probability of y at x is at least the sum of the functions w at
x, which is p(y).

If that holds for every y, in regions that cover all rows, it is an equality for every y, as both
sides sum to 1. So the paths that do not lead to y need not be looked at.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from specref.proofs.everywhere import signs
from specref.proofs.everywhere.number import Number
from specref.proofs.everywhere.polynomials import Polynomial, Product
from specref.proofs.everywhere.rows import Chart, Clause, Row, Sample

Event: TypeAlias = tuple[str, Number, int]


class Region:
    """Conditions on the free variables of a chart, in the order in which they were met.

    * `given`: What holds of the piece of space that is looked at.
    * `excluded`: Whether clauses exclude each other, as far as that can be told soon.
    * `clauses` (list of (Polynomial, int)): The conditions beyond those given.
    """

    def __init__(
        self,
        chart: Chart,
        sample: Sample,
        given: Iterable[Clause],
        excluded: Callable[[Sequence[Clause]], bool],
    ) -> None:
        self.chart, self.sample, self._excluded = chart, sample, excluded
        self.clauses: list[Clause] = []
        self._known: dict[Polynomial, int] = {}
        self._rows: set[Row] = set()
        for polynomial, allowed in given:
            self._known[polynomial] = self._known.get(polynomial, signs.ANY) & allowed

    def add_path(self, events: list[Event], weight: Product) -> None:
        """Record the conditions of a path that leads to the outcome.

        * `events`: What it did, in order: see `Reading`.
        * `weight`: Its weight, with that of the tokens that complete its block.
        """
        assumed: dict[Polynomial, int] = {}
        divisors: list[Polynomial] = []
        for kind, number, wanted in events:
            if kind == "weight":
                self._assume_positive(self.chart.form(number), assumed)
                continue
            if self._signs(number, assumed) & ~wanted:
                self._require(self.chart.form(number), wanted, assumed)
            if kind == "divisor" and self._signs(number, {}) & signs.ZERO:
                powers = self.chart.form(number).powers.items()
                divisors += [factor for factor, exponent in powers if exponent > 0]
        for factor in divisors:
            if self._of(factor, {}) & signs.ZERO and not self._vanishes(weight, factor):
                self.require(factor, signs.of(self.sample.sign(factor)))

    def known(self, polynomial: Polynomial) -> int:
        """The signs that a polynomial may have in the region."""
        return self._of(polynomial, {})

    def _of(self, polynomial: Polynomial, assumed: Mapping[Polynomial, int]) -> int:
        for row in self.chart.space.rows_of(polynomial):
            if row not in self._rows:
                self._add_row(row)
        known = self._known.get(polynomial, signs.ANY) & self.chart.space.signs(polynomial)
        return known & assumed.get(polynomial, signs.ANY)

    def _add_row(self, row: Row) -> None:
        self._rows.add(row)
        for polynomial, allowed in self.chart.domain(row) or ():
            self._known[polynomial] = self._known.get(polynomial, signs.ANY) & allowed

    def _signs_of(self, form: Product, assumed: Mapping[Polynomial, int]) -> int:
        found = signs.of((form.coefficient > 0) - (form.coefficient < 0))
        for polynomial, exponent in form.powers.items():
            found = signs.times(found, signs.power(self._of(polynomial, assumed), exponent))
        return found

    def _signs(self, number: Number, assumed: Mapping[Polynomial, int]) -> int:
        """The signs that a number may have, from its form or from what it was made of."""
        found = self._signs_of(self.chart.form(number), assumed)
        if found & signs.ZERO and found != signs.ZERO and number.operation in "+-*/":
            left, right = (self._signs(part, assumed) for part in (number.left, number.right))
            if number.operation == "+":
                found &= signs.plus(left, right)
            elif number.operation == "-":
                found &= signs.plus(left, signs.opposite(right))
            else:
                found &= signs.times(left, right if number.operation == "*" else right & 5)
        return found

    def _assume_positive(self, form: Product, assumed: dict[Polynomial, int]) -> None:
        """Note what follows where a weight is positive, which the path takes for granted."""
        unknown = []
        rest = signs.of(1 if form.coefficient > 0 else -1)
        for factor, exponent in form.powers.items():
            possible = self._of(factor, assumed) & signs.NONZERO
            assumed[factor] = possible
            sign = signs.power(possible, exponent)
            if sign == signs.NONZERO:
                unknown.append(factor)
            else:
                rest = signs.times(rest, sign)
        if len(unknown) == 1:
            assumed[unknown[0]] &= rest

    def _require(self, form: Product, wanted: int, assumed: Mapping[Polynomial, int]) -> None:
        """Add conditions on factors from which it follows that the signs are as wanted."""
        rest = signs.of(1 if form.coefficient > 0 else -1)
        loose = []
        for factor, exponent in form.powers.items():
            possible = signs.power(self._of(factor, assumed), exponent)
            if possible in (signs.NEGATIVE, signs.POSITIVE):
                rest = signs.times(rest, possible)
            elif possible in (signs.AT_LEAST_ZERO, signs.AT_MOST_ZERO) and wanted & signs.ZERO:
                rest = signs.times(rest, possible & signs.NONZERO)
            else:
                loose.append((factor, exponent))
        if len(loose) == 1:
            ((factor, exponent),) = loose
            allowed = sum(
                bit
                for bit in (signs.NEGATIVE, signs.ZERO, signs.POSITIVE)
                if not signs.times(rest, signs.power(bit, exponent)) & ~wanted
                and (bit != signs.ZERO or exponent > 0)
            )
            self.require(factor, allowed)
            return
        for factor, exponent in loose or list(form.powers.items()):
            here = signs.of(self.sample.sign(factor))
            if wanted & signs.ZERO and exponent > 0:
                here |= signs.ZERO
            elif wanted == signs.NONZERO:
                here = signs.NONZERO
            self.require(factor, here)

    def _vanishes(self, weight: Product, divisor: Polynomial) -> bool:
        """Whether the weight has no pole, and is 0, where a divisor is."""
        exponent = weight.powers.get(divisor, 0)
        if exponent:
            return exponent > 0
        numerator = [factor for factor, power in weight.powers.items() if power > 0]
        given = [*self._known.items(), (divisor, signs.ZERO)]
        return self._excluded((*given, *((factor, signs.NONZERO) for factor in numerator)))

    def require(self, polynomial: Polynomial, allowed: int) -> None:
        """Add a condition, unless it is known."""
        known = self._of(polynomial, {})
        if known & ~allowed:
            self._known[polynomial] = known & allowed
            self.clauses.append((polynomial, allowed))
