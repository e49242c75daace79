"""Somebody's code as a function of a source: it returns tokens, or fails."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from specref.conformance.probing.calls import CannotInterpretError
from specref.conformance.probing.generator import Switch, probed_generator
from specref.conformance.probing.numpy_random import replaced, replacements
from specref.conformance.probing.source import Source
from specref.conformance.probing.swapping import Slot, random_functions, slots
from specref.conformance.probing.tossing import Tosser
from specref.vocabulary import Tokens


@dataclass(frozen=True)
class Failure:
    """The code raised an exception."""

    text: str

    def __str__(self) -> str:
        return self.text


Outcome: TypeAlias = Tokens | Failure


class TorchImportedError(BaseException):
    """The code has just imported torch, whose randomness was not intercepted yet."""


class Program:
    """Code that can be run on any source of randomness.

    Parameters
    ----------
    run : callable
        source -> tokens.
    holder : callable
        The code itself: generators in its closure, its globals or its object are replaced.
    max_runs : int
        After that many runs it is given up.
    """

    def __init__(
        self,
        run: Callable[[Source], Iterable[Any]],
        holder: Callable[..., Any],
        max_runs: int = 500_000,
    ) -> None:
        self._run, self._max_runs = run, max_runs
        self._switch = Switch()
        self.generator = probed_generator(self._switch)
        self._found = list(replacements(self._switch, self.generator))
        self._slots = [(slot, self._stand_in(slot)) for slot in slots(holder, random_functions())]
        self._quiet: Any = {
            kind: "ignore" if treatment == "warn" else treatment
            for kind, treatment in np.geterr().items()
        }
        if "torch" in sys.modules:
            import_module("specref.conformance.probing.torch_random")
        self.runs = 0

    def __call__(self, source: Source) -> Outcome:
        """The tokens, or how the code failed."""
        self.runs += 1
        if self.runs > self._max_runs:
            raise CannotInterpretError(f"more than max_runs = {self._max_runs} runs")
        torch_known = "torch" in sys.modules
        outcome = self._outcome(source)
        if torch_known or "torch" not in sys.modules:
            return outcome
        raise TorchImportedError

    def _outcome(self, source: Source) -> Outcome:
        with self._intercepted(source):
            try:
                return tuple(int(token) for token in self._run(source))
            except Exception as error:
                return Failure(f"{type(error).__name__}: {error}")

    @contextmanager
    def _intercepted(self, source: Source) -> Iterator[None]:
        with ExitStack() as stack:
            self._switch.source = source
            for slot, stand_in in self._slots:
                stack.callback(slot.put, slot.value)
                slot.put(stand_in)
            stack.enter_context(replaced(self._found))
            stack.enter_context(np.errstate(**self._quiet))
            if "torch" in sys.modules:
                stack.enter_context(_torch_randomness(source))
            yield

    def _stand_in(self, slot: Slot) -> Any:
        if isinstance(slot.value, np.random.Generator):
            return self.generator
        named = {id(getattr(module, name)): value for module, name, value in self._found}
        return named.get(id(slot.value), slot.value)


@contextmanager
def _torch_randomness(source: Source) -> Iterator[None]:
    import torch

    from specref.conformance.implementations.torch_state import one_thread
    from specref.conformance.probing.torch_random import TorchRandomness
    from specref.conformance.probing.torch_tracing import Memory, PythonExits

    memory, state = Memory(), torch.get_rng_state()
    with ExitStack() as stack:
        stack.callback(torch.set_rng_state, state)
        stack.enter_context(one_thread())
        stack.enter_context(TorchRandomness(source, memory))
        if isinstance(source, Tosser):
            stack.enter_context(PythonExits(memory))
        yield
