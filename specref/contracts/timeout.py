"""Runs user code with a timeout, on a thread of its own."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from specref.contracts.errors import BrokenContractError, UntriedError
from specref.tracebacks import stack_lines

Result = TypeVar("Result")
MOST_CHARACTERS = 300
SLICE, NEARLY = 0.5, 0.95

TIMEOUT = 60.0
"""Seconds that a call may take, by default."""

PATIENCE, PATIENT = 10.0, 6
"""Seconds for what nobody asked for by name, such as a large call; more with a longer timeout."""


def patience(timeout: float | None) -> float | None:
    """Seconds after which a situation that nobody asked for by name is not tried.

    Examples
    --------
    >>> patience(5), patience(TIMEOUT), patience(600), patience(None)
    (5, 10.0, 100.0, None)
    """
    return None if timeout is None else min(timeout, max(PATIENCE, timeout / PATIENT))


class HungError(BrokenContractError):
    """A call did not return in time; later calls would also time out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.evidence["hung"] = True


class Deadline:
    """The time at which user code last returned, in work that calls it many times.

    * `most`: Seconds for all of the work.
    * `asked`: Says what it was asked for last.
    * `limit`: Seconds for that call, if no contract makes it take so large a call.
    """

    def __init__(self, most: float | None = None) -> None:
        self.started = self.last = time.monotonic()
        self.most, self.abandoned = most, False
        self.asked: Callable[[], str] | None = None
        self.limit: float | None = None
        self._releases: list[Callable[[], None]] = []

    def ask(self, asked: Callable[[], str], limit: float | None = None) -> None:
        """Note that user code is called: for what, and how long it may take."""
        self.asked, self.limit = asked, limit

    def left(self, seconds: float | None) -> float:
        """Seconds until user code is late, where a call may take so many.

        * raises `HungError`: A call did not return in time.
        * raises `UntriedError`: It is so large that this says nothing, or the work as a whole
          takes too long.
        """
        now, ask, limit = time.monotonic(), self.asked, self.limit
        asked = f" ({ask()})" if ask else ""
        # Where one call has taken nearly all of the time, it hangs.
        hangs = seconds is not None and now >= self.last + NEARLY * seconds
        if self.most is not None and now >= self.started + self.most and not hangs:
            why = f"more than {self.most:g} s"
            raise UntriedError(f"took {why} in all", "", why, by_size=True)
        if ask and limit is not None and now >= self.last + limit:
            late = f"did not return within {limit:g} s{asked}"
            raise UntriedError(late, ask(), f"more than {limit:g} s", by_size=True)
        if seconds is not None and now >= self.last + seconds:
            still = "; it is still running" if asked else ""
            raise HungError(f"did not return within {seconds:g} s{asked}{still}")
        ends = [self.last + one for one in (seconds, limit) if one is not None]
        if self.most is not None and not hangs:
            ends.append(self.started + self.most)
        return min([SLICE, *(end - now for end in ends)])

    def waited(self) -> None:
        """Note that the time so far was no time of user code; end the work if abandoned."""
        if self.abandoned:
            raise SystemExit
        self.last = time.monotonic()

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
        self.waited()
        self.asked = self.limit = None


_DEADLINE: ContextVar[Deadline | None] = ContextVar("specref_pulse", default=None)


def deadline_here() -> Deadline:
    """The deadline of the work in this thread; a new one if there is none."""
    return _DEADLINE.get() or Deadline()


def within(
    seconds: float | None, work: Callable[[], Result], deadline: Deadline | None = None
) -> Result:
    """Run `work` on a thread of its own, which is abandoned if it does not return in time.

    * `deadline`: If `work` restarts it, the time counts from the last restart.
    * raises `BrokenContractError`: The work raised, or (`HungError`) did not return.
    * raises `UntriedError`: As for `Deadline.left`.
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
            thread.join(deadline.left(seconds))
    except BaseException as error:
        if isinstance(error, HungError):
            stack = stack_lines(thread)
            error.evidence |= {"traceback": stack} if stack else {}
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
    """What user code raises is a broken contract; `say` makes its message, from what happened."""
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
