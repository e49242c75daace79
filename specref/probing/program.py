"""User code as a function of a source of randomness: it returns tokens, or fails.

Generators that it holds in its closure, its globals or its object are replaced while a run is
intercepted. Several runs, even of one function, may overlap: the last one to end restores what was
there before the first started.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

import numpy as np

from specref.contracts.timeout import deadline_here
from specref.probing.numpy_random import (
    MODULES,
    ProbedGenerator,
    Watched,
    is_random,
    replacements,
    stand_in,
    stands_in,
)
from specref.probing.source import CannotInterpretError, Interception, Source, here, intercepting
from specref.vocabulary import Tokens

DEEPEST = 4
EMPTY = object()


@dataclass(frozen=True)
class Slot:
    """A place that holds something random: a cell, or a key of a dictionary.

    * `value`: A `numpy.random.Generator`, or a random function imported by name.
    """

    holder: Any
    key: str
    value: Any

    def put(self, value: object) -> None:
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        else:
            self.holder[self.key] = value

    def content(self) -> Any:
        """The current value; `EMPTY` if there is none."""
        if not isinstance(self.holder, CellType):
            return self.holder.get(self.key, EMPTY)
        try:
            return self.holder.cell_contents
        except ValueError:
            return EMPTY


@dataclass
class _Use:
    """The original value of a slot, or class of the modules, and how many runs replace it."""

    before: Any
    users: int = 0


_LOCK = threading.Lock()
_slots: dict[tuple[int, str], _Use] = {}
_modules = _Use(ModuleType)


class Swap:
    """Puts stand-ins in all slots, and replaces the modules' class, until `undo` is called."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        with _LOCK:
            self._taken = [slot for slot in slots if _take(slot)]
            _modules.users += 1
            for module in MODULES:
                module.__class__ = Watched
        self._done = False

    def undo(self) -> None:
        """Restore everything that no other run uses; later calls do nothing."""
        with _LOCK:
            if self._done:
                return
            self._done = True
            for slot in self._taken:
                _give_back(slot)
            _modules.users -= 1
            for module in MODULES if not _modules.users else ():
                module.__class__ = _modules.before


def _take(slot: Slot) -> bool:
    key = id(slot.holder), slot.key
    if key not in _slots:
        content = slot.content()
        if not is_random(content) or stands_in(content):
            return False
        _slots[key] = _Use(content)
        slot.put(stand_in(content))
    _slots[key].users += 1
    return True


def _give_back(slot: Slot) -> None:
    key = id(slot.holder), slot.key
    _slots[key].users -= 1
    if _slots[key].users:
        return
    before, content = _slots.pop(key).before, slot.content()
    # A value that the code has put there meanwhile is kept.
    if stands_in(content):
        slot.put(before)


def slots(function: Callable[..., Any]) -> list[Slot]:
    """The places where a function holds generators, or random functions imported by name."""
    found: dict[tuple[int, str], Slot] = {}
    for slot in _walk(function, DEEPEST, set()):
        if is_random(slot.value):
            found[id(slot.holder), slot.key] = slot
    return list(found.values())


def _walk(thing: Any, depth: int, seen: set[int]) -> Iterator[Slot]:
    if depth == 0 or id(thing) in seen:
        return
    seen.add(id(thing))
    for slot in _held(thing):
        yield slot
        yield from _walk(slot.value, depth - 1, seen)


def _held(thing: Any) -> Iterator[Slot]:
    if isinstance(thing, FunctionType):
        yield from _of_function(thing)
    elif isinstance(thing, MethodType):
        yield Slot({}, "function", thing.__func__)
        yield from _of_dictionary(getattr(thing.__self__, "__dict__", {}))
    elif isinstance(thing, partial):
        yield Slot({}, "function", thing.func)
        yield from _of_dictionary(thing.keywords)
    elif not isinstance(thing, type | ModuleType):
        yield from _of_dictionary(getattr(thing, "__dict__", {}))
        call = vars(type(thing)).get("__call__")
        if isinstance(call, FunctionType):
            yield Slot({}, "__call__", call)


def _of_function(function: FunctionType) -> Iterator[Slot]:
    for cell in function.__closure__ or ():
        try:
            yield Slot(cell, "", cell.cell_contents)
        except ValueError:
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield Slot(function.__globals__, name, function.__globals__[name])


def _of_dictionary(held: Any) -> Iterator[Slot]:
    if isinstance(held, dict):
        yield from [Slot(held, key, value) for key, value in held.items()]


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


MORE_THAN = "more than"
CALLS_A_RUN = 10
ENOUGH, START = 0.15, 0.1
"""The share of runs within which searches end, and of calls that any number of runs may take."""


@dataclass(frozen=True)
class Failure:
    """An exception that the code raised."""

    text: str

    def __str__(self) -> str:
        return self.text


Outcome: TypeAlias = Tokens | Failure


def is_endless(reason: str | None) -> bool:
    """Whether code could not be interpreted because it draws too many numbers."""
    return reason is not None and reason.startswith(MORE_THAN)


class TorchImportedError(BaseException):
    """The code has just imported torch, whose randomness was not intercepted yet."""


class Program:
    """Code that can be run on any source of randomness.

    * `run`: source -> tokens.
    * `holder`: The code itself; generators in its closure, its globals or its object are replaced.
    * `max_runs`: The most runs before `CannotInterpretError` is raised; and the most calls for
      random numbers in all runs together, divided by `CALLS_A_RUN`. Runs of so many calls that
      these would not be enough end earlier.
    """

    def __init__(
        self,
        run: Callable[[Source], Iterable[Any]],
        holder: Callable[..., Any],
        max_runs: int = 500_000,
    ) -> None:
        self._run, self._max_runs = run, max_runs
        self._running: Interception | None = None
        self.generator = ProbedGenerator(np.random.PCG64(0))
        self.generator.elsewhere = self._drawn_elsewhere
        self._answers = replacements(self.generator)
        self._slots = slots(holder)
        self._quiet: Any = {
            kind: "ignore" if treatment == "warn" else treatment
            for kind, treatment in np.geterr().items()
        }
        if "torch" in sys.modules:
            import_module("specref.probing.torch_random")
        self.runs = self._calls = 0

    def __call__(self, source: Source) -> Outcome:
        """Run the code: the tokens, or its failure."""
        deadline_here().restart()
        self.runs += 1
        if self.runs > self._max_runs:
            raise CannotInterpretError(f"{MORE_THAN} max_runs = {self._max_runs} runs")
        pace = max(START, self.runs / (ENOUGH * self._max_runs))
        most = int(CALLS_A_RUN * self._max_runs * min(1, pace))
        if self._calls > most:
            raise CannotInterpretError(
                f"{MORE_THAN} {most:,} calls for numbers in {self.runs} runs"
            )
        torch_known = "torch" in sys.modules
        outcome: Outcome
        with self._intercepted(source):
            try:
                outcome = tuple(int(token) for token in self._run(source))
            except Exception as error:
                outcome = Failure(f"{type(error).__name__}: {error}")
        self._calls += source.calls
        if source.problem is not None:
            raise source.problem
        if not torch_known and "torch" in sys.modules:
            raise TorchImportedError
        return outcome

    @contextmanager
    def _intercepted(self, source: Source) -> Iterator[None]:
        interception, swap = Interception(source, self._answers), Swap(self._slots)

        def release() -> None:
            interception.abandoned = not interception.over
            swap.undo()

        with ExitStack() as stack:
            stack.enter_context(deadline_here().releasing(release))
            self._running = interception
            stack.enter_context(intercepting(interception))
            stack.enter_context(np.errstate(**self._quiet))
            if "torch" in sys.modules:
                stack.enter_context(_torch_randomness(source))
            yield

    def _drawn_elsewhere(self, name: str) -> None:
        running = self._running
        if running is not None and not running.over:
            running.source.problem = CannotInterpretError(
                f"{here(name)}: called in another thread, where nothing is intercepted"
            )


@contextmanager
def _torch_randomness(source: Source) -> Iterator[None]:
    from specref.contracts.process_state import one_thread
    from specref.probing.torch_random import TorchRandomness
    from specref.probing.torch_tracing import Memory, PythonExits

    memory = Memory()
    with ExitStack() as stack:
        stack.callback(memory.settle)
        stack.enter_context(one_thread())
        stack.enter_context(TorchRandomness(source, memory))
        if source.dtype is object:  # its numbers are lazy
            stack.enter_context(PythonExits(memory))
        yield
