"""The run whose randomness is intercepted: in its own thread and context, and nowhere else."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from specref.probing.source import Source


@dataclass(eq=False)
class Interception:
    """One run of somebody's code on a source.

    Attributes
    ----------
    source : Source
    answers : mapping
        {id of a random function or class: what is called in its place}.
    thread : int
        The only thread in which anything is intercepted.
    over : bool
        The run has ended, or nobody waits for it any more.
    abandoned : bool
        Nobody waits for it: its thread ends at the next draw.
    """

    source: Source
    answers: Mapping[int, Any]
    thread: int = field(default_factory=threading.get_ident)
    over: bool = False
    abandoned: bool = False


_CURRENT: ContextVar[Interception | None] = ContextVar("specref_interception", default=None)


def current() -> Interception | None:
    """The interception of the run that goes on in this thread and context, if one does.

    Raises
    ------
    SystemExit
        Nobody waits for the run any more.
    """
    found = _CURRENT.get()
    if found is None or found.thread != threading.get_ident():
        return None
    if found.abandoned:
        raise SystemExit
    return None if found.over else found


@contextmanager
def intercepting(interception: Interception) -> Iterator[None]:
    """While it is entered, `current` gives the interception, here and nowhere else."""
    token = _CURRENT.set(interception)
    try:
        yield
    finally:
        interception.over = True
        _CURRENT.reset(token)


class Either:
    """A random function: intercepted in a run, and what it was everywhere else.

    Examples
    --------
    >>> import random
    >>> 0 <= Either(random.random)() < 1
    True
    """

    __slots__ = ("__name__", "__wrapped__")

    def __init__(self, original: Callable[..., Any]) -> None:
        self.__wrapped__ = original
        self.__name__ = getattr(original, "__name__", type(original).__name__)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Answer for the run that goes on here, if one does."""
        here = current()
        original = self.__wrapped__
        answer = original if here is None else here.answers.get(id(original), original)
        return answer(*arguments, **named)
