"""A number that stands for all its values: a function of the rows, and its value at a sample.

Arithmetic is that of the field of rational functions, whose elements are told apart by their
residues in a random prime field: where two agree there, they are called equal. A comparison is
decided by the sample, and recorded: the run is the same for all rows where all comparisons come
out so.

A rational function whose numerator has degree at most s, and coefficients of at most s bits, is 0
at a random point of a random prime field by accident with probability at most s 2^-214. Its
numerator is no multiple of the prime, but for the at most s / 223 primes of 224 bits that divide
a coefficient, of more than 2^215; and then it is 0 at no more than the share s 2^-223 of all
points, by the lemma of Schwartz and Zippel. A number that passes 64 rounds of the test of Miller
and Rabin is composite with probability at most 2^-128.
"""

import random
import sys
import traceback
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import isinf, isnan, nan
from numbers import Rational
from operator import add, mul, sub, truediv
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np

from specref.distributions import ExactNumber
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.polynomials import Product

BITS = 224
ROUNDS = 64
ACCIDENT = 214
"""A wrong identity of size s has probability at most s 2^-ACCIDENT."""
MOST_COMPARED = 100_000
LARGEST_SIZE = 1_000_000
LARGEST_POWER = 1_000
OPERATIONS = {"+": add, "-": sub, "*": mul, "/": truediv}
EXPECTED = "expected + - * /, whole powers and comparisons, which Fractions have, too"
STALE = "a number of an earlier call is used: expected a rule that keeps nothing between two calls"


@cache
def prime_of(seed: int) -> int:
    """A random prime of 224 bits; the test for it takes milliseconds, so it is kept."""
    rng = random.Random(f"specref everywhere {seed} prime")
    while True:
        number = rng.getrandbits(BITS) | 1 | 1 << (BITS - 1)
        if _is_prime(number, rng):
            return number


def _is_prime(number: int, rng: random.Random) -> bool:
    odd = number - 1
    halvings = (odd & -odd).bit_length() - 1
    odd >>= halvings
    for _ in range(ROUNDS):
        power = pow(rng.randrange(2, number - 1), odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(halvings - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


class NotForAllError(TypeError):
    """A rule does with a number what is not defined for all its values at once.

    * `stack`: Where it did, if that is not where this is raised.
    """

    stack: traceback.StackSummary | None = None


class TieError(Exception):
    """Two numbers are equal at the sample, though not everywhere: another sample is needed."""

    def __init__(self, number: "Number") -> None:
        self.number = number


class Counted(Protocol):
    """Where it is counted which numbers were told apart."""

    mistakes: int


class Reading:
    """What the numbers of one path have in common, or all of one sample.

    A path has a reading of its own, so that it has no number of another: a comparison is recorded
    on the path that makes it.

    * `values`: The sample: variable -> Fraction.
    * `counted`: Where mistakes are counted; here by default.
    * `whole`: That of the sample, of a path's: signs are known to all its paths.
    * `ended`: Whether the path is over, after which its numbers cannot be used.
    * `events` (list of (str, Number, int)): What the present path has done: ``sign`` of a number,
      which is in a set of signs, ``divisor``, and ``weight`` of the branch taken.
    * `mistakes`: If it is counted here, the sum of the sizes of the differences of all numbers
      that were told apart by residues. Each is told apart from 0, 1 and -1 when it is
      made.
    * `raised`: What was raised here last; kept for programs that hide it.
    * `shown`: Where a number was made a text first.
    """

    def __init__(
        self,
        prime: int,
        values: Callable[[int], Fraction],
        counted: Counted | None = None,
        whole: "Reading | None" = None,
    ) -> None:
        self.prime, self.values = prime, values
        self.counted, self.whole = counted or self, whole or self
        self.ended = False
        self.events: list[tuple[str, Number, int]] = []
        self.mistakes = 0
        self.raised: TieError | NotForAllError | None = None
        self.shown: traceback.StackSummary | None = None
        self._signs: dict[int, int] = {}
        self._sizes = 0
        self._constants: dict[Rational | int, Number] = {}

    def of_path(self) -> "Reading":
        return Reading(self.prime, self.values, self.counted, self.whole)

    def taken(self, number: "Number") -> "Number":
        """A number of a path as one of this reading."""
        parts = number.residue, number.operation, number.left, number.right
        return Number(self, *parts, number.nonnegative, number.size, number.known)

    def constant(self, value: Rational | int) -> "Number":
        found = self._constants.get(value)
        if found is None:
            exact = Fraction(value)
            residue = exact.numerator * pow(exact.denominator, -1, self.prime) % self.prime
            size = max(exact.numerator.bit_length(), exact.denominator.bit_length())
            form = polynomials.constant(exact)
            found = Number(self, residue, "leaf", form, None, exact >= 0, size)
            self._constants[value] = found
        return found

    def leaf(
        self, form: Product, residue: int, size: int, value: Fraction | None = None
    ) -> "Number":
        """An entry of a row, which is not negative."""
        return Number(self, residue, "leaf", form, None, True, size, value)

    def refuse(self, message: str) -> NoReturn:
        """Raise `NotForAllError`, and keep it."""
        self.raised = NotForAllError(message)
        raise self.raised

    def sign(self, number: "Number") -> int:
        """The sign at the sample, 0 only if it is 0 everywhere; not recorded."""
        if self.ended:
            self.refuse(STALE)
        residue, whole = number.residue, self.whole
        if residue == 0:
            return 0
        self.counted.mistakes += len(whole._signs) * (number.size + 1) + whole._sizes
        sign = whole._signs.get(residue)
        if sign is None:
            value = number.value
            if value == 0:
                self.raised = TieError(number)
                raise self.raised
            sign = 1 if value > 0 else -1
            whole._signs[residue] = sign
            whole._signs[self.prime - residue] = -sign
            whole._sizes += 2 * number.size
        return sign

    def decide(self, number: "Number", wanted: int) -> bool:
        """Whether the sign of a number is in a set of signs; recorded."""
        if len(self.events) > MOST_COMPARED or number.size > LARGEST_SIZE:
            self.refuse(
                f"more than {MOST_COMPARED:,} comparisons on one path, or a degree above "
                f"{LARGEST_SIZE:,}: expected a rule that ends"
            )
        sign = self.sign(number)
        yes = bool(signs.of(sign) & wanted)
        if number.residue in (0, 1, self.prime - 1):
            return yes
        recorded = wanted if yes else signs.ANY & ~wanted
        if not (number.nonnegative and recorded == signs.AT_LEAST_ZERO):
            self.events.append(("sign", number, recorded))
        return yes


class Number(ExactNumber):
    """A function of the rows, with its value at a sample; see `Reading`."""

    __slots__ = (
        "known",
        "left",
        "nonnegative",
        "operation",
        "reading",
        "residue",
        "right",
        "size",
    )
    __array_priority__: ClassVar[float] = -1.0

    def __init__(
        self,
        reading: Reading,
        residue: int,
        operation: str,
        left: Any,
        right: Any,
        nonnegative: bool,
        size: int,
        value: Fraction | None = None,
    ) -> None:
        self.reading, self.residue, self.operation = reading, residue, operation
        self.left, self.right = left, right
        self.nonnegative, self.size = nonnegative, size
        self.known = value
        reading.counted.mistakes += 3 * (size + 1)

    @property
    def value(self) -> Any:
        if self.known is None:
            if self.operation == "leaf":
                self.known = self.left.at(self.reading.values)
            else:
                self.known = OPERATIONS[self.operation](self.left.value, self.right.value)
        return self.known

    def _number(self, other: Any) -> "Number | None":
        """Another operand as a number; None for an array, whose own operator is to be asked."""
        if self.reading.ended:
            self.reading.refuse(STALE)
        if type(other) is Number:
            if other.reading is not self.reading:
                self.reading.refuse(STALE)
            return other
        if isinstance(other, int | Fraction):
            return self.reading.constant(other)
        if isinstance(other, np.bool_):
            return self.reading.constant(int(other))
        if isinstance(other, Rational):
            return self.reading.constant(Fraction(int(other.numerator), int(other.denominator)))
        if isinstance(other, float | np.floating):
            self.reading.refuse(
                f"arithmetic with the float {other}: write Fraction({str(other)!r}), or divide by "
                "a Fraction"
            )
        if isinstance(other, np.ndarray | np.generic) or type(other).__module__ == "builtins":
            if isinstance(other, complex | np.complexfloating):
                self.reading.refuse(f"arithmetic with {other}: expected a Fraction")
            return None
        self.reading.refuse(
            f"arithmetic or a comparison with a {type(other).__name__}, which may ask what kind "
            "of number this is: expected a Fraction"
        )

    def __add__(self, other: Any) -> "Number":
        number = self._number(other)
        if number is None:
            return NotImplemented
        reading = self.reading
        if number.residue == 0 or self.residue == 0:
            return number if self.residue == 0 else self
        residue = (self.residue + number.residue) % reading.prime
        nonnegative = self.nonnegative and number.nonnegative
        size = self.size + number.size + 1
        return Number(reading, residue, "+", self, number, nonnegative, size)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Number":
        number = self._number(other)
        return NotImplemented if number is None else _minus(self, number)

    def __rsub__(self, other: Any) -> "Number":
        number = self._number(other)
        return NotImplemented if number is None else _minus(number, self)

    def __mul__(self, other: Any) -> "Number":
        number = self._number(other)
        if number is None:
            return NotImplemented
        reading = self.reading
        if number.residue <= 1 or self.residue <= 1:
            return self if number.residue == 1 or self.residue == 0 else number
        residue = self.residue * number.residue % reading.prime
        nonnegative = self.nonnegative and number.nonnegative
        return Number(reading, residue, "*", self, number, nonnegative, self.size + number.size)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Number":
        number = self._number(other)
        return NotImplemented if number is None else _over(self, number)

    def __rtruediv__(self, other: Any) -> "Number":
        number = self._number(other)
        return NotImplemented if number is None else _over(number, self)

    def __pow__(self, exponent: Any) -> "Number":
        if isinstance(exponent, Number) or exponent != int(exponent):
            self.reading.refuse(f"power {exponent}: expected a whole number")
        if abs(exponent) > LARGEST_POWER:
            self.reading.refuse(f"power {exponent}: expected at most {LARGEST_POWER:,}")
        found, power = self.reading.constant(1), self
        for digit in bin(abs(int(exponent)))[:1:-1]:
            found = found * power if digit == "1" else found
            power = power * power
        return found if exponent >= 0 else 1 / found

    def __neg__(self) -> "Number":
        return _minus(self.reading.constant(0), self)

    def __pos__(self) -> "Number":
        return self

    def __abs__(self) -> "Number":
        return self if self >= 0 else -self

    def _compared(self, other: Any, wanted: int) -> Any:
        if type(other) not in (Number, int, Fraction):
            if isinstance(other, complex | np.complexfloating):
                if wanted not in (signs.ZERO, signs.NONZERO):
                    return NotImplemented
                other = other.real if other.imag == 0 else nan
            if isinstance(other, float | np.floating | Decimal):
                if isnan(other):
                    return wanted == signs.NONZERO
                if isinf(other):
                    return bool(signs.of(-1 if other > 0 else 1) & wanted)
                other = Fraction(other if isinstance(other, Decimal) else float(other))
        number = self._number(other)
        if number is None:
            return NotImplemented
        return self.reading.decide(_minus(self, number), wanted)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, signs.NEGATIVE)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, signs.AT_MOST_ZERO)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, signs.POSITIVE)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, signs.AT_LEAST_ZERO)

    def __eq__(self, other: Any) -> Any:
        return self._compared(other, signs.ZERO)

    def __ne__(self, other: Any) -> Any:
        return self._compared(other, signs.NONZERO)

    def __bool__(self) -> bool:
        return self.reading.decide(self, signs.NONZERO)

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        self.reading.refuse(
            f"a number is converted (float, int, round, floor, numerator, exp, log, …): {EXPECTED}"
        )

    __float__ = __int__ = __index__ = __complex__ = __round__ = __floor__ = __ceil__ = _refuse
    __trunc__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __divmod__ = __rdivmod__ = _refuse
    __rpow__ = exp = log = sqrt = log2 = log10 = exp2 = rint = limit_denominator = _refuse
    numerator = denominator = property(_refuse)

    def __copy__(self) -> "Number":
        return self  # a copy of the reading would keep its comparisons for itself

    def __deepcopy__(self, memo: Any) -> "Number":
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.reading.refuse("a number is pickled: expected a rule that runs in one process")

    def __hash__(self) -> int:
        self.reading.refuse(
            "a number is hashed (a key of a dict, a set or a cache): expected a rule that looks "
            "nothing up by the value of a probability; compare it instead"
        )

    def _text(self, spec: str = "") -> str:
        if spec:
            self._refuse()
        # Errors of chance say it, too: a rule that catches them goes on, and is refused.
        if self.reading.shown is None:
            self.reading.shown = traceback.extract_stack(sys._getframe(1))
        return "<a number>"

    __str__ = __repr__ = __format__ = _text


for _name in dir(Fraction):
    # NumPy asks for attributes so often that __getattr__ would take a tenth of the time.
    if not hasattr(Number, _name) and not _name.startswith("__"):
        setattr(Number, _name, property(Number._refuse))


def _minus(left: Number, right: Number) -> Number:
    reading = left.reading
    if right.residue == 0:
        return left
    residue = (left.residue - right.residue) % reading.prime
    return Number(reading, residue, "-", left, right, False, left.size + right.size + 1)


def _over(left: Number, right: Number) -> Number:
    reading = left.reading
    if right.residue == 1:
        return left
    if reading.sign(right) == 0:
        raise ZeroDivisionError("division by 0")
    if not (right.operation == "leaf" and not right.left.powers):
        reading.events.append(("divisor", right, signs.NONZERO))
    residue = left.residue * pow(right.residue, -1, reading.prime) % reading.prime
    # What divides has its sign recorded apart: a quotient of two that are not negative is none.
    nonnegative = left.nonnegative and right.nonnegative
    return Number(reading, residue, "/", left, right, nonnegative, left.size + right.size)
