"""Replaces generators that a function holds in its closure, its globals or its object.

Stand-ins are in their places while a run is intercepted. Several runs, even of one function,
may overlap: the last one to end restores what was there before the first started.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from specref.probing.numpy_random import (
    MODULES,
    Watched,
    is_random,
    stand_in,
    stands_in,
)

DEEPEST = 4
EMPTY = object()


@dataclass(frozen=True)
class Slot:
    """A place that holds something random: a cell, or a key of a dictionary.

    * `value`: A `numpy.random.Generator`, or a random function imported by name.
    """

    holder: Any
    key: str
    value: Any

    def put(self, value: object) -> None:
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        else:
            self.holder[self.key] = value

    def content(self) -> Any:
        """The current value; `EMPTY` if there is none."""
        if not isinstance(self.holder, CellType):
            return self.holder.get(self.key, EMPTY)
        try:
            return self.holder.cell_contents
        except ValueError:
            return EMPTY


@dataclass
class _Use:
    """The original value of a slot, or class of the modules, and how many runs replace it."""

    before: Any
    users: int = 0


_LOCK = threading.Lock()
_slots: dict[tuple[int, str], _Use] = {}
_modules = _Use(ModuleType)


class Swap:
    """Puts stand-ins in all slots, and replaces the modules' class, until `undo` is called."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        with _LOCK:
            self._taken = [slot for slot in slots if _take(slot)]
            _modules.users += 1
            for module in MODULES:
                module.__class__ = Watched
        self._done = False

    def undo(self) -> None:
        """Restore everything that no other run uses; later calls do nothing."""
        with _LOCK:
            if self._done:
                return
            self._done = True
            for slot in self._taken:
                _give_back(slot)
            _modules.users -= 1
            for module in MODULES if not _modules.users else ():
                module.__class__ = _modules.before


def _take(slot: Slot) -> bool:
    key = id(slot.holder), slot.key
    if key not in _slots:
        content = slot.content()
        if not is_random(content) or stands_in(content):
            return False
        _slots[key] = _Use(content)
        slot.put(stand_in(content))
    _slots[key].users += 1
    return True


def _give_back(slot: Slot) -> None:
    key = id(slot.holder), slot.key
    _slots[key].users -= 1
    if _slots[key].users:
        return
    before, content = _slots.pop(key).before, slot.content()
    # A value that the code has put there meanwhile is kept.
    if stands_in(content):
        slot.put(before)


def slots(function: Callable[..., Any]) -> list[Slot]:
    """The places where a function holds generators, or random functions imported by name."""
    found: dict[tuple[int, str], Slot] = {}
    for slot in _walk(function, DEEPEST, set()):
        if is_random(slot.value):
            found[id(slot.holder), slot.key] = slot
    return list(found.values())


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
