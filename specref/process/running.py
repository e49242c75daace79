"""A running program that answers a line with a line, with timeouts and clean-up."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from specref.contracts.errors import BrokenContractError
from specref.contracts.timeout import HungError
from specref.process.messages import CannotStartError, EndedError, Tail, shown

CHUNK, LONGEST_LINE = 1 << 20, 1 << 26
GRACE = 1.0
LONGEST_POLL = 1e6


class Running:
    """A started program, in a session of its own: Ctrl-C reaches it only through its caller.

    The caller has to `close` it. POSIX only.

    * `command`: The program and its arguments; no shell.
    * `folder`: Its working directory.
    * raises `CannotStartError`: There is no such program, or it may not be executed.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        try:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise CannotStartError(f"{command[0]!r} cannot be started: {error.strerror}") from None
        streams = self._popen.stdin, self._popen.stdout, self._popen.stderr
        self._stdin, self._stdout, stderr = (stream.fileno() for stream in streams if stream)
        self._tail = Tail(stderr)
        os.set_blocking(self._stdin, False)
        self._written, self._answered = bytearray(), False

    def ask(self, line: bytes, timeout: float | None) -> bytes:
        """The line that answers a line.

        * raises `BrokenContractError`: It wrote before it was asked, wrote too much, or ended with
          exit code 0.
        * raises `HungError`: It did not answer in time.
        * raises `EndedError`: It crashed: by a signal, or with an exit code above 0.
        """
        self._check_silent()
        left = memoryview(line)
        deadline = None if timeout is None else time.monotonic() + timeout
        while left or not self._answered:
            ready = self._ready(bool(left), deadline)
            if self._stdout in ready:
                self._read()
            elif self._stdin in ready:
                left = left[self._write(left) :]
            elif deadline is not None and time.monotonic() >= deadline:
                raise HungError(f"did not answer within {timeout:g} s{self._hint()}")
        answer, _, rest = bytes(self._written).partition(b"\n")
        self._written, self._answered = bytearray(rest), False
        return answer

    def close(self, farewell: bytes = b"") -> None:
        """Send a last line, wait a moment for the program to end, and kill it if it does not."""
        try:
            if farewell:
                with contextlib.suppress(OSError):
                    os.write(self._stdin, farewell)
                self._exit_code()
        finally:
            self.kill()
            for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
                if stream:
                    stream.close()
            self._popen.wait()

    def kill(self) -> None:
        """Kill it and its children; safe while another thread waits for its answer."""
        if self._popen.returncode is None:  # afterwards its pid may belong to another process
            self._kill_group()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)

    def _exit_code(self) -> int | None:
        """Its exit code, if it ends within a moment; its children are killed then."""
        deadline = time.monotonic() + GRACE
        while self._popen.poll() is None and time.monotonic() < deadline:
            if self._tail.open:
                self._tail.read()
            time.sleep(0.001)
        if self._popen.returncode is not None:
            self._kill_group()
        return self._popen.returncode

    def _check_silent(self) -> None:
        while not self._written and self._stdout in self._ready(False, time.monotonic()):
            self._read()
        if self._written:
            raise BrokenContractError(
                f"wrote {shown(bytes(self._written))} before it was asked: expected one line for "
                "each request (other output belongs on stderr)"
            )

    def _ready(self, writing: bool, deadline: float | None) -> set[int]:
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if self._tail.open:
            poll.register(self._tail.fd, select.POLLIN)
        if writing:
            poll.register(self._stdin, select.POLLOUT)
        left = LONGEST_POLL
        if deadline is not None:
            left = min(left, 1000 * max(0.0, deadline - time.monotonic()))
        ready = {fd for fd, _ in poll.poll(left)}
        if self._tail.fd in ready:
            self._tail.read()
        return ready

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
        why = " (is stdout flushed after each line?)"
        if self._answered:
            why = f": it wrote {shown(begun)}, but has not read the request to its end"
        elif begun:
            why = f": it wrote {shown(begun)} without an end of line"
        return f"{why}{self._tail}"

    def _end_of_it(self) -> Exception:
        """Its end as an error: a crash, or a broken contract if it left by itself."""
        code = self._exit_code()
        if code is None:
            return BrokenContractError(f"closed its stdin or stdout{self._tail}")
        begun = f" after {shown(bytes(self._written))}" if self._written else ""
        if code == 0:
            return BrokenContractError(
                f"ended with exit code 0{begun}: expected it to answer until `stop` or the end of "
                f"its input{self._tail}"
            )
        how = f"with exit code {code}" if code > 0 else f"by {signal.Signals(-code).name}"
        return EndedError(f"ended {how}{begun}{self._tail}")
