"""A `numpy.random.Generator` that takes its numbers from a source in intercepted runs.

Elsewhere, in other threads and after the run, it behaves as an ordinary generator.
"""

import copy
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from specref.probing.calls import CannotInterpretError, here
from specref.probing.interception import current, current_source
from specref.probing.noise_ends import INVERSION_ZERO, ZIGGURAT_ZERO
from specref.probing.source import FLOAT32_BITS, FLOAT64_BITS

MOST_BRANCHES = 1024
REAL = np.random.Generator


class StandsIn(type):
    """Metaclass of stand-in classes: `isinstance` accepts instances of the original class."""

    original: type

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.original)


class ProbedGenerator(REAL, metaclass=StandsIn):
    """A generator that asks the source of the run that is active here, if there is one.

    * `elsewhere`: Called with the name of every method that is called where no run is active.
    """

    original = REAL
    elsewhere: Callable[[str], None] | None = None

    @property
    def bit_generator(self) -> Any:
        """The bit generator; in a run it cannot be interpreted."""
        return _bits_of(self) if current() is None else refusal("Generator.bit_generator")()

    def __deepcopy__(self, memo: dict[int, Any]) -> "ProbedGenerator":
        return ProbedGenerator(copy.deepcopy(_bits_of(self), memo))

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        bits = FLOAT32_BITS if np.dtype(dtype) == np.float32 else FLOAT64_BITS
        shape = out.shape if out is not None and size is None else shape_of(size)
        numbers = current_source().uniforms(here("Generator.random", shape), bits)
        return delivered(numbers, dtype, out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        shape = _shape(size, low, high)
        numbers = current_source().uniforms(here("Generator.uniform", shape))
        return delivered(np.asarray(low)[()] + np.subtract(high, low) * numbers)

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: Any = "zig", out: Any = None
    ) -> Any:
        shape = out.shape if out is not None and size is None else shape_of(size)
        bits = FLOAT32_BITS if np.dtype(dtype) == np.float32 else FLOAT64_BITS
        zero = (INVERSION_ZERO if method == "inv" else ZIGGURAT_ZERO)[bits]
        call = here("Generator.standard_exponential", shape)
        numbers = current_source().exponentials(call, bits, zero)
        return delivered(numbers, dtype, out)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        call = here("Generator.exponential", _shape(size, scale))
        return delivered(current_source().exponentials(call) * scale)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Gumbel noise: minus the logarithm of exponential noise."""
        call = here("Generator.gumbel", _shape(size, loc, scale))
        # random_gumbel draws again where U = 1: it is never infinite.
        return delivered(loc - scale * np.log(current_source().exponentials(call, zero=0.0)))

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: Any = True,
        p: Any = None,
        axis: Any = 0,
        shuffle: Any = True,
    ) -> Any:
        REAL(np.random.PCG64(0)).choice(a, size, replace, p)
        call = here("Generator.choice", shape_of(size))
        if axis:
            raise CannotInterpretError(f"{call}: along axis {axis}")
        items = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        weights = np.ones(len(items)) if p is None else np.array(p, dtype=np.float64)
        picks = []
        for _ in range(int(np.prod(call.shape))):
            picks.append(current_source().categorical(call, weights))
            if not replace:
                weights[picks[-1]] = 0
        if size is None:
            return items[picks[0]]
        return items[np.array(picks, dtype=np.int64).reshape(call.shape)]

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        valid = REAL(np.random.PCG64(0)).multinomial(n, pvals, size)
        call = here("Generator.multinomial", valid.shape)
        if np.ndim(n) or np.ndim(pvals) != 1:
            raise CannotInterpretError(f"{call}: n or pvals has more dimensions")
        weights = np.array(pvals, dtype=np.float64)
        # NumPy ignores the last one: it gets what the others leave.
        weights[-1] = max(0.0, 1 - weights[:-1].sum())
        counts = np.zeros_like(valid)
        for row in np.ndindex(valid.shape[:-1]):
            for _ in range(n):
                counts[(*row, current_source().categorical(call, weights))] += 1
        return counts

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        valid = np.asarray(REAL(np.random.PCG64(0)).binomial(n, p, size))
        call = here("Generator.binomial", valid.shape)
        drawn = np.zeros_like(valid)
        tosses, chances = (np.broadcast_to(given, valid.shape) for given in (n, p))
        for place in np.ndindex(valid.shape):
            weights = [1 - float(chances[place]), float(chances[place])]
            picks = [current_source().categorical(call, weights) for _ in range(tosses[place])]
            drawn[place] = sum(picks)
        return drawn[()]

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: Any = False,
    ) -> Any:
        REAL(np.random.PCG64(0)).integers(low, high, size, dtype, endpoint)
        low, high = (0, low) if high is None else (low, high)
        call = here("Generator.integers", shape_of(size))
        if np.ndim(low) or np.ndim(high):
            raise CannotInterpretError(f"{call}: expected one range of integers")
        number = int(high) - int(low) + int(endpoint)
        if number > MOST_BRANCHES and call.shape == ():
            return low + current_source().seed(call, number)
        if number > MOST_BRANCHES:
            raise CannotInterpretError(f"{call}: expected at most {MOST_BRANCHES} integers")
        drawn = np.empty(call.shape, dtype=dtype)
        for place in np.ndindex(call.shape):
            drawn[place] = low + current_source().categorical(call, [1.0] * number)
        return drawn[()]

    def spawn(self, n_children: int) -> list[Any]:
        return [ProbedGenerator(bits) for bits in _bits_of(self).spawn(n_children)]


def refusal(name: str) -> Callable[..., NoReturn]:
    """A function that raises `CannotInterpretError`."""

    def refuse(*arguments: object, **named: object) -> NoReturn:
        raise CannotInterpretError(f"{here(name)} has no exact reading")

    return refuse


def _bits_of(generator: REAL) -> Any:
    return REAL.bit_generator.__get__(generator)


def _either(name: str, intercepted: Callable[..., Any]) -> Callable[..., Any]:
    original = getattr(REAL, name)

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        if current() is not None:
            return intercepted(self, *arguments, **named)
        if self.elsewhere is not None:
            self.elsewhere(f"Generator.{name}")
        return original(self, *arguments, **named)

    return method


def _wrap_all() -> None:
    for name in dir(REAL):
        if not name.startswith("_") and name != "bit_generator":
            intercepted = vars(ProbedGenerator).get(name) or refusal(f"Generator.{name}")
            setattr(ProbedGenerator, name, _either(name, intercepted))


_wrap_all()


def is_intercepted(rng: np.random.Generator) -> bool:
    """Whether a generator takes its numbers from a source in this run."""
    return issubclass(type(rng), ProbedGenerator) and current() is not None


def shape_of(size: Any) -> tuple[int, ...]:
    """The shape that NumPy's `size` stands for."""
    if size is None:
        return ()
    return tuple(int(n) for n in size) if np.ndim(size) else (int(size),)


def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    return np.broadcast_shapes(*map(np.shape, parameters)) if size is None else shape_of(size)


def delivered(numbers: Any, dtype: Any = np.float64, out: Any = None) -> Any:
    """Numbers as a generator returns them: a scalar for shape ()."""
    if out is not None:
        out[...] = numbers
        return out
    array = np.asarray(numbers)
    array = array if array.dtype == object else array.astype(dtype)
    return array.item() if array.shape == () else array
