"""Random numbers of NumPy and Python, taken from the source of a run.

In a run, attributes of `numpy.random` and `random` are replaced, but not in other threads:
`numpy.random.default_rng` and `numpy.random.Generator` make generators that ask the source, and
so do some functions of `numpy.random`, `random.random` and `random.choices`. Seeds are ignored
in a run; other random functions raise. Elsewhere, in other threads and after the run, all behave
as ever.
"""

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn

import numpy as np

from specref.probing.source import (
    FLOAT32_BITS,
    FLOAT64_BITS,
    INVERSION_ZERO,
    ZIGGURAT_ZERO,
    CannotInterpretError,
    current,
    current_source,
    here,
    is_importing,
)

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


class Either:
    """A random function that is intercepted in runs, and unchanged everywhere else."""

    __slots__ = ("__name__", "__wrapped__")

    def __init__(self, original: Callable[..., Any]) -> None:
        self.__wrapped__ = original
        self.__name__ = getattr(original, "__name__", type(original).__name__)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the replacement of the active run, or the original function."""
        here = current()
        original = self.__wrapped__
        answer = original if here is None else here.answers.get(id(original), original)
        return answer(*arguments, **named)


MODULES = (np.random, random)
STATES = frozenset({"get_state", "getstate"})
SEEDS = ("seed", "set_state", "setstate")


class Watched(ModuleType):
    """A module whose functions appear as their stand-ins in the active run."""

    def __getattribute__(self, name: str) -> Any:
        value = ModuleType.__getattribute__(self, name)  # self is watched until another run ends
        interception = current()
        if interception is None or id(value) not in interception.answers:
            return value
        return stand_in(value)


def is_random(value: Any) -> bool:
    """Whether a value is a generator, a random function or class, or a stand-in for one."""
    named = id(value) in FUNCTIONS or id(value) in CLASSES
    return named or issubclass(type(value), REAL) or stands_in(value)


def stands_in(value: Any) -> bool:
    """Whether a value is a stand-in for a generator, or for a random function or class."""
    known = issubclass(type(value), (ProbedGenerator, Either))
    return known or any(value is one for one in CLASSES.values())


def stand_in(value: Any) -> Any:
    """The stand-in of a generator, or of a random function or class; the same for all runs."""
    if issubclass(type(value), REAL):
        return ProbedGenerator(value.bit_generator)
    return CLASSES.get(id(value)) or Either(value)


def _guarded(original: type, name: str) -> type:
    """A class that raises when it is used in a run, except by modules that are being imported."""

    def new(cls: type, *arguments: object, **named: object) -> object:
        if cls is not guarded:
            return original.__new__(cls, *arguments)
        if current() is not None and not is_importing():
            raise CannotInterpretError(f"{here(name)} has no exact reading")
        return original(*arguments, **named)

    guarded: type = StandsIn(
        original.__name__, (original,), {"__new__": new, "original": original}
    )
    return guarded


CLASSES: Mapping[int, type] = MappingProxyType(
    {
        id(np.random.Generator): ProbedGenerator,
        **{
            id(original): _guarded(original, f"{module.__name__}.{original.__name__}")
            for module, original in (
                (np.random, np.random.RandomState),
                (random, random.Random),
                (random, random.SystemRandom),
            )
        },
    }
)
"""{id of a class: its stand-in in runs}."""

FUNCTIONS = frozenset(
    id(vars(module)[name])
    for module in MODULES
    for name in module.__all__
    if name not in STATES and not isinstance(vars(module)[name], type)
)
"""The ids of all random functions."""


def replacements(generator: ProbedGenerator) -> dict[int, Any]:
    """{id of a function or class of numpy.random or random: its replacement}.

    * `generator`: The generator that functions of `numpy.random` use.
    """
    answers: dict[int, Any] = dict(CLASSES)
    for module in MODULES:
        known = _legacy(generator) if module is np.random else dict(_python())
        for name in module.__all__:
            value = vars(module)[name]
            if id(value) in FUNCTIONS:
                answers[id(value)] = known.get(name) or refusal(f"{module.__name__}.{name}")
    return answers


def _ignored(*arguments: object, **named: object) -> None:
    """Replaces functions that set a seed: in a run, seeds change nothing."""


def _probed(generator: np.random.Generator) -> ProbedGenerator:
    kind: type = type(generator)
    if issubclass(kind, ProbedGenerator):
        return generator  # type: ignore[return-value]
    return ProbedGenerator(generator.bit_generator)


def _python() -> Iterator[tuple[str, Callable[..., Any]]]:
    def choices(
        population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> list[Any]:
        if cum_weights is not None:
            weights = np.diff(cum_weights, prepend=0)
        call = here("random.choices", (k,))
        vector = [1.0] * len(population) if weights is None else weights
        return [population[current_source().categorical(call, vector)] for _ in range(k)]

    yield from ((name, _ignored) for name in SEEDS)
    yield "random", lambda: delivered(current_source().uniforms(here("random.random")))
    yield "choices", choices


def _legacy(generator: ProbedGenerator) -> dict[str, Callable[..., Any]]:
    uniforms = dict.fromkeys(("random", "random_sample", "ranf", "sample"), generator.random)
    named = ("uniform", "exponential", "standard_exponential", "gumbel", "choice", "multinomial")
    original = vars(np.random)["default_rng"]
    return {
        **uniforms,
        **dict.fromkeys(SEEDS, _ignored),
        **{name: getattr(generator, name) for name in named},
        "rand": lambda *shape: generator.random(shape or None),
        "randint": generator.integers,
        "default_rng": lambda seed=None: _probed(original(seed)),
    }
