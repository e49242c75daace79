"""Draws samples from a black box in batches, on any executor, in order and with a timeout."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from specref.tracebacks import traceback_lines

FIRST_BATCH, LARGEST_BATCH = 1_000, 1 << 16
IN_FLIGHT = 16


class Named(Protocol):
    """Anything with a name for error messages."""

    @property
    def name(self) -> str: ...


Case = TypeVar("Case", bound=Named)
Samples = TypeVar("Samples")
Job: TypeAlias = tuple[Case, int, Callable[[], Samples]]
Drawn: TypeAlias = tuple[Case, int, Samples]
Waiting: TypeAlias = deque[tuple[Case, int, Future[Samples]]]


class SamplerFailed(Exception):  # noqa: N818
    """The sampler raised, gave too few or bad samples, or did not answer in time."""


class Draw(Generic[Samples]):
    """A picklable call of a sampler with its own seed."""

    def __init__(
        self,
        sampler: Callable[[str, int, np.random.Generator], Samples],
        name: str,
        trials: int,
        seed: np.random.SeedSequence,
    ) -> None:
        self.sampler, self.name, self.trials, self.seed = sampler, name, trials, seed

    def __call__(self) -> Samples:
        return self.sampler(self.name, self.trials, np.random.default_rng(self.seed))


def batches(budget: int) -> Iterator[int]:
    """Batch sizes: 1,000, doubling to 65,536, up to the budget."""
    size = FIRST_BATCH
    while budget > 0:
        yield min(size, budget)
        budget -= size
        size = min(2 * size, LARGEST_BATCH)


def drawn(
    jobs: Iterator[Job[Case, Samples]],
    executor: Executor | None,
    timeout: float | None,
    in_flight: int = IN_FLIGHT,
) -> Iterator[Drawn[Case, Samples]]:
    """The results of jobs, in order; a few are in flight at a time.

    * `jobs` (iterator of (case, trials, call))
    * `timeout`: How many seconds to wait for each.
    * `in_flight`: How many jobs the executor has at a time.
    * raises `SamplerFailed`: A call raised, or did not answer in time.
    """
    if executor is None:
        for case, trials, draw in jobs:
            yield case, trials, _answer(draw, case, timeout)
        return
    waiting: Waiting[Case, Samples] = deque()
    try:
        for case, trials, draw in jobs:
            waiting.append((case, trials, executor.submit(draw)))
            if len(waiting) >= in_flight:
                yield _first_of(waiting, timeout)
        while waiting:
            yield _first_of(waiting, timeout)
    finally:
        for _, _, future in waiting:
            future.cancel()


def _first_of(waiting: Waiting[Case, Samples], timeout: float | None) -> Drawn[Case, Samples]:
    case, trials, future = waiting.popleft()
    return case, trials, _result(future, case, timeout)


def _answer(draw: Callable[[], Samples], case: Named, timeout: float | None) -> Samples:
    """Call the sampler on a thread of its own, which is left behind if it does not return."""
    future: Future[Samples] = Future()

    def work() -> None:
        try:
            future.set_result(draw())
        except BaseException as error:  # handed over to the waiting thread
            future.set_exception(error)

    if timeout is None:
        work()
    else:
        threading.Thread(target=work, daemon=True).start()
    return _result(future, case, timeout)


def _result(future: Future[Samples], case: Named, timeout: float | None) -> Samples:
    try:
        return future.result(timeout)
    except Exception as error:  # a black box may raise anything
        if not future.done():
            late = f"the sampler did not answer within {timeout} s on {case.name}"
            raise SamplerFailed(late) from None
        lines = traceback_lines(error)
        reason = f"the sampler raised {type(error).__name__} on {case.name}: {error}"
        raise SamplerFailed("\n".join([reason, *lines])) from error
