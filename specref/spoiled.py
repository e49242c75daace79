"""Notices code under judgement that changes its judge, and puts back what it replaced.

A rule is run in the judge's own process. What it replaces there would be believed: a function of
`specref.laws`, a method of `Model`, `Fraction.__eq__`, `numpy.asarray`, `sum`. So these names are
compared before and after. What is replaced and put back between two looks is not seen, nor is
what C keeps, the contents of a container, or a debugger's way into frames.
"""

import builtins
import fractions
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from operator import is_
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

JUDGES = tuple(
    f"specref.{name}"
    for name in ("distributions", "chance", "vocabulary", "models", "laws", "proofs.exact")
)
"""The modules that decide whether two laws are equal."""
KIT = tuple(f"specref.{name}" for name in ("conformance", "contracts", "probing", "statistics"))
"""The rooms whose modules judge samplers."""
LIBRARIES: tuple[ModuleType, ...] = (np, builtins)
Space: TypeAlias = ModuleType | type
Names: TypeAlias = dict[str, Any]
_MISSING = object()


class SpoiledError(RuntimeError):
    """Code under judgement changed what it is judged by: a model, or the judge itself."""


@contextmanager
def unspoiled(rooms: tuple[str, ...] = (), judged: str = "the rule") -> Iterator[None]:
    """Raise unless the judge is afterwards what it was before; it is put back either way.

    * `rooms`: Packages whose loaded modules are watched besides `JUDGES`. What is added to these
      is no matter: they load their parts late.
    * `judged`: What runs, for the message.
    * raises `SpoiledError`: Something was replaced, added or deleted; the first name is told.

    Examples
    --------
    >>> import specref.models
    >>> with unspoiled():
    ...     specref.models.Model.next_token = lambda model, context: [1]
    Traceback (most recent call last):
    specref.spoiled.SpoiledError: specref.models.Model.next_token was replaced while the rule ran
    """
    before = [(space, _names(space)) for space in _spaces()]
    spaces = (*LIBRARIES, *_of_rooms(rooms, len(sys.modules)))
    libraries = [(space, dict(vars(space))) for space in spaces]
    try:
        yield
    finally:
        # First to what is built in, on which the other comparisons depend.
        changed = [
            name
            for space, names in libraries
            if not all(map(is_, names.values(), map(vars(space).get, names)))
            for name in _put_back(space, names, added=False)
        ]
        changed += [
            name
            for space, names in before
            if not _same(_names(space), names)
            for name in _put_back(space, names, added=True)
        ]
        if changed:
            raise SpoiledError(f"{changed[0]} was replaced while {judged} ran")


def _spaces() -> tuple[Space, ...]:
    """The judge's modules that are loaded, their classes, and `Fraction`."""
    modules = tuple(sys.modules[name] for name in JUDGES if name in sys.modules)
    return (*_with_classes(modules), fractions.Fraction)


@lru_cache(maxsize=4)
def _of_rooms(rooms: tuple[str, ...], loaded: int) -> tuple[Space, ...]:
    """The modules of these rooms and their classes, while no more modules are loaded."""
    starts = tuple(f"{room}." for room in rooms)
    names = sorted(name for name in sys.modules if name.startswith(starts) and name not in JUDGES)
    return _with_classes(tuple(sys.modules[name] for name in names))


@cache
def _with_classes(modules: tuple[ModuleType, ...]) -> tuple[Space, ...]:
    classes = (one for module in modules for one in vars(module).values() if isinstance(one, type))
    own = dict.fromkeys(one for one in classes if one.__module__.startswith("specref."))
    return (*modules, *own)


def _names(space: Space) -> Names:
    """What a module or class has, but what Python writes to a class whose instance it copies."""
    return {name: value for name, value in vars(space).items() if name != "__slotnames__"}


def _same(now: Names, before: Names) -> bool:
    return len(now) == len(before) and all(map(is_, before.values(), map(now.get, before)))


def _put_back(space: Space, before: Names, *, added: bool) -> list[str]:
    """Undo every difference; the names that differed, in full.

    A name that is added to a module is read by its code only if it hides one that is built in;
    others are a compiler's own, as torch's has.
    """
    now = _names(space)
    different = [name for name, value in before.items() if now.get(name, _MISSING) is not value]
    more = [name for name in now if name not in before] if added else []
    if isinstance(space, ModuleType):
        more = [name for name in more if hasattr(builtins, name)]
    for name in different:
        setattr(space, name, before[name])
    for name in more:
        delattr(space, name)
    owner = f"{space.__module__}." if isinstance(space, type) else ""
    return [f"{owner}{space.__name__}.{name}" for name in [*different, *more]]
