"""A program that answers a line with a line: never waited for in vain, never left behind."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from specref.conformance.batch import BrokenContractError
from specref.conformance.patience import HungError
from specref.conformance.process.errors import CannotStartError, EndedError

CHUNK, LONGEST_LINE = 1 << 20, 1 << 26
GRACE = 1.0
TAIL_LINES, TAIL_BYTES, TAIL_CHARACTERS = 3, 4_096, 160


class Running:
    """A started program, in a session of its own: Ctrl-C reaches it through its caller alone.

    It and its children are killed by `close`, when this object is collected, and when the
    interpreter exits. POSIX only.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments; no shell.
    folder : Path
        Where it is started.

    Raises
    ------
    CannotStartError
        No such program, or it may not be executed.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  never full, unlike a pipe
        try:
            self._popen = _started(command, folder, self._stderr)
        except OSError as error:
            self._stderr.close()
            raise CannotStartError(f"{command[0]!r} cannot be started: {error.strerror}") from None
        self._end = weakref.finalize(self, _ended, self._popen, self._stderr)
        stdin, stdout = self._popen.stdin, self._popen.stdout
        assert stdin is not None
        assert stdout is not None
        self._stdin, self._stdout = stdin.fileno(), stdout.fileno()
        os.set_blocking(self._stdin, False)
        self._written, self._answered = bytearray(), False

    def ask(self, line: bytes, patience: float | None) -> bytes:
        """The line that answers a line.

        Raises
        ------
        BrokenContractError
            It wrote before it was asked, or without end, or left.
        HungError
            It did not answer within so many seconds.
        EndedError
            It crashed first: by a signal, or with an exit code above 0.
        """
        self._check_silent()
        left = memoryview(line)
        deadline = None if patience is None else time.monotonic() + patience
        while left or not self._answered:
            ready = self._ready(bool(left), deadline)
            if not ready:
                raise HungError(f"did not answer within {patience:g} s{self._hint()}")
            if self._stdout in ready:
                self._read()
            elif self._stdin in ready:
                left = left[self._write(left) :]
        answer, _, rest = bytes(self._written).partition(b"\n")
        self._written, self._answered = bytearray(rest), False
        return answer

    def close(self, farewell: bytes = b"") -> None:
        """Send a last line, wait a moment for the end, and kill what is left."""
        if self._end.alive and farewell:
            with contextlib.suppress(OSError):
                os.write(self._stdin, farewell)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(GRACE)
        self._end()

    def _check_silent(self) -> None:
        while not self._written and self._ready(False, time.monotonic()):
            self._read()
        if self._written:
            raise BrokenContractError(
                f"wrote {shown(bytes(self._written))} before it was asked: expected one line for "
                "each request (other output belongs on stderr)"
            )

    def _ready(self, writing: bool, deadline: float | None) -> set[int]:
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if writing:
            poll.register(self._stdin, select.POLLOUT)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        return {fd for fd, _ in poll.poll(None if left is None else left * 1000)}

    def _read(self) -> None:
        chunk = os.read(self._stdout, CHUNK)
        if not chunk:
            raise self._end_of_it()
        self._written += chunk
        self._answered |= b"\n" in chunk
        if len(self._written) > LONGEST_LINE:
            raise BrokenContractError(f"wrote more than {LONGEST_LINE >> 20} MiB for one answer")

    def _write(self, left: memoryview) -> int:
        try:
            return os.write(self._stdin, left)
        except BrokenPipeError:
            raise self._end_of_it() from None

    def _hint(self) -> str:
        begun = bytes(self._written)
        if begun:
            return f": it wrote {shown(begun)} without an end of line" + self._tail()
        return " (is stdout flushed after each line?)" + self._tail()

    def _end_of_it(self) -> Exception:
        """How it ended: whoever leaves with exit code 0 has not stumbled over what was asked."""
        try:
            code = self._popen.wait(GRACE)
        except subprocess.TimeoutExpired:
            return BrokenContractError(f"closed its stdin or stdout{self._tail()}")
        begun = f" after {shown(bytes(self._written))}" if self._written else ""
        if code == 0:
            return BrokenContractError(
                f"ended with exit code 0{begun}: expected it to answer until `stop` or the end of "
                f"its input{self._tail()}"
            )
        how = f"with exit code {code}" if code > 0 else f"by {signal.Signals(-code).name}"
        return EndedError(f"ended {how}{begun}{self._tail()}")

    def _tail(self) -> str:
        """The last lines on stderr, on one line."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - TAIL_BYTES))
        lines = self._stderr.read().decode(errors="replace").split("\n")
        text = " / ".join(filter(None, map(str.strip, lines)))
        last = " / ".join(text.split(" / ")[-TAIL_LINES:])[-TAIL_CHARACTERS:]
        return f"; stderr ends: {last}" if last else ""


def shown(line: bytes) -> str:
    """The start of a line, quoted.

    Examples
    --------
    >>> shown(b"Loading model\\n...")
    "'Loading model'"
    """
    text = line.split(b"\n")[0].decode(errors="replace")
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def _started(command: Sequence[str], folder: Path, stderr: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=folder,
        bufsize=0,
        start_new_session=True,
    )


def _ended(popen: "subprocess.Popen[bytes]", stderr: IO[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(popen.pid, signal.SIGKILL)
    for stream in (popen.stdin, popen.stdout, stderr):
        if stream:
            stream.close()
    popen.wait()
