"""Runs user code with a timeout, on a thread of its own, whatever it raises."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from specref.contracts.errors import BrokenContractError
from specref.tracebacks import stack_lines

Result = TypeVar("Result")
MOST_CHARACTERS = 300
SLICE = 0.5

TIMEOUT = 60.0
"""Seconds that a call may take, by default."""


class HungError(BrokenContractError):
    """A call did not return in time; later calls would time out, too."""

    def __init__(self, message: str, stack: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.evidence |= {"hung": True, **({"traceback": stack} if stack else {})}


class Deadline:
    """When somebody's code last returned, in work that calls it many times."""

    def __init__(self) -> None:
        self.last, self.abandoned = time.monotonic(), False
        self._releases: list[Callable[[], None]] = []

    def abandon(self) -> None:
        """Say that nobody waits for the work any more; gives back what it holds of the process."""
        self.abandoned = True
        for release in self._releases[::-1]:
            release()

    @contextmanager
    def releasing(self, release: Callable[[], None]) -> Iterator[None]:
        """`release` is called on leaving, and when the work is abandoned: perhaps twice."""
        self._releases.append(release)
        try:
            if self.abandoned:
                raise SystemExit
            yield
        finally:
            self._releases.remove(release)
            release()

    def restart(self) -> None:
        """Say that a call has returned; ends the work if nobody waits for it any more."""
        if self.abandoned:
            raise SystemExit
        self.last = time.monotonic()


_DEADLINE: ContextVar[Deadline | None] = ContextVar("specref_pulse", default=None)


def deadline_here() -> Deadline:
    """That of the work which goes on in this thread; a new one if nobody waits for any."""
    return _DEADLINE.get() or Deadline()


def within(
    seconds: float | None, work: Callable[[], Result], deadline: Deadline | None = None
) -> Result:
    """Run `work` on a thread of its own, left behind if it does not return in time.

    Parameters
    ----------
    seconds : float or None
        How long to wait. None: for ever.
    work : callable
    deadline : Deadline, optional
        If `work` beats it, the time counts from the last beat.

    Raises
    ------
    BrokenContractError
        It raised, or (`HungError`) did not return.

    Examples
    --------
    >>> within(1, lambda: 1 / 0)
    Traceback (most recent call last):
    specref.contracts.batch.BrokenContractError: raised ZeroDivisionError: division by zero
    """
    deadline = deadline or Deadline()
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        _DEADLINE.set(deadline)
        try:
            results.append(work())
        except BaseException as error:  # somebody's code may raise anything
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        _wait(thread, seconds, deadline)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            error.add_note("\n".join(stack_lines(thread)))
        deadline.abandon()
        raise
    if not errors:
        return results[0]
    if isinstance(errors[0], BrokenContractError):
        raise errors[0]
    raise BrokenContractError(f"raised {described(errors[0])}") from errors[0]


def _wait(thread: threading.Thread, seconds: float | None, deadline: Deadline) -> None:
    # In slices: Python sees a signal that comes at the very start of a wait after it.
    while thread.is_alive():
        left = SLICE if seconds is None else deadline.last + seconds - time.monotonic()
        if left <= 0:
            raise HungError(f"did not return within {seconds:g} s", stack_lines(thread))
        thread.join(min(left, SLICE))


def described(error: BaseException, where: str = "") -> str:
    """The kind of an error and the first line of its message, whatever somebody made of it.

    Examples
    --------
    >>> described(ValueError("out of memory"), "at row 3")
    'ValueError at row 3: out of memory'
    """
    try:
        lines = str(error).splitlines()
    except Exception:  # somebody's errors may raise, too
        lines = ["its message cannot be shown"]
    text = (lines or [""])[0][:MOST_CHARACTERS]
    return " ".join(filter(None, [type(error).__name__, where])) + f": {text}" * bool(text)
