"""Lazy random numbers, drawn as late as possible: comparing one is an exact branch.

A uniform remains an interval of its grid. `u < t` splits the interval where the code's own
arithmetic flips, and chance chooses a side with the probability of that side: every threshold
is read from the code, none is searched for among outputs. Arrays of such numbers are NumPy
arrays of dtype object, so that indexing, arithmetic, `where`, `argmin` and the rest work.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partialmethod
from typing import Any, Protocol, TypeAlias

import numpy as np

from specref.probing.source import Call, EscapedError


@dataclass(eq=False)
class Coin:
    """An undrawn random number, and what is known about it.

    * `call`: The call that asked for it.
    * `bits`: It is derived from a uniform multiple of 2^-bits.
    * `exponential`: Whether it is exponential noise, rather than the uniform itself.
    * `low`, `high`: The uniform is at least low 2^-bits and below high 2^-bits.
    * `rate`: Rate of the noise, after races won.
    * `reading`: How the uniform is derived from noise, once it has raced.
    * `lost`: Whether it has lost a race, so that its law is no longer known.
    * `settled`: Its value, if the number was used after its run.
    """

    call: Call
    bits: int
    exponential: bool = False
    low: int = 0
    high: int = field(init=False)
    rate: float = 1.0
    reading: str | None = None
    lost: bool = False
    settled: float | None = None

    def __post_init__(self) -> None:
        self.high = 1 << self.bits

    def value(self, cell: int) -> float:
        """The number, for one multiple of 2^-bits."""
        return _value(cell, self.bits, self.exponential)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value."""
        return _ends(self.low, self.high, self.bits, self.exponential)


def _value(cell: int, bits: int, exponential: bool) -> float:
    return -math.log1p(-max(cell, 0.5) / 2**bits) if exponential else float(cell / 2**bits)


@lru_cache(1024)
def _ends(low: int, high: int, bits: int, exponential: bool) -> tuple[float, float]:
    """Cached: the numbers of a large row have the same, until they are compared."""
    return _value(low, bits, exponential), _value(high - 1, bits, exponential)


def quiet() -> np.errstate:
    """Arithmetic at the ends of an interval says nothing: code may treat errors as it likes."""
    return np.errstate(all="ignore")


Step: TypeAlias = Callable[[float], float]
Order: TypeAlias = Callable[[Any, Any], bool]
MAX_FLOORS = 64


class Comparisons(Protocol):
    """Decides comparisons of lazy numbers; see `tracing.ExactSource`."""

    def decide(self, number: "Lazy", predicate: Callable[[float], bool]) -> bool:
        """Whether the predicate holds, which flips at most once as the number grows."""
        ...

    def less(self, left: "Lazy", right: "Lazy") -> bool:
        """Whether left < right, for numbers of different coins."""
        ...

    def is_running(self) -> bool:
        """Whether the run whose numbers are compared goes on, here."""
        ...

    def outside(self, number: "Lazy") -> float | None:
        """The value of the number if it is used outside its run; None within."""
        ...

    def settled(self, number: "Lazy") -> float:
        """The value of the number, whatever was decided about it in its run."""
        ...


class Lazy:
    """A monotone function of one coin.

    * `steps`: Arithmetic on the number of the coin.
    * `constant`: The value, if it is the same for every number of the coin, such as 0 / E. Most of
      a large vocabulary is that, and needs no coin to be compared.
    """

    __slots__ = ("coin", "comparisons", "constant", "decided", "defined", "steps")

    def __init__(
        self,
        coin: Coin,
        comparisons: Comparisons,
        steps: tuple[Step, ...] = (),
        constant: float | None = None,
    ) -> None:
        self.coin, self.comparisons, self.steps = coin, comparisons, steps
        self.constant = constant
        self.decided: dict[tuple[Order, Any], bool] = {}
        self.defined = False

    @property
    def plain(self) -> float | None:
        """The value of the number if it is used outside its run; None within."""
        return self.comparisons.outside(self)

    def at(self, value: float) -> float:
        """The number for a given value of the coin; the caller is `quiet`, once for many."""
        for step in self.steps:
            value = step(value)
        return value

    def __deepcopy__(self, memo: object) -> "Lazy":
        return self

    def item(self) -> "Lazy":
        """The number itself, as for a NumPy scalar."""
        return self

    def then(self, step: Step) -> "Lazy":
        """The number after one more monotone step of arithmetic."""
        if self.constant is None:
            return Lazy(self.coin, self.comparisons, (*self.steps, step))
        with quiet():
            return self._always(float(step(self.constant)))

    def _always(self, constant: float) -> "Lazy":
        return Lazy(self.coin, self.comparisons, (lambda value: constant,), constant)

    def check_defined(self) -> None:
        """Raise for a function that is NaN at some values: comparisons with it may flip twice.

        * raises `EscapedError`: It is NaN at some values of its coin, and not at others.
        """
        if self.defined:  # at all values that are left, too
            return
        low, high = self.coin.ends
        with quiet():
            undefined = {math.isnan(self.at(value)) for value in (low, (low + high) / 2, high)}
        if len(undefined) > 1:
            raise EscapedError(f"a function of {self.coin.call} that is NaN in places")
        self.defined = undefined == {False}

    def _apply(self, ufunc: Any, other: object, *, reflected: bool = False) -> Any:
        exact = as_number(other)
        if exact is None:
            return NotImplemented
        number = float(exact)
        if reflected:
            result = self.then(lambda value: ufunc(number, value))
        else:
            result = self.then(lambda value: ufunc(value, number))
        if self.constant is None and (number == 0 or math.isinf(number)):
            # A monotone function that is the same at both ends is so between them.
            with quiet():
                first, last = (float(result.at(end)) for end in self.coin.ends)
            return self._always(first) if first == last else result
        return result

    def _one_sign(self) -> "Lazy":
        if self.plain is not None:
            return self
        with quiet():
            low, high = (self.at(end) for end in self.coin.ends)
        if low < 0 < high or high < 0 < low:
            raise EscapedError(f"a function of {self.coin.call} that is not monotone")
        return self

    def __add__(self, other: object) -> Any:
        return self._apply(np.add, other)

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return self._apply(np.subtract, other)

    def __rsub__(self, other: object) -> Any:
        return self._apply(np.subtract, other, reflected=True)

    def __mul__(self, other: object) -> Any:
        return self._apply(np.multiply, other)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        return self._apply(np.true_divide, other)

    def __rtruediv__(self, other: object) -> Any:
        if not self.steps and as_number(other) == 0 and min(self.coin.ends) > 0:
            return self._always(0.0)  # 0 / E, of which a large row of an exponential race is made
        return self._one_sign()._apply(np.true_divide, other, reflected=True)

    def __pow__(self, other: object) -> Any:
        return self._one_sign()._apply(np.power, other)

    def __neg__(self) -> "Lazy":
        return self.then(np.negative)

    def __pos__(self) -> "Lazy":
        return self

    def __abs__(self) -> "Lazy":
        return self._one_sign().then(np.abs)

    # NumPy calls these methods for arrays of objects.

    log = partialmethod(then, np.log)
    log2 = partialmethod(then, np.log2)
    log1p = partialmethod(then, np.log1p)
    exp = partialmethod(then, np.exp)
    expm1 = partialmethod(then, np.expm1)
    sqrt = partialmethod(then, np.sqrt)

    def __lt__(self, other: object) -> Any:
        return self._compare(other, operator.lt, lambda right: self.comparisons.less(self, right))

    def __le__(self, other: object) -> Any:
        return self._compare(
            other, operator.le, lambda right: not self.comparisons.less(right, self)
        )

    def __gt__(self, other: object) -> Any:
        return self._compare(other, operator.gt, lambda right: self.comparisons.less(right, self))

    def __ge__(self, other: object) -> Any:
        return self._compare(
            other, operator.ge, lambda right: not self.comparisons.less(self, right)
        )

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Lazy) and other.constant is not None:
            other = other.constant
        if isinstance(other, Lazy):
            return self is other
        number = as_number(other)
        if number is None:
            return NotImplemented
        return self.constant is not None and self.constant == number

    __hash__ = object.__hash__

    def _compare(self, other: object, order: Order, between: Callable[["Lazy"], bool]) -> Any:
        if isinstance(other, Lazy) and other.constant is not None:
            other = other.constant
        if self.constant is not None:
            number = None if isinstance(other, Lazy) else as_number(other)
            return NotImplemented if number is None else bool(order(self.constant, number))
        if type(other) is float:  # most are, and of a large vocabulary many are equal
            known = self.decided.get((order, other))
            if known is not None and self.comparisons.is_running():
                return known
        plain = self.plain
        if isinstance(other, Lazy) and plain is None and other.plain is None:
            if other is self:
                return bool(order(0, 0))
            if other.coin is self.coin:
                raise EscapedError(f"two numbers made of one, {self.coin.call}, are compared")
            return between(other)
        number = as_number(other)
        if number is None:
            return NotImplemented
        if plain is not None:
            return bool(order(plain, number))
        key = order, number
        known = self.decided.get(key)
        if known is None:
            known = self.decided[key] = self.comparisons.decide(
                self, lambda value: bool(order(self.at(value), number))
            )
        return known

    def __bool__(self) -> bool:
        if (plain := self.plain) is not None:
            return bool(plain)
        return self.comparisons.decide(self, lambda value: bool(self.at(value) != 0))

    def __float__(self) -> float:
        if (plain := self.plain) is not None:
            return float(plain)
        raise EscapedError(f"a number of {self.coin.call} is converted to a float")

    def __int__(self) -> int:
        if (plain := self.plain) is not None:
            return int(plain)
        with quiet():
            first, last = sorted(int(self.at(end)) for end in self.coin.ends)
        if first < 0 or last - first > MAX_FLOORS:
            raise EscapedError(f"a number of {self.coin.call} is converted to an integer")
        return next((k for k in range(first, last) if self < k + 1), last)

    __floor__ = floor = __int__


def as_number(value: object) -> float | Fraction | None:
    """A plain number, of Python, NumPy or a tensor of one element; None for anything else."""
    if isinstance(value, Lazy):
        if value.constant is not None:
            return value.constant
        if (plain := value.plain) is not None:
            return plain
        raise EscapedError(f"numbers of {value.coin.call} are combined")
    if isinstance(value, int | float | np.number | np.bool_ | Fraction):
        return value if isinstance(value, Fraction) else float(value)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return as_number(value.item())
    return None


def bounded(number: Any, low: float, high: float) -> Any:
    """A number clamped to two bounds; a lazy one stays lazy."""
    if not isinstance(number, Lazy):
        return min(max(number, low), high)
    return number.then(lambda value: min(max(value, low), high))
