"""NumPy's and Python's random numbers, taken from a source.

`numpy.random.default_rng` and `numpy.random.Generator` make generators that ask the source, and
so do the functions of `numpy.random` and `random.random`. What has no exact reading says so.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from specref.conformance.probing.calls import CannotInterpretError, here, is_importing
from specref.conformance.probing.generator import ProbedGenerator, Switch, delivered, refusal

HARMLESS = frozenset({"seed", "get_state", "set_state", "default_rng", "test"})


def _guarded(original: type, name: str) -> type:
    """A class that refuses to be used, but for modules that are being imported meanwhile."""

    def new(cls: type, *arguments: object, **named: object) -> object:
        if cls is not guarded:
            return original.__new__(cls, *arguments)
        if not is_importing():
            raise CannotInterpretError(f"{here(name)} has no exact reading")
        return original(*arguments, **named)

    guarded: type = type(original.__name__, (original,), {"__new__": new})
    return guarded


def replacements(switch: Switch, generator: ProbedGenerator) -> Iterator[tuple[Any, str, Any]]:
    """What stands in for the random functions of numpy and random: (module, name, function)."""
    yield np.random, "Generator", type(generator)
    yield np.random, "default_rng", lambda seed=None: generator
    legacy = _legacy(generator)
    for name in np.random.__all__:
        if name not in HARMLESS and not isinstance(getattr(np.random, name), type):
            yield np.random, name, legacy.get(name) or refusal(f"numpy.random.{name}")
    for name in set(random.__all__) - {"seed", "getstate", "setstate", "random"}:
        if not isinstance(getattr(random, name), type):
            yield random, name, refusal(f"random.{name}")
    yield from _python(switch)
    for module, name in ((np.random, "RandomState"), (random, "Random"), (random, "SystemRandom")):
        yield module, name, _guarded(getattr(module, name), f"{module.__name__}.{name}")


def _python(switch: Switch) -> Iterator[tuple[Any, str, Any]]:
    def choices(
        population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> list[Any]:
        if cum_weights is not None:
            weights = np.diff(cum_weights, prepend=0)
        call = here("random.choices", (k,))
        vector = [1.0] * len(population) if weights is None else weights
        return [population[switch.source.categorical(call, vector)] for _ in range(k)]

    yield random, "random", lambda: delivered(switch.source.uniforms(here("random.random")))
    yield random, "choices", choices


def _legacy(generator: ProbedGenerator) -> dict[str, Callable[..., Any]]:
    uniforms = dict.fromkeys(("random", "random_sample", "ranf", "sample"), generator.random)
    named = ("uniform", "exponential", "standard_exponential", "gumbel", "choice", "multinomial")
    return {
        **uniforms,
        **{name: getattr(generator, name) for name in named},
        "rand": lambda *shape: generator.random(shape or None),
        "randint": generator.integers,
    }


@contextmanager
def replaced(found: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Attributes replaced for a while: (owner, name, value)."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in found]
    try:
        for owner, name, value in found:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)
