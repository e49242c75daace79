"""Every run of a rule is under a deadline, and whatever it raises is an error.

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
from typing import Any, TypeVar

from specref.proofs.everywhere.number import EXPECTED, NotForAllError

Result = TypeVar("Result")
LONGEST = 60.0
"""Seconds that a run may take."""
GRACE = 1.0
"""Seconds of the processor that it may take when the budget is spent."""
SLICE = 0.1


class Watch:
    """Waits for runs of rules, and gives up on those that do not end.

    Parameters
    ----------
    budget : float
        Seconds of the processor, from now on.
    """

    def __init__(self, budget: float) -> None:
        self._since: tuple[float, float] | None = None
        self.restart(budget)

    def restart(self, budget: float) -> None:
        """Set another budget, from now on."""
        self._until = time.process_time() + budget

    def of(self, rule: Callable[..., Result]) -> Callable[..., Result]:
        """A rule whose runs are watched while `run` does what calls it."""

        def watched(*arguments: Any) -> Result:
            self._since = time.monotonic(), time.process_time()
            try:
                return rule(*arguments)
            except NotForAllError:
                raise
            except TypeError as error:
                error.add_note(EXPECTED)
                raise
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:
                said = f"the rule raises {type(error).__name__}: expected one that returns a block"
                raise NotForAllError(said).with_traceback(error.__traceback__) from None
            finally:
                self._since = None

        return watched

    def run(self, work: Callable[[], Result]) -> Result:
        """Do some work on a thread of its own.

        Raises
        ------
        NotForAllError
            A run of a rule did not end in time; with the stack of where it was.
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
                if self._is_late():
                    raise _endless(thread)
        except BaseException:
            # Nobody waits for it any more. One that catches even this goes on.
            if thread.is_alive() and thread.ident:
                ident, ends = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ends)
            raise
        if errors:
            raise errors[0]
        return results[0]

    def _is_late(self) -> bool:
        since = self._since
        if since is None:
            return False
        now = time.process_time()
        in_overtime = now > self._until and now - since[1] > GRACE
        return in_overtime or time.monotonic() - since[0] > LONGEST


def _endless(thread: threading.Thread) -> NotForAllError:
    error = NotForAllError("the rule did not return in time: expected one that ends for all rows")
    frame = sys._current_frames().get(thread.ident or 0)
    error.stack = traceback.extract_stack(frame)
    return error
