"""The space of all rows, and charts of it: which entries are free, and which follow from them.

A row of V entries has V - 1 variables; the last entry is what they leave of 1. A chart solves an
equation between entries for one of them, such as p(a) = 0 or p(a) = q(a), so that what is equal
there is equal as functions.
"""

import random
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from specref.distributions import Probabilities
from specref.models import Model, check_ids
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.number import Number, Reading, prime_of
from specref.proofs.everywhere.polynomials import Polynomial, Product
from specref.proofs.everywhere.signs import signs_over_rows
from specref.vocabulary import Tokens, Vocabulary

Clause: TypeAlias = tuple[Polynomial, int]
"""A polynomial, and the set of the signs that it may have."""
Letter: TypeAlias = Literal["p", "q"]
Rows: TypeAlias = "dict[Row, list[Fraction]]"
LARGEST = 99
OPERATIONS = {
    "+": polynomials.plus,
    "-": polynomials.difference,
    "*": polynomials.times,
    "/": polynomials.ratio,
}


class Row(NamedTuple):
    """A row: the target's (p) or the drafter's (q), after a context."""

    letter: Letter
    context: Tokens


class Space:
    """All rows of a target and a drafter, created where they are asked for."""

    def __init__(self, target: Vocabulary, drafter: Vocabulary, seed: int) -> None:
        self.vocabularies: dict[Letter, Vocabulary] = {"p": target, "q": drafter}
        self.target = target
        self.seed = seed
        self.prime = prime_of(seed)
        self.variables: list[tuple[Row, int]] = []
        self._rows: dict[Row, tuple[Product, ...]] = {}
        self._rows_of: dict[Polynomial, frozenset[Row]] = {}
        self._signs: dict[Polynomial, int] = {}

    def entries(self, row: Row) -> tuple[Product, ...]:
        if row not in self._rows:
            first, size = len(self.variables), len(self.vocabularies[row.letter])
            self.variables += [(row, token) for token in range(size - 1)]
            free = [polynomials.variable(v) for v in range(first, first + size - 1)]
            last = polynomials.ONE
            for entry in free:
                last = polynomials.difference(last, entry)
            self._rows[row] = (*free, last)
        return self._rows[row]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that were asked for."""
        return tuple(self._rows)

    def of_row(self, row: Row) -> list[int]:
        return [v for entry in self.entries(row)[:-1] for v in next(iter(entry.powers)).variables]

    def rows_of(self, polynomial: Polynomial) -> frozenset[Row]:
        if polynomial not in self._rows_of:
            rows = frozenset(self.variables[v][0] for v in polynomial.variables)
            self._rows_of[polynomial] = rows
        return self._rows_of[polynomial]

    def row_of(self, v: int) -> Row:
        return self.variables[v][0]

    def signs(self, polynomial: Polynomial) -> int:
        """The signs that a polynomial may have, as far as that is seen."""
        if polynomial not in self._signs:
            self._signs[polynomial] = signs_over_rows(polynomial, self.row_of)
        return self._signs[polynomial]

    def name(self, v: int) -> str:
        """What a variable is called: p(b|a) is the target's probability of b after a."""
        row, token = self.variables[v]
        return self.entry_name(row, token)

    def entry_name(self, row: Row, token: int) -> str:
        text = str(self.vocabularies[row.letter].tokens[token])
        said = self.vocabularies[row.letter]
        after = " ".join(str(said.tokens[t]) for t in row.context)
        return f"{row.letter}({text}|{after})" if after else f"{row.letter}({text})"


class Chart:
    """Rows of a space, with some variables solved for; residues and forms of its numbers.

    * `solved`: {variable: function of the others}.
    * `forms`: {residue: `Product`}, of all numbers that were looked at.
    """

    def __init__(self, space: Space, solved: Mapping[int, Product]) -> None:
        self.space, self.solved = space, dict(solved)
        self.forms: dict[int, Product] = {}
        self._sizes = 0
        self._domains: dict[Row, tuple[Clause, ...] | None] = {}
        self._residues: dict[int, int] = {}
        self._entries: dict[Row, tuple[Product, ...]] = {}
        self._leaves: dict[Row, tuple[tuple[Product, int, int], ...]] = {}

    def residue(self, v: int) -> int:
        """A variable at the random point of the field."""
        if v not in self._residues:
            if v in self.solved:
                found = self.solved[v].modulo(self.residue, self.space.prime)
            else:
                key = f"specref everywhere {self.space.seed} residue {self.space.variables[v]}"
                found = random.Random(key).randrange(self.space.prime)
            self._residues[v] = found
        return self._residues[v]

    def entries(self, row: Row) -> tuple[Product, ...]:
        if row not in self._entries:
            found = self.space.entries(row)
            if self.solved:
                found = tuple(polynomials.replaced(entry, self.solved) for entry in found)
            self._entries[row] = found
        return self._entries[row]

    def leaves(self, row: Row) -> tuple[tuple[Product, int, int], ...]:
        """The entries of a row with their residues and sizes."""
        if row not in self._leaves:
            self._leaves[row] = tuple(
                (form, form.modulo(self.residue, self.space.prime), size_of(form))
                for form in self.entries(row)
            )
        return self._leaves[row]

    def known(self, polynomial: Polynomial) -> int:
        """The signs that a polynomial may have, by itself or as an entry."""
        for row in self.space.rows_of(polynomial):
            for entry in self.entries(row):
                if entry.powers.get(polynomial) == 1 == len(entry.powers):
                    known = signs.AT_LEAST_ZERO
                    return known if entry.coefficient > 0 else signs.opposite(known)
        return self.space.signs(polynomial)

    def domain(self, row: Row) -> tuple[Clause, ...] | None:
        """That the entries of a row are not negative; None if one is."""
        if row not in self._domains:
            clauses: list[Clause] = []
            for entry in self.entries(row):
                if len(entry.powers) == 1:
                    clauses.append(clause(entry, signs.AT_LEAST_ZERO))
                    continue
                found = conditions(entry, signs.AT_LEAST_ZERO, self.known)
                if found is None:
                    self._domains[row] = None
                    break
                clauses += found.clauses
                if found.rest:
                    clauses.append(clause(*found.rest))
            else:
                self._domains[row] = tuple(clauses)
        return self._domains[row]

    def form(self, number: Number) -> Product:
        """A number as a product of polynomials in the free variables."""
        number.reading.counted.mistakes += len(self.forms) * (number.size + 1) + self._sizes
        found = self.forms.get(number.residue)
        if found is None:
            if number.operation == "leaf":
                found = number.left
            else:
                left, right = self.form(number.left), self.form(number.right)
                found = OPERATIONS[number.operation](left, right)
            self.forms[number.residue] = found
            self._sizes += number.size
        return found


class Sample:
    """Rational rows: what is given of the free variables, random rows for the rest."""

    def __init__(self, chart: Chart, given: Mapping[int, Fraction], key: str) -> None:
        self.chart, self.key = chart, key
        self._values: dict[int, Fraction] = dict(given)
        self.signs: dict[Polynomial, int] = {}

    def value(self, v: int) -> Fraction:
        found = self._values.get(v)
        if found is None:
            if v in self.chart.solved:
                found = self._values[v] = self.chart.solved[v].at(self.value)
            else:
                row, _ = self.chart.space.variables[v]
                drawn = random_row(f"{self.key} {row}", len(self.chart.space.entries(row)))
                for index, value in zip(self.chart.space.of_row(row), drawn, strict=False):
                    self._values.setdefault(index, value)
                found = self._values[v]
        return found

    def sign(self, polynomial: Polynomial) -> int:
        sign = self.signs.get(polynomial)
        if sign is None:
            value = polynomial.at(self.value)
            sign = self.signs[polynomial] = (value > 0) - (value < 0)
        return sign

    def row(self, row: Row) -> list[Fraction]:
        return [entry.at(self.value) for entry in self.chart.space.entries(row)]


class _Rows(Model):
    """A model of one path, whose rows have numbers of their own, and are no arrays in use."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        numbers: Callable[[Tokens], list[Number]],
        array: Callable[[Tokens], Probabilities],
    ) -> None:
        super().__init__(vocabulary, numbers)
        self._numbers, self._array = numbers, array
        self._known: dict[Tokens, Probabilities] = {}

    def next_token(self, context: Sequence[int]) -> Probabilities:
        context = tuple(context)
        if context not in self._known:
            check_ids(context, "context")
            self.vocabulary.check(context, "context")
            row = self._array(context)
            row.flags.writeable = True
            for token, number in enumerate(self._numbers(context)):
                row[token] = number
            row.flags.writeable = False
            self._known[context] = row
        return self._known[context]


class Entry(NamedTuple):
    """An entry of a row: what it is on a chart, and at a sample."""

    form: Product
    residue: int
    size: int
    value: Fraction


class Models:
    """Target and drafter at a sample.

    * `path`: Of the path that is followed: it gets models, rows and numbers of its own, so that
      nothing which a rule remembers by the identity of an object outlives the path.
    """

    def __init__(self, chart: Chart, reading: Reading) -> None:
        self.chart, self.reading, self.path = chart, reading, reading
        self.vocabularies = chart.space.vocabularies
        self.rows: dict[Row, tuple[Entry, ...]] = {}
        self._arrays: dict[Row, Probabilities] = {}

    def entries(self, row: Row) -> tuple[Entry, ...]:
        if row not in self.rows:
            self.rows[row] = tuple(
                Entry(*leaf, leaf[0].at(self.reading.values)) for leaf in self.chart.leaves(row)
            )
        return self.rows[row]

    def model(self, letter: Letter, reading: Reading | None = None) -> Model:
        """A model that nothing was asked yet, with numbers of a reading."""

        def numbers(context: Tokens) -> list[Number]:
            return self.numbers(Row(letter, context), reading)

        def array(context: Tokens) -> Probabilities:
            return self._array(Row(letter, context))

        return _Rows(self.vocabularies[letter], numbers, array)

    def _array(self, row: Row) -> Probabilities:
        """The array of an earlier path, if nobody has it any more; else another one.

        Python, too, gives the id of an object that is gone to a new one, but does not always.
        A rule that remembers ids would be seen by chance; by this it is seen.
        """
        if row in self._arrays:
            gone = _references(self._arrays[row]) == ALONE
            if gone and not weakref.getweakrefcount(self._arrays[row]):
                return self._arrays[row]
        self._arrays[row] = np.empty(len(self.vocabularies[row.letter]), dtype=object)
        return self._arrays[row]

    def sampled(self, letter: Letter) -> Model:
        """A model with the fractions of the sample."""

        def next_token(context: Tokens) -> list[Fraction]:
            return [entry.value for entry in self.entries(Row(letter, context))]

        return Model(self.vocabularies[letter], next_token)

    def numbers(self, row: Row, reading: Reading | None = None) -> list[Number]:
        return [(reading or self.reading).leaf(*entry) for entry in self.entries(row)]

    def said(self, context: Tokens, tokens: Tokens) -> Number:
        """The target's probability of some tokens after a context."""
        law = self.reading.constant(1)
        for index, token in enumerate(tokens):
            law = law * self.numbers(Row("p", (*context, *tokens[:index])))[token]
        return law


def _references(array: Probabilities) -> int:
    return sys.getrefcount(array) if hasattr(sys, "getrefcount") else 0


_KEPT = {0: np.empty(0)}
ALONE = _references(_KEPT[0])
"""References to an array that is in one dictionary alone; 0 where they are not counted."""


def clause(form: Product, allowed: int) -> Clause:
    """That the sign of a function without poles is among those allowed."""
    polynomial, sign = polynomials.sign_polynomial(form)
    return polynomial, allowed if sign > 0 else signs.opposite(allowed)


class Conditions(NamedTuple):
    """Conditions on single polynomials, and one on a product of several."""

    clauses: tuple[Clause, ...]
    rest: tuple[Product, int] | None


def conditions(
    form: Product, allowed: int, known: Callable[[Polynomial], int]
) -> Conditions | None:
    """That the sign of a function without poles is among those allowed, by its factors.

    None if it cannot be. `known` says which signs a polynomial may have; a factor whose sign is
    certain is left out, and where the function is not 0, no factor is.
    """
    rest = signs.of((form.coefficient > 0) - (form.coefficient < 0))
    clauses: list[Clause] = []
    loose: dict[Polynomial, int] = {}
    possible = rest
    for factor, exponent in form.powers.items():
        before = known(factor)
        if not allowed & signs.ZERO:
            clauses.append((factor, signs.NONZERO))
            before &= signs.NONZERO
        sign = signs.power(before, exponent)
        possible = signs.times(possible, sign)
        if sign in (signs.NEGATIVE, signs.POSITIVE):
            rest = signs.times(rest, sign)
        else:
            loose[factor] = exponent
    if not possible & allowed:
        return None
    clauses = [one for one in clauses if known(one[0]) & signs.ZERO or one[0] in loose]
    clauses = [(one, allowed & known(one)) for one, allowed in clauses]
    if not possible & ~allowed:
        return Conditions(tuple(clauses), None)
    if len(loose) == 1:
        ((factor, exponent),) = loose.items()
        wanted = sum(
            bit
            for bit in (signs.NEGATIVE, signs.ZERO, signs.POSITIVE)
            if signs.times(rest, signs.power(bit, exponent)) & allowed
            and (bit != signs.ZERO or exponent > 0)
        )
        return Conditions((*clauses, (factor, wanted)), None)
    coefficient = Fraction(1 if rest == signs.POSITIVE else -1)
    return Conditions(tuple(clauses), (Product(coefficient, loose), allowed))


def row_name(row: Row, target: Vocabulary, drafter: Vocabulary) -> str:
    """A row with the tokens after which it is.

    Examples
    --------
    >>> row_name(Row("q", (1, 0)), Vocabulary("abc"), Vocabulary("xy"))
    'q(·|y x)'
    """
    tokens = (target if row.letter == "p" else drafter).tokens
    after = " ".join(str(tokens[token]) for token in row.context)
    return f"{row.letter}(·|{after})" if after else f"{row.letter}(·)"


def spelled_rows(rows: Rows, target: Vocabulary, drafter: Vocabulary) -> str:
    """Rows in words, such as ``p(·|a) = (1, 0)``."""
    said = (
        f"{row_name(row, target, drafter)} = ({', '.join(map(str, law))})"
        for row, law in rows.items()
    )
    return ", ".join(said) or "uniform rows"


def random_row(key: str, size: int) -> list[Fraction]:
    """Positive fractions that sum to 1, a function of the key."""
    rng = random.Random(key)
    weights = [rng.randint(1, LARGEST) for _ in range(size)]
    return [Fraction(weight, sum(weights)) for weight in weights]


def size_of(form: Product) -> int:
    """A bound of the degree, and of the bits of the coefficients, above and below."""
    size = max(form.coefficient.numerator.bit_length(), form.coefficient.denominator.bit_length())
    for polynomial, exponent in form.powers.items():
        degree = max(len(monomial) for monomial, _ in polynomial.terms)
        bits = sum(abs(coefficient) for _, coefficient in polynomial.terms).bit_length()
        size += abs(exponent) * max(degree, bits)
    return size
