"""Runs of a rule are under a deadline, and whatever they raise is an error.

One call of C that holds the interpreter's lock is waited for, however long it takes.

For some rows alone a rule may never return, or raise SystemExit, which would end the program with
the exit code of what is proved.
"""

import contextvars
import ctypes
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from specref.proofs.everywhere.number import EXPECTED, NotForAllError

Result = TypeVar("Result")
LONGEST = 60.0
"""Seconds that a run may take."""
GRACE = 5.0
"""Seconds of the processor that it may take when the budget is spent."""
SLICE = 0.1
OF_NUMBERS = ("Number", "Fraction", "ufunc", "dtype")
"""What Python and NumPy say of arguments that they cannot compute with."""


class Started(NamedTuple):
    """When a run began, on the clock and in processor time, and which clock has that."""

    on_clock: float
    of_processor: float
    clock: int | None


class Watch:
    """Waits for runs of rules, and gives up on those that do not end."""

    def __init__(self, budget: float) -> None:
        self._running: dict[int, Started] = {}
        self.restart(budget)

    def restart(self, budget: float) -> None:
        self._until = time.process_time() + budget

    def of(self, rule: Callable[..., Result]) -> Callable[..., Result]:
        """A rule whose runs are watched while `run` does what calls it."""

        def watched(*arguments: Any) -> Result:
            thread = threading.get_ident()
            clock = _clock_of(thread)
            self._running[thread] = Started(time.monotonic(), _processor_time(clock), clock)
            try:
                return rule(*arguments)
            except NotForAllError:
                raise
            except TypeError as error:
                if any(word in str(error) for word in OF_NUMBERS):
                    error.add_note(EXPECTED)
                raise
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:
                said = f"the rule raises {type(error).__name__}: expected one that returns a block"
                raise NotForAllError(said).with_traceback(error.__traceback__) from None
            finally:
                del self._running[thread]

        return watched

    def run(self, work: Callable[[], Result]) -> Result:
        """Do some work on a thread of its own.

        * raises `NotForAllError`: A run of a rule did not end in time; with the stack of where it
          was.
        """
        results: list[Result] = []
        errors: list[BaseException] = []

        def do() -> None:
            try:
                results.append(work())
            except BaseException as error:  # it is raised where the work is waited for
                errors.append(error)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(do,), daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(SLICE)
                since = self._running.get(thread.ident or 0)
                if since and self._is_late(since):
                    raise _endless(thread, time.monotonic() - since.on_clock)
        except BaseException:
            # Nobody waits for it any more. One that catches even this goes on.
            if thread.is_alive() and thread.ident:
                ident, ends = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ends)
                thread.join(10 * SLICE)
            raise
        if errors:
            raise errors[0]
        return results[0]

    def _is_late(self, since: Started) -> bool:
        if time.monotonic() - since.on_clock > LONGEST:
            return True
        try:
            taken = _processor_time(since.clock) - since.of_processor
        except OSError:  # the thread has ended
            return False
        return time.process_time() > self._until and taken > GRACE


def _clock_of(thread: int) -> int | None:
    known = hasattr(time, "pthread_getcpuclockid")
    return time.pthread_getcpuclockid(thread) if known else None


def _processor_time(clock: int | None) -> float:
    return time.process_time() if clock is None else time.clock_gettime(clock)


def _endless(thread: threading.Thread, seconds: float) -> NotForAllError:
    error = NotForAllError(
        f"the rule did not return within {seconds:.0f} s: expected one that ends for all rows"
    )
    frame = sys._current_frames().get(thread.ident or 0)
    error.stack = traceback.extract_stack(frame)
    return error
