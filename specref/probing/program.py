"""User code as a function of a source of randomness: it returns tokens, or fails."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from specref.contracts.timeout import deadline_here
from specref.probing.calls import CannotInterpretError, here
from specref.probing.numpy_random import ProbedGenerator, replacements
from specref.probing.source import Interception, Source, intercepting
from specref.probing.swapping import Swap, slots
from specref.vocabulary import Tokens

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
