"""Requests to a program, one at a time; it is restarted when it has ended, until `close`."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specref.contracts.errors import BrokenContractError
from specref.contracts.timeout import HungError
from specref.process.declared import Declaration, read_declaration
from specref.process.messages import (
    CannotStartError,
    EndedError,
    SamplerError,
    read_message,
    request,
)
from specref.process.running import Running


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
