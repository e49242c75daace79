"""The run whose randomness is intercepted, in its own thread and context only."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from specref.probing.source import Source


@dataclass(eq=False)
class Interception:
    """One run of user code on a source.

    * `answers`: {id of a random function or class: its replacement}.
    * `thread`: The only thread in which randomness is intercepted.
    * `over`: Whether the run has ended or was abandoned.
    * `abandoned`: Whether nobody waits for it any more: its thread ends at the next draw.
    """

    source: Source
    answers: Mapping[int, Any]
    thread: int = field(default_factory=threading.get_ident)
    over: bool = False
    abandoned: bool = False


_CURRENT: ContextVar[Interception | None] = ContextVar("specref_interception", default=None)


def current() -> Interception | None:
    """The interception of the run that is active in this thread and context, if any.

    * raises `SystemExit`: The run was abandoned.
    """
    found = _CURRENT.get()
    if found is None or found.thread != threading.get_ident():
        return None
    if found.abandoned:
        raise SystemExit
    return None if found.over else found


def current_source() -> Source:
    """The source of the run that is active here, which there must be."""
    interception = current()
    if interception is None:
        raise RuntimeError("no run goes on here")
    return interception.source


@contextmanager
def intercepting(interception: Interception) -> Iterator[None]:
    """Make `current` return the interception in this thread and context."""
    token = _CURRENT.set(interception)
    try:
        yield
    finally:
        interception.over = True
        _CURRENT.reset(token)


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
