"""Until when long computations may go on: they look at the clock, and give up."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

_UNTIL: ContextVar[float] = ContextVar("until", default=inf)


class OutOfTimeError(Exception):
    """The budget is spent."""


@contextmanager
def until(moment: float) -> Iterator[None]:
    """What is computed here gives up at a moment, in seconds of the processor."""
    token = _UNTIL.set(min(moment, _UNTIL.get()))
    try:
        yield
    finally:
        _UNTIL.reset(token)


def look() -> None:
    """Raise once it is too late."""
    if time.process_time() > _UNTIL.get():
        raise OutOfTimeError


def left() -> float:
    return max(_UNTIL.get() - time.process_time(), 0)
