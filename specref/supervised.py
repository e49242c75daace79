"""Work in a process of its own: nothing but the verdict that it writes gives exit code 0.

Judged code may end the process that judges it: by `os._exit(0)`, `os.execv`, a signal, or from a
function that is called at exit. The verdict is in memory that a parent shares with it, and the
parent leaves with that, or with 2.
"""

import ctypes
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

NO_VERDICT = 2
FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP")
"""What a parent may be sent alone, and its child has to know."""
SIZE, LONGEST = 1024, 1000
ENDS_WITH_PARENT = 1
"""PR_SET_PDEATHSIG, of Linux."""
WRITTEN = 1
"""Added to a verdict: memory is 0 at first."""


class Notes:
    """Memory shared with a parent: the verdict, and what the work is at.

    * `began`: When it was made, before anything large is imported, as `time.perf_counter` counts.
    """

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self._memory = mmap.mmap(-1, SIZE)
        self._owner = os.getpid()

    def own(self) -> None:
        """Note that this process does the work: what copies of it write does not count."""
        self._owner = os.getpid()

    def at(self, doing: str) -> None:
        """Note what the work is at; a process that is a copy of its own ends."""
        end_a_copy_of(self._owner)
        said = doing.encode()[:LONGEST]
        self._memory[2 : 2 + len(said) + 1] = said + b"\0"

    def write(self, verdict: int) -> None:
        """Write the verdict: the exit code."""
        end_a_copy_of(self._owner)
        self._memory[0] = verdict + WRITTEN

    @property
    def verdict(self) -> int | None:
        """What was written, if anything was."""
        return self._memory[0] - WRITTEN if self._memory[0] else None

    @property
    def doing(self) -> str:
        return self._memory[2:].partition(b"\0")[0].decode(errors="replace")


def supervised(work: Callable[[Notes], int]) -> NoReturn:
    """Do some work in a child of this process, and leave with the exit code that it returns.

    If there is none, because the child has ended in any other way, one line says how, and the exit
    code is 2. The child is of the same terminal and process group, is sent the signals that this
    process is sent, and ends if this one is killed (on Linux). Where processes cannot be forked,
    the work is done in this one.

    * `work`: Returns an exit code.
    """
    notes = Notes()
    if not hasattr(os, "fork"):  # Windows
        sys.exit(work(notes))
    numbers = [getattr(signal, name) for name in FORWARDED]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    parent, child = os.getpid(), os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _end_with(parent)
        notes.own()
        _work_here(work, notes)
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: _forward(child, number))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _, status = os.waitpid(child, 0)
    if notes.verdict is None:
        print(f"error: {_no_verdict(status, notes.doing)}", file=sys.stderr)
        sys.exit(NO_VERDICT)
    sys.exit(notes.verdict)


def end_a_copy_of(process: int) -> None:
    """End this process if it is not that one: judged code has forked it, and its copy goes on."""
    if os.getpid() != process:
        os._exit(NO_VERDICT)


def _work_here(work: Callable[[Notes], int], notes: Notes) -> NoReturn:
    try:
        code = work(notes)
    except BaseException:  # said, and no verdict
        sys.excepthook(*sys.exc_info())
        code = NO_VERDICT
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # what was printed did not arrive, so that is no verdict
        code = code or NO_VERDICT
    notes.write(code)
    sys.exit(code)


def _end_with(parent: int) -> None:
    """Have the system kill this process when its parent is gone."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(ENDS_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(NO_VERDICT)


def _forward(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


def _no_verdict(status: int, doing: str) -> str:
    """How a process ended that has written no verdict.

    Examples
    --------
    >>> _no_verdict(9, "smoke/answers").partition(":")[0]
    'no verdict (last seen at smoke/answers)'
    """
    code = os.waitstatus_to_exitcode(status)
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    where = f" (last seen at {doing})" if doing else ""
    why = "judged code has called os._exit, os.exec or the like, or the system has killed it"
    return f"no verdict{where}: the process that judges was ended {how}; {why}"
