"""A process that judges one engine, and how it ends: by itself, or because it takes too much."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from specref.contrib.engines.board_report import CRASHED, LATE, MEMORY, OUTPUT

GRACE, EVERY = 10.0, 0.2
GIB = 2**30
PROC = Path("/proc")


def _most_memory() -> float:
    """16 GiB, or three quarters of what the machine has."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on every system
        return 16 * GIB
    return min(16 * GIB, 0.75 * there)


MOST_MEMORY, MOST_OUTPUT = _most_memory(), 1.0 * GIB


@dataclass(frozen=True)
class Ending:
    """How a process ended.

    * `verdict`: Of the row, if there is no report.
    """

    verdict: str
    told: str
    by_itself: bool = False

    def __str__(self) -> str:
        return self.told


def ended_by(code: int) -> Ending:
    """The ending of a process that was left alone."""
    told = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return Ending(CRASHED, told, by_itself=True)


def watched(
    process: "subprocess.Popen[bytes]", limit: float, memory: float, logs: Sequence[Path]
) -> Ending:
    """Wait for a process that takes so many seconds and bytes at most, and writes few to its logs.

    Memory is that of all processes of its session, as /proc tells it; where there is no /proc,
    it is not looked at.
    """
    end = time.monotonic() + limit
    while True:
        left = end - time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            return ended_by(process.wait(max(min(EVERY, left), 0)))
        if left <= 0:
            return Ending(LATE, f"not done after {limit:g} s")
        over = None
        if memory_of_session(process.pid) > memory:
            over = Ending(MEMORY, f"used more than {memory / GIB:.3g} GiB")
        elif sum(log.stat().st_size for log in logs) > MOST_OUTPUT:
            over = Ending(OUTPUT, f"printed more than {MOST_OUTPUT / GIB:.3g} GiB")
        if over:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # asked to end, it would go on meanwhile
            return over


def memory_of_session(session: int) -> int:
    """The bytes in memory of all processes of a session; 0 if the system does not tell."""
    pages = 0
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it may have ended
            # After the name, which may have spaces in it, and the closing bracket.
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            pages += int(fields[21]) if int(fields[3]) == session else 0
    return pages * os.sysconf("SC_PAGE_SIZE") if pages else 0


@contextmanager
def ended_with_children(
    command: Sequence[str],
    variables: Mapping[str, str],
    folder: Path | None,
    output: IO[bytes],
    errors: IO[bytes],
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in a session of its own, none of whose group is left at the end."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=dict(variables),
        cwd=folder, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        for ending, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
            try:
                os.killpg(process.pid, ending)
                process.wait(seconds)
            except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
                continue
