"""Who may use the process's global generators: one call at a time, for all threads."""

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
    """Nobody else who asks for a turn is between `begin` and what it returns.

    Whoever does not return in time has no turn any more: what `begin` did is undone then. The
    wait for others counts as no time of one's own.

    Parameters
    ----------
    begin : callable
        Changes the state of the process, and returns a function that undoes it.

    Raises
    ------
    HungError
        Somebody without a time limit has had the turn for too long.
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
        deadline.restart()
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
    """Begin; what it returns undoes that and ends the turn, at the first call only."""
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
