"""Requests to a program, one at a time; it is restarted when it has ended, until `close`."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from specref.contracts.capabilities import Capabilities
from specref.contracts.errors import BrokenContractError
from specref.contracts.table import VERIFY
from specref.contracts.timeout import HungError
from specref.process.messages import (
    CannotStartError,
    EndedError,
    SamplerError,
    Tail,
    read_message,
    request,
    shown,
)

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


TAKES = ("coins", "seed")
# Claims about arrays in memory, or for other contracts.
ELSEWHERE = ("arrays", "device", "inputs", "in_place", "metric", "repeats", "empty_trees", "nan")
CLAIMS = tuple(field.name for field in fields(Capabilities) if field.name not in ELSEWHERE)


@dataclass(frozen=True)
class Declaration:
    """The answer to `start`.

    * `takes`: The randomness that it takes: ``coins``, ``seed``, both, or nothing if it has its
      own.
    """

    name: str
    version: str
    language: str
    takes: tuple[str, ...]
    capabilities: Capabilities

    def __str__(self) -> str:
        return " ".join(filter(None, [self.name, self.version, f"({self.language})"]))


def read_declaration(message: dict[str, Any]) -> Declaration:
    """Read the answer to `start`.

    * raises `BrokenContractError`: A field is missing or invalid, or a claim is unknown.

    Examples
    --------
    >>> said = {"name": "toy", "language": "Rust", "contract": "verify", "takes": ["seed"]}
    >>> print(read_declaration(said | {"claims": {"ragged": False}}))
    toy (Rust)
    """
    words = {name: _word(message, name) for name in ("name", "language", "contract")}
    if words["contract"] != str(VERIFY):
        raise BrokenContractError(f"contract is {words['contract']!r}: expected 'verify'")
    takes = message.get("takes")
    if not isinstance(takes, list) or any(one not in TAKES for one in takes):
        raise BrokenContractError(f"takes is {takes!r}: expected a list of 'coins' and 'seed'")
    return Declaration(
        words["name"],
        _word({"version": ""} | message, "version"),
        words["language"],
        tuple(one for one in TAKES if one in takes),
        _claimed(message.get("claims", {})),
    )


def _word(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str) or not value.isprintable():
        raise BrokenContractError(f"{name} is {value!r}: expected a string of one line")
    return value


def _claimed(claims: object) -> Capabilities:
    if not isinstance(claims, dict):
        raise BrokenContractError(f"claims is {claims!r}: expected an object")
    for name in claims.keys() - set(CLAIMS):
        raise BrokenContractError(
            f"claim {name!r} is unknown: expected one of {', '.join(CLAIMS)}"
        )
    try:
        return Capabilities(**claims)
    except (ValueError, TypeError) as error:
        raise BrokenContractError(f"claims: {error}") from None


class Session:
    """A program that answers numbered requests.

    * `name`: Its name in messages.
    * `words`: The program and its arguments.
    * `timeout`: Seconds for each answer.
    """

    def __init__(
        self, name: str, words: Sequence[str], folder: Path, timeout: float | None
    ) -> None:
        self.name, self.words, self.folder, self.timeout = name, words, folder, timeout
        self._lock, self._id, self._closed = threading.Lock(), 0, False
        self._hung: HungError | None = None
        self._running: Running | None = None

    def ask(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request.

        * raises `BrokenContractError`, `EndedError`, `SamplerError`: There is no answer, or no
          valid one.
        * raises `ValueError`: The session is closed.
        """
        with self._lock:
            if self._hung:
                raise self._hung
            if self._running is None:
                self.start()
            return self._exchanged(name, fields)

    def start(self) -> Declaration:
        """Start it, and return what it declares about itself.

        * raises `CannotStartError`: It cannot be started, or does not answer as it should.
        * raises `ValueError`: The session is closed.
        """
        self._check_open()
        self._running, self._id = Running(self.words, self.folder), -1
        try:
            self._check_open()  # meanwhile another thread may have closed it
            return read_declaration(self._exchanged("start", {}))
        except BaseException as error:
            self._discard()
            if isinstance(error, BrokenContractError | EndedError | SamplerError):
                said = "answered with the error: " * isinstance(error, SamplerError)
                message = f"{self.name!r}, asked to start, {said}{error}"
                raise CannotStartError(message) from None
            raise

    def close(self) -> None:
        """Send `stop`, and kill the program if it does not end at once, or is busy."""
        self._closed = True
        running = self._running
        if running and self._lock.acquire(blocking=False):
            try:
                running.close(request(self._id + 1, "stop"))
            finally:
                self._running = None
                self._lock.release()
        elif running:
            running.kill()  # the thread that waits for it finds it ended, and cleans up

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self.name!r} is closed")

    def _exchanged(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        assert self._running is not None
        self._id += 1
        line = request(self._id, name, **fields)
        try:
            return read_message(self._running.ask(line, self.timeout), self._id)
        except SamplerError:
            raise
        except BaseException as error:  # what it writes from now on is not an answer
            self._hung = error if isinstance(error, HungError) else None
            self._discard()
            raise

    def _discard(self) -> None:
        if self._running:
            self._running.close()
            self._running = None
