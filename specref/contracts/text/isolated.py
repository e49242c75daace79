"""Asks an engine in a process of its own: if that dies, the kit goes on, and says so."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from specref.contracts.text.contract import PLAIN, SPECULATIVE, Engine, Text
from specref.contracts.timeout import deadline_here, described
from specref.vocabulary import Tokens


class EngineDiedError(Exception):
    """The process of an engine ended before it answered."""


class EngineRaisedError(Exception):
    """The engine raised in its process; the message is the error."""


def isolated(engine: Engine, load: Callable[[], Any]) -> Engine:
    """The same engine, asked in another process, which is started when it is first needed.

    Parameters
    ----------
    engine : Engine
        Its functions are not called.
    load : callable
        Returns the engine; picklable, since it is called in the other process.
    """
    child = Child(load)
    plain = None if engine.plain is None else partial(child.ask, PLAIN)
    return replace(engine, speculative=partial(child.ask, SPECULATIVE), plain=plain)


class Child:
    """A process that has loaded an engine; one that died is replaced for the next question."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self.load = load
        self.process: Any = None
        self.pipe: Connection | None = None
        # A question that is given up while its process starts would leave that process behind.
        self.starting = threading.Lock()

    def ask(self, mode: str, prompt: Tokens, budget: int, seed: int) -> Text:
        """The answer of a mode.

        Raises
        ------
        EngineDiedError, EngineRaisedError
            There is none.
        """
        waiting, given_up = True, False

        def abandoned() -> None:
            nonlocal given_up
            with self.starting:
                given_up = True
                if waiting:
                    self.stop()

        with deadline_here().releasing(abandoned):
            with self.starting:
                if given_up:
                    raise EngineDiedError("its question was given up")
                pipe = self.pipe or self._start()
                process = self.process
            try:
                pipe.send((mode, prompt, budget, seed))
                found = pipe.recv()
            except (EOFError, OSError):
                process.join()
                with self.starting:
                    self.pipe = None if self.pipe is pipe else self.pipe
                raise EngineDiedError(
                    f"its process ended with {_ending(process.exitcode)}"
                ) from None
            finally:
                waiting = False
        if isinstance(found, str):
            raise EngineRaisedError(found)
        text: Text = found
        return text

    def stop(self) -> None:
        process, self.pipe = self.process, None
        if process is not None:
            process.kill()
            process.join()

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.load), daemon=True)
        self.process.start()
        other.close()
        return self.pipe


def serve(pipe: Connection, load: Callable[[], Any]) -> None:
    """Answer questions until the pipe is closed; what is printed goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the kit ends this process
    sys.stdout.flush()
    os.dup2(2, 1)
    with suppress(EOFError):
        engine = load()
        while True:
            mode, *question = pipe.recv()
            try:
                raw = engine.mode(mode)(*question)
                text = raw if isinstance(raw, Text) else Text(raw)
                tokens = text.tokens
                listed: Any = tokens.tolist() if hasattr(tokens, "tolist") else tokens
                pipe.send(replace(text, tokens=listed))
            except BaseException as error:  # user code may raise anything
                pipe.send(described(error))


def _ending(code: int | None) -> str:
    """How a process ended.

    Examples
    --------
    >>> _ending(-11), _ending(3)
    ('signal SIGSEGV', 'exit code 3')
    """
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"
