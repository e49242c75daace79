"""A program in any language as an implementation of the contract ``verify``.

It is started once, and answers requests one at a time; it is restarted when it has ended.
"""

import contextlib
import os
import select
import shlex
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np

from specref.arrays import Floats, Ints
from specref.coins import Coins
from specref.contracts.capabilities import Capabilities
from specref.contracts.errors import BrokenContractError
from specref.contracts.table import VERIFY
from specref.contracts.timeout import TIMEOUT, HungError
from specref.probing.numpy_random import is_intercepted
from specref.probing.source import CannotInterpretError
from specref.process.messages import (
    CHUNK,
    CannotStartError,
    EndedError,
    SamplerError,
    Tail,
    batch_fields,
    coin_fields,
    read_blocks,
    read_message,
    request,
    shown,
)

LONGEST_LINE = 1 << 26
GRACE = 1.0
LONGEST_POLL = 1e6


class Running:
    """A started program, in a session of its own: Ctrl-C reaches it only through its caller.

    The caller has to `close` it. POSIX only.
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

        That it ends with exit code 0 breaks the contract; `EndedError` is for a crash.
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
    """A program that answers numbered requests; `name` is its name in messages."""

    def __init__(
        self, name: str, words: Sequence[str], folder: Path, timeout: float | None
    ) -> None:
        self.name, self.words, self.folder, self.timeout = name, words, folder, timeout
        self._lock, self._id, self._closed = threading.Lock(), 0, False
        self._hung: HungError | None = None
        self._running: Running | None = None

    def ask(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; restarts a program that has ended, not one that hung."""
        with self._lock:
            if self._hung:
                raise self._hung
            if self._running is None:
                self.start()
            return self._exchanged(name, fields)

    def start(self) -> Declaration:
        """Start it, and return what it declares about itself."""
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


SEEDS = 2**53
KEYWORDS = {"coins": "coins", "seed": "rng"}


class Process:
    """A program that gets batches as JSON lines, and can be judged like a function.

    `check`, `probe_block` and the others accept it like a function: it has the
    parameters `coins`, `rng` or both if the program takes random numbers or a seed, and carries
    the capabilities that the program declares. A program that ends is restarted for the next
    request; one that hangs is killed, and not asked again.

    Parameters
    ----------
    command : str
        The program and its arguments, quoted as for a shell; no shell is used.
    folder : Path, optional
        Its working directory; by default the current one.
    timeout : float or None
        Seconds for each answer. A timeout of `check` applies in addition.

    Attributes
    ----------
    declared : Declaration
        What the program declares about itself.

    Raises
    ------
    CannotStartError
        It cannot be started, or does not answer `start` as specified in docs/other-languages.md.
    ValueError
        The command is empty, its quotes do not match, or `timeout` is not positive.

    Examples
    --------
    >>> import sys
    >>> with Process(f"{sys.executable} -m specref.examples.harnesses.sampler") as program:
    ...     p = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    ...     print(program.declared)
    ...     program(p, p[:, :1], np.array([[1]]), rng=np.random.default_rng(1))
    my-sampler (Python)
    (array([[1, 0]]), array([2]))
    """

    specref_claimable = CLAIMS
    specref_as_text = True

    def __init__(
        self, command: str, folder: Path | None = None, timeout: float | None = TIMEOUT
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise ValueError(
                f"timeout = {timeout}: expected a positive number of seconds, or None"
            )
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"command = {command!r}: {error}") from None
        if not words:
            raise ValueError(f"command = {command!r}: expected a program")
        self.command = command
        self._session = Session(command, words, folder or Path.cwd(), timeout)
        weakref.finalize(self, self._session.close)
        self.declared = self._session.start()
        self.specref_capabilities = self.declared.capabilities
        self.__signature__ = _signature(self.declared.takes)
        self.__name__ = f"Process({command!r})"

    def __repr__(self) -> str:
        return self.__name__

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(
        self,
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator | None = None,
        coins: Coins | None = None,
        lens: Ints | None = None,
    ) -> tuple[Any, Any]:
        """Let the program verify a batch: see `Verify`.

        Raises
        ------
        BrokenContractError, EndedError, SamplerError
            There is no answer, or no valid one.
        TypeError
            An array is not a NumPy array, or `rng` or `coins` is missing.
        ValueError
            The program was closed.
        """
        arrays = {"target_probs": target_probs, "draft_tokens": draft_tokens}
        for name, array in (arrays | {"draft_probs": draft_probs, "lens": lens}).items():
            optional = array is None and name in ("draft_probs", "lens")
            if not optional and not isinstance(array, np.ndarray):
                kind = type(array).__name__
                raise TypeError(f"{name} is a {kind}: expected an array of NumPy")
        lens = (draft_tokens >= 0).sum(axis=1) if lens is None else lens
        fields = batch_fields(target_probs, draft_probs, draft_tokens, lens)
        fields |= self._randomness(rng, coins)
        message = self._session.ask("verify", fields)
        return read_blocks(message, len(draft_tokens), draft_tokens.shape[1] + 1)

    def close(self) -> None:
        """Send `stop`, and kill the program if it does not end at once, or is busy.

        It is not restarted: later calls raise.
        """
        self._session.close()

    def _randomness(self, rng: np.random.Generator | None, coins: Coins | None) -> dict[str, Any]:
        for name, value in {"seed": rng, "coins": coins}.items():
            if name in self.declared.takes and value is None:
                raise TypeError(f"{KEYWORDS[name]} is missing: the program takes {name}")
        if self.declared.takes == ("seed",) and rng is not None and is_intercepted(rng):
            raise CannotInterpretError(f"{self.command!r} draws its own numbers, from a seed")
        fields: dict[str, Any] = {}
        if rng is not None and "seed" in self.declared.takes:
            fields["seed"] = int(rng.integers(SEEDS))
        if coins is not None and "coins" in self.declared.takes:
            fields |= coin_fields(coins)
        return fields


def _signature(takes: tuple[str, ...]) -> Signature:
    """The parameters that the kit looks for."""
    positional = ("target_probs", "draft_probs", "draft_tokens")
    named = (*(KEYWORDS[one] for one in takes), "lens")
    return Signature(
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in positional]
        + [Parameter(name, Parameter.KEYWORD_ONLY) for name in named]
    )
