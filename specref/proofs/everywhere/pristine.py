"""Paths are run again where a rule was never called: what it keeps between calls shows.

A rule that remembers a comparison does without it on a later path, whose region would lack a
condition. So a process is split off before the first call. For each path that a proof rests on, a
copy of that process makes one call, its first, with the same rows and choices. The path counts if
both did the same: what is proved is what the rule does at its first call.

A trace that was confirmed at one sample holds at every other of the chart where a path has it: a
first call learns nothing of the rows but the answers that the trace has, and these are the same.

Where processes cannot be split (Windows), a path is run again in this one.
"""

import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from specref.algorithms.decoding import Step
from specref.chance import OutsideChanceError
from specref.proofs.everywhere.number import Reading
from specref.proofs.everywhere.rows import Chart, Entry, Letter, Models, Row
from specref.proofs.everywhere.walk import Choices, Path, Trace, followed, unlike
from specref.vocabulary import Vocabulary

Result = TypeVar("Result")
CAN_SPLIT = hasattr(os, "fork")
KEEPS = (
    "no function of chance and rows: it keeps something from one call to the next. With the same "
    "choices,"
)
FIRST_AND_LATER = ("its first call", "a later one")
LONGEST = 60
"""Seconds that a call may take, as for `watch`."""
PAUSE = 0.5
"""Seconds between two looks at whether a parent process still is there."""


class LostError(Exception):
    """A process ended without an answer."""


class Call(NamedTuple):
    """What a first call needs: the rows that were asked for, at a sample, and the choices."""

    vocabularies: Mapping[Letter, Vocabulary]
    rows: Mapping[Row, tuple[Entry, ...]]
    prime: int
    lookahead: int
    length: int
    choices: Choices


class Pristine:
    """A process in which a rule was never called; to be made before it is called here.

    * `rule`: The length of an outcome -> the step.
    * `doubts`: Whether it may keep something between its calls. If not, no path is run a second
      time: a process for each is most of the time that a proof of a small box takes.
    """

    def __init__(self, rule: Callable[[int], Step], *, doubts: bool = True) -> None:
        self.rule, self.doubts = rule, doubts
        self._process = 0
        self._confirmed: WeakKeyDictionary[Chart, set[tuple[int, Trace]]] = WeakKeyDictionary()
        if not CAN_SPLIT or not doubts:
            return
        self._calls, theirs = multiprocessing.Pipe()
        self._process = os.fork()
        if not self._process:
            self._calls.close()
            _serve(theirs, partial(answer, rule))
        theirs.close()

    def __enter__(self) -> "Pristine":
        return self

    def __exit__(self, *error: object) -> None:
        if self._process:
            self._calls.close()
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
            self._process = 0

    def confirm(self, paths: Iterable[Path], models: Models, lookahead: int, length: int) -> None:
        """Raise unless a first call does the same on each of these paths."""
        confirmed = self._confirmed.setdefault(models.chart, set())
        for path in paths:
            trace = path.trace
            if (length, trace) in confirmed:
                continue
            # Two numbers are told apart for each of these.
            numbers = [*path.weights, *(number for _, number, _ in path.events)]
            models.reading.counted.mistakes += sum(2 * one.size + 1 for one in numbers)
            confirmed.add((length, trace))
            if not self.doubts:
                continue
            # A copy of a vocabulary has nothing that a rule attached to it.
            fresh = {letter: replace(one) for letter, one in models.vocabularies.items()}
            size = models.reading.prime, lookahead, length
            first = self._first(Call(fresh, models.rows, *size, path.choices))
            if isinstance(first, str):
                raise OutsideChanceError(
                    f"{KEEPS} as the first call of a process that was split off it {first}; "
                    "a later call is right, as it is where threads were started before"
                )
            if first != trace:
                raise OutsideChanceError(f"{KEEPS} {unlike(first, trace, FIRST_AND_LATER)}")

    def _first(self, call: Call) -> Trace | str:
        if not self._process:
            return answer(self.rule, call)
        self._calls.send(call)
        found: Trace | str = self._calls.recv()
        return found


def answer(rule: Callable[[int], Step], call: Call) -> Trace | str:
    """What a call does, or raises."""
    try:
        models = _Given(call)
        path, _ = followed(rule(call.length), models, call.lookahead, call.choices, set())
    except BaseException as error:  # SystemExit included
        return f"raises {type(error).__name__}: {error}"
    return path.trace


class _Given(Models):
    """Target and drafter with rows that were given, and no others."""

    def __init__(self, call: Call) -> None:
        self.vocabularies = dict(call.vocabularies)
        self.rows, self._arrays = dict(call.rows), {}
        self.reading = self.path = Reading(call.prime, _no_value)

    def entries(self, row: Row) -> tuple[Entry, ...]:
        if row not in self.rows:
            raise LookupError(f"a row is asked for that no other call asks for: {row}")
        return self.rows[row]


def _no_value(variable: int) -> Fraction:
    raise LookupError(f"variable {variable} has no value here")


def _serve(calls: Connection, work: Callable[[Any], Any]) -> NoReturn:
    """Answer each call in a process that is split off for it, until nobody asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A collection would touch every object, and so copy every page of memory for each call.
    gc.freeze()
    gc.disable()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):  # what a rule prints was printed by its other run
        os.dup2(nowhere, standard)
    with suppress(EOFError, OSError):
        while True:
            call = calls.recv()
            try:
                said = apart(partial(work, call), LONGEST)
            except LostError:
                said = f"does not return within {LONGEST} s, or ends its process"
            calls.send(said)
    os._exit(0)


def apart(work: Callable[[], Result], seconds: int | None = None) -> Result:
    """Do some work in a process that is split off for it; raises what it raises.

    * `work`: What it returns or raises must be picklable.
    * raises `LostError`: It took longer, or ended the process.
    """
    ours, theirs = os.pipe()
    process = os.fork()
    if not process:
        os.close(ours)
        _report(work, theirs, seconds)
    os.close(theirs)
    try:
        with os.fdopen(ours, "rb") as pipe:
            said = pipe.read()
    except BaseException:
        os.kill(process, signal.SIGKILL)
        raise
    finally:
        os.waitpid(process, 0)
    if not said:
        raise LostError
    try:
        result, error = pickle.loads(said)
    except (pickle.UnpicklingError, EOFError):
        raise LostError from None  # it was ended while it wrote
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def _report(work: Callable[[], Any], pipe: int, seconds: int | None) -> NoReturn:
    """Do the work, and write what it returns or raises."""
    if seconds is None:
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    else:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
    try:
        try:
            said = pickle.dumps((work(), None))
        except BaseException as error:  # it is raised where the answer is read
            said = pickle.dumps((None, _sendable(error)))
        with os.fdopen(pipe, "wb") as file:
            file.write(said)
    finally:
        os._exit(0)


def _sendable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _end_with(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(PAUSE)
    os._exit(1)
