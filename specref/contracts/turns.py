"""A lock on the global generators of the process: only one call uses them at a time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from specref.contracts.timeout import HungError, deadline_here

SLICE = 0.02
LONGEST = 600.0

_LOCK = threading.Lock()
_MINE: ContextVar[bool] = ContextVar("specref_turn", default=False)


@contextmanager
def turn(begin: Callable[[], Callable[[], None]]) -> Iterator[None]:
    """Hold the lock, and the state set by `begin`, until leaving.

    A call that does not return in time loses the lock, and what `begin` did is undone then. The
    wait for other calls does not count towards the timeout.

    Parameters
    ----------
    begin : callable
        Changes the state of the process, and returns a function that undoes it.

    Raises
    ------
    HungError
        A call without a time limit has held the lock for too long.
    """
    if _MINE.get():
        undo = begin()
        try:
            yield
        finally:
            undo()
        return
    deadline = deadline_here()
    for _ in range(int(LONGEST / SLICE)):
        acquired = _LOCK.acquire(timeout=SLICE)
        deadline.waited()
        if acquired:
            break
    else:
        raise HungError(f"waited {LONGEST:g} s for another call that uses the global generators")
    token = _MINE.set(True)
    try:
        with deadline.releasing(_once(begin)):
            yield
    finally:
        _MINE.reset(token)


def _once(begin: Callable[[], Callable[[], None]]) -> Callable[[], None]:
    """Begin; the returned function undoes it and releases the lock, at its first call only."""
    try:
        open_ = [begin()]
    except BaseException:
        _LOCK.release()
        raise

    def end() -> None:
        try:
            undo = open_.pop()
        except IndexError:
            return
        try:
            undo()
        finally:
            _LOCK.release()

    return end
