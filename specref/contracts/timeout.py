"""Runs user code with a timeout, on a thread of its own."""

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
    """A call did not return in time; later calls would also time out."""

    def __init__(self, message: str, stack: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.evidence |= {"hung": True, **({"traceback": stack} if stack else {})}


class Deadline:
    """The time at which user code last returned, in work that calls it many times.

    Attributes
    ----------
    asked : callable, optional
        Says what it was asked for last.
    """

    def __init__(self) -> None:
        self.last, self.abandoned = time.monotonic(), False
        self.asked: Callable[[], str] | None = None
        self._releases: list[Callable[[], None]] = []

    def abandon(self) -> None:
        """Note that nobody waits for the work any more, and release what it holds."""
        self.abandoned = True
        for release in self._releases[::-1]:
            release()

    @contextmanager
    def releasing(self, release: Callable[[], None]) -> Iterator[None]:
        """Call `release` on leaving, and when the work is abandoned: possibly twice."""
        self._releases.append(release)
        try:
            if self.abandoned:
                raise SystemExit
            yield
        finally:
            self._releases.remove(release)
            release()

    def restart(self) -> None:
        """Note that a call has returned; end the work if it was abandoned."""
        if self.abandoned:
            raise SystemExit
        self.last, self.asked = time.monotonic(), None


_DEADLINE: ContextVar[Deadline | None] = ContextVar("specref_pulse", default=None)


def deadline_here() -> Deadline:
    """The deadline of the work in this thread; a new one if there is none."""
    return _DEADLINE.get() or Deadline()


def within(
    seconds: float | None, work: Callable[[], Result], deadline: Deadline | None = None
) -> Result:
    """Run `work` on a thread of its own, which is abandoned if it does not return in time.

    Parameters
    ----------
    seconds : float or None
        The timeout; None for none.
    work : callable
    deadline : Deadline, optional
        If `work` restarts it, the time counts from the last restart.

    Raises
    ------
    BrokenContractError
        The work raised, or (`HungError`) did not return.

    Examples
    --------
    >>> within(1, lambda: 1 / 0)
    Traceback (most recent call last):
    specref.contracts.errors.BrokenContractError: raised ZeroDivisionError: division by zero
    """
    deadline = deadline or Deadline()
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        _DEADLINE.set(deadline)
        try:
            results.append(work())
        except BaseException as error:  # user code may raise anything
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        # In slices: Python handles a signal that comes at the very start of a wait only after it.
        while thread.is_alive():
            left = SLICE if seconds is None else deadline.last + seconds - time.monotonic()
            if left <= 0:
                asked = f" ({deadline.asked()}); it is still running" if deadline.asked else ""
                raise HungError(f"did not return within {seconds:g} s{asked}", stack_lines(thread))
            thread.join(min(left, SLICE))
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


@contextmanager
def user_code(say: Callable[[str], str]) -> Iterator[None]:
    """What user code raises is a broken contract; `say` makes its message, from what happened.

    Examples
    --------
    >>> with user_code(lambda what: f"{what} (at the start)"):
    ...     1 / 0
    Traceback (most recent call last):
    specref.contracts.errors.BrokenContractError: raised ZeroDivisionError: … (at the start)
    """
    try:
        yield
        return
    except BrokenContractError as error:
        message, cause = str(error), error.__cause__
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # user code may raise anything
        message, cause = f"raised {described(error)}", error
    raise BrokenContractError(say(message)) from cause


def described(error: BaseException, where: str = "") -> str:
    """The type of an error and the first line of its message.

    Examples
    --------
    >>> described(ValueError("out of memory"), "at row 3")
    'ValueError at row 3: out of memory'
    """
    try:
        lines = str(error).splitlines()
    except Exception:  # errors of user code may raise, too
        lines = ["its message cannot be shown"]
    text = (lines or [""])[0][:MOST_CHARACTERS]
    return " ".join(filter(None, [type(error).__name__, where])) + f": {text}" * bool(text)
