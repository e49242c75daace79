"""Random numbers of NumPy and Python, taken from the source of a run.

In a run, attributes of `numpy.random` and `random` are replaced, but not in other threads:
`numpy.random.default_rng` and `numpy.random.Generator` make generators that ask the source, and
so do some functions of `numpy.random`, `random.random` and `random.choices`. Seeds are ignored
in a run; other random functions raise.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from specref.probing.calls import CannotInterpretError, here, is_importing
from specref.probing.generator import (
    REAL,
    ProbedGenerator,
    StandsIn,
    delivered,
    refusal,
)
from specref.probing.interception import Either, current, current_source

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
