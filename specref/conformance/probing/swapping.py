"""Generators that a function already holds: found in its closure, its globals and its object."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

DEEPEST = 4


@dataclass(frozen=True)
class Slot:
    """A place that holds something random: a cell, or a key of a dictionary.

    Attributes
    ----------
    holder : cell or dict
    key : str
    value : object
        A `numpy.random.Generator`, or a random function imported by name.
    """

    holder: Any
    key: str
    value: Any

    def put(self, value: object) -> None:
        """Put something else there."""
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        else:
            self.holder[self.key] = value


def slots(function: Callable[..., Any], functions: set[int]) -> list[Slot]:
    """Where a function keeps generators, or functions whose ids are given.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> [slot.value is rng for slot in slots(lambda: rng.random(), set())]
    [True]
    """
    found: dict[tuple[int, str], Slot] = {}
    for slot in _walk(function, DEEPEST, set()):
        if isinstance(slot.value, np.random.Generator) or id(slot.value) in functions:
            found[id(slot.holder), slot.key] = slot
    return list(found.values())


def random_functions() -> set[int]:
    """The ids of the functions of `numpy.random` and `random`."""
    return {id(getattr(module, name)) for module in (random, np.random) for name in module.__all__}


def _walk(thing: Any, depth: int, seen: set[int]) -> Iterator[Slot]:
    if depth == 0 or id(thing) in seen:
        return
    seen.add(id(thing))
    for slot in _held(thing):
        yield slot
        yield from _walk(slot.value, depth - 1, seen)


def _held(thing: Any) -> Iterator[Slot]:
    if isinstance(thing, FunctionType):
        yield from _of_function(thing)
    elif isinstance(thing, MethodType):
        yield Slot({}, "function", thing.__func__)
        yield from _of_dictionary(getattr(thing.__self__, "__dict__", {}))
    elif isinstance(thing, partial):
        yield Slot({}, "function", thing.func)
        yield from _of_dictionary(thing.keywords)
    elif not isinstance(thing, type | ModuleType):
        yield from _of_dictionary(getattr(thing, "__dict__", {}))
        call = vars(type(thing)).get("__call__")
        if isinstance(call, FunctionType):
            yield Slot({}, "__call__", call)


def _of_function(function: FunctionType) -> Iterator[Slot]:
    for cell in function.__closure__ or ():
        try:
            yield Slot(cell, "", cell.cell_contents)
        except ValueError:
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield Slot(function.__globals__, name, function.__globals__[name])


def _of_dictionary(held: Any) -> Iterator[Slot]:
    if isinstance(held, dict):
        yield from [Slot(held, key, value) for key, value in held.items()]


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))
