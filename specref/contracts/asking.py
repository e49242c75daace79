"""Asks an engine for texts: checks its answers, counts its drafts, keeps standard output clean.

In a process of its own, if that is wanted: if that dies, the kit goes on, and says so.
"""

import ctypes
import io
import itertools
import math
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from numbers import Integral
from typing import Any, TextIO

import numpy as np

from specref.arrays import NO_TOKEN
from specref.contracts.contract import Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.sampling import Drawn
from specref.contracts.text import PLAIN, SPECULATIVE, Asked, Engine, Journal, Text
from specref.contracts.timeout import (
    Deadline,
    HungError,
    deadline_here,
    described,
    user_code,
    within,
)
from specref.vocabulary import Tokens

SEEDS = 2**31 - 1
"""Seeds are below this, so that every engine takes them."""


def read_text(raw: Any, engine: Engine, budget: int) -> Text:
    """Check and convert an answer."""
    text = raw if isinstance(raw, Text) else Text(raw)
    values: Any = text.tokens
    try:
        values = values.tolist() if hasattr(values, "tolist") else values
        tokens = tuple(itertools.islice(values, budget + 1))
    except TypeError:
        kind = type(raw).__name__
        raise BrokenContractError(f"answered a {kind}: expected a Text, or tokens") from None
    size = None if engine.law is None else len(engine.law.vocabulary)
    for index, token in enumerate(tokens):
        known = isinstance(token, Integral) and not isinstance(token, bool)
        if not known or not 0 <= int(token) < (size or math.inf):
            below = "" if size is None else f" < {size}"
            raise BrokenContractError(
                f"token {index} is {token!r}: expected 0 <= id{below} (padding, or the ids of "
                "another tokenizer?)"
            )
    if engine.end in tokens[:-1]:
        raise BrokenContractError(f"went on after EOS: {tokens[: budget + 1]}")
    if len(tokens) > budget:
        raise BrokenContractError(f"answered more than {budget} tokens, its budget: {tokens}, …")
    if len(tokens) < budget and not (tokens and tokens[-1] == engine.end):
        raise BrokenContractError(
            f"answered {len(tokens)} tokens and no EOS: expected {budget}, its budget"
        )
    return Text(tuple(map(int, tokens)), *_counters(text))


def _counters(text: Text) -> tuple[int | None, int | None]:
    both = text.proposed, text.accepted
    if both == (None, None):
        return None, None
    known = both if text.proposed is not None else both[1:]
    for one in known:
        if not isinstance(one, Integral) or isinstance(one, bool) or one < 0:
            raise BrokenContractError(f"(proposed, accepted) is {both}: expected counts")
    proposed, accepted = (None if one is None else int(one) for one in both)
    if proposed is not None and accepted is not None and accepted > proposed:
        raise BrokenContractError(f"accepted = {accepted}: expected at most proposed, {proposed}")
    return proposed, accepted


@dataclass
class Drafts:
    """What the counters of an engine said of the texts of a sampler.

    * `texts`, `uncounted`: Texts, and those without counters.
    * `proposed`, `accepted`: Draft tokens; `proposed` is None if some texts only count what was
      accepted.
    """

    texts: int = 0
    uncounted: int = 0
    proposed: int | None = 0
    accepted: int = 0

    def add(self, text: Text) -> None:
        """Count the drafts of one text."""
        self.texts += 1
        self.uncounted += text.accepted is None
        self.accepted += text.accepted or 0
        if text.accepted is not None:
            known = self.proposed is not None and text.proposed is not None
            self.proposed = (self.proposed or 0) + (text.proposed or 0) if known else None

    @property
    def missing(self) -> str:
        """Why the texts say nothing of speculation; empty if drafts were accepted in them."""
        if self.uncounted:
            return (
                f"{self.uncounted:,} of {self.texts:,} texts came without counts of proposed and "
                "accepted drafts"
            )
        if self.proposed == 0:
            return f"no draft was proposed in {self.texts:,} texts"
        if not self.accepted:
            some = "proposed" if self.proposed is None else f"{self.proposed:,} proposed"
            return f"none of {some} drafts was accepted in {self.texts:,} texts"
        return ""

    def __str__(self) -> str:
        if self.proposed is None:
            return f"{self.accepted:,} drafts accepted, of how many is not counted"
        return f"{self.accepted:,} of {self.proposed:,} drafts accepted"


class Asking:
    """A sampler of the texts of an engine, in one mode; one question at a time.

    * `journal`: Where texts are written, and taken from if an earlier run got them.
    * `budget`: Of every text; by default the engine's `tokens`.
    """

    def __init__(
        self,
        subject: Subject,
        mode: str,
        journal: Journal | None = None,
        budget: int | None = None,
    ) -> None:
        assert isinstance(subject.function, Engine)
        self.engine, self.mode, self.journal = subject.function, mode, journal
        self.budget = budget or self.engine.tokens
        self.timeout, self.advance = subject.timeout, subject.advance
        self.drafts, self.taken = Drafts(), 0

    def texts(self, questions: list[tuple[Tokens, int, int]]) -> list[Text]:
        """The answers to (prompt, budget, seed), in order."""
        deadline, found = Deadline(), list[Text]()
        unwritten: list[OSError] = []

        def ask() -> None:
            for prompt, budget, seed in questions:
                asked = Asked(self.mode, prompt, budget, seed)
                text = self.journal and self.journal.take(asked)
                if text:
                    self.taken += 1
                else:
                    text = self._answer(asked)
                    try:
                        if self.journal:
                            self.journal.write(asked, text)
                    except OSError as error:
                        unwritten.append(error)
                        return
                deadline.restart()
                self.drafts.add(text)
                found.append(text)
                self.advance(1)

        try:
            within(self.timeout, ask, deadline)
        except HungError as error:
            last = _asked(*questions[min(len(found), len(questions) - 1)])
            error.args = (f"{self.mode} mode {error} ({last}), after {len(found):,} texts",)
            raise
        if unwritten:
            raise unwritten[0]
        return found

    def __call__(self, trials: int, rng: np.random.Generator) -> Drawn:
        """Texts at all prompts in turn, each with a seed of its own."""
        prompts, budget = self.engine.prompts, self.budget
        place, seeds = np.arange(trials) % len(prompts), rng.integers(SEEDS, size=trials)
        pairs = zip(place.tolist(), seeds.tolist(), strict=True)
        texts = self.texts([(prompts[index], budget, seed) for index, seed in pairs])
        blocks = np.full((trials, budget), NO_TOKEN)
        for row, text in zip(blocks, texts, strict=True):
            row[: len(text.tokens)] = text.tokens
        return place, blocks, np.full((trials, 1), NO_TOKEN)

    def _answer(self, asked: Asked) -> Text:
        question = asked[1:]
        with user_code(lambda what: f"{self.mode} mode {what} ({_asked(*question)})"):
            raw = self.engine.mode(self.mode)(*question)
            return read_text(raw, self.engine, asked.budget)


def _asked(prompt: Tokens, budget: int, seed: int) -> str:
    return f"prompt {prompt}, budget {budget}, seed {seed}"


@contextmanager
def stdout_to(stream: TextIO, file: int) -> Iterator[None]:
    """Send what this process prints, be it by Python or C, to a stream and its file descriptor."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(file, 1)
    try:
        with redirect_stdout(stream):
            yield
    finally:
        stream.flush()
        if os.name == "posix":
            ctypes.CDLL(None).fflush(None)  # what C has buffered
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def printed() -> Iterator[list[str]]:
    """A list that holds, on leaving, what was printed to standard output, if anything."""
    found: list[str] = []
    with tempfile.TemporaryFile(buffering=0) as file:
        stream = io.TextIOWrapper(file, "utf-8", write_through=True)
        with stdout_to(stream, file.fileno()):
            yield found
        stream.detach()
        file.seek(0)
        found += filter(None, [file.read().decode(errors="replace")])


class EngineDiedError(Exception):
    """The process of an engine ended before it answered."""


class EngineRaisedError(Exception):
    """The engine raised in its process; the message is the error."""


def isolated(engine: Engine, load: Callable[[], Any]) -> Engine:
    """The same engine, asked in another process, which is started when it is first needed.

    * `load`: Returns the engine; picklable, since it is called in the other process.
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
        """The answer of a mode."""
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
