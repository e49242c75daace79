"""Run a campaign: feed it a sampler in batches, on one core or many, until it is decided.

Samples are drawn from a black box in order and with a timeout, on any executor.
"""

import math
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from specref.spoiled import KIT, unspoiled
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.evidence import CampaignCase
from specref.statistics.campaign.verdict import CampaignReport, Verdict
from specref.tracebacks import traceback_lines
from specref.vocabulary import Tokens

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

    `SamplerFailed` if a call raised, or did not answer within `timeout` seconds.
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


Blocks: TypeAlias = Sequence[Tokens] | NDArray[np.int64]
Sampler: TypeAlias = Callable[[str, int, np.random.Generator], Blocks]


class InconclusiveWarning(UserWarning):
    """A campaign found nothing, and could not certify anything either."""


def run(
    campaign: Campaign,
    sampler: Sampler,
    *,
    budget: int,
    seed: int,
    executor: Executor | None = None,
    seconds: float | None = None,
    timeout: float | None = None,
    advance: Callable[[int], None] = lambda trials: None,
    in_flight: int = IN_FLIGHT,
) -> CampaignReport:
    """Draw up to `budget` blocks on every case of a campaign; stop when it is LOSSY.

    Parameters
    ----------
    campaign : Campaign
        With its cases declared.
    sampler : callable
        (name of the case, trials, rng) -> blocks, as `Campaign.add` takes them. With a
        process pool it must be picklable.
    budget : int
        Blocks for each case, fixed beforehand.
    seed : int
        Each batch gets a child of this seed, so the result does not depend on the executor or
        its number of workers.
    executor : concurrent.futures.Executor, optional
        Threads, processes, or any other; results are counted in order.
    seconds : float, optional
        Stop drawing after this long. What was drawn still depends on the seed alone; how
        much, on the machine.
    timeout : float, optional
        How many seconds to wait for a batch.
    advance : callable
        Told the number of blocks after each batch.
    in_flight : int
        How many batches the executor has at a time, of up to 65,536 blocks each: no fewer than
        its workers keep them all busy. The result does not depend on it.

    Returns
    -------
    CampaignReport
        If the sampler fails or stops answering, what it gave until then is judged, the reason
        is in `stopped`, and the verdict is at best INCONCLUSIVE.

    Raises
    ------
    ValueError
        No case is declared, `budget` < 1, `in_flight` < 1, or the campaign's `eps` cannot be
        certified with this budget (the message says what can).
    SpoiledError
        The sampler replaced a part of what judges it.

    Examples
    --------
    >>> from specref.models import hashed_model
    >>> from specref.tables import simulate
    >>> from specref.vocabulary import Vocabulary
    >>> abc = Vocabulary("abc")
    >>> target, drafter = hashed_model(abc, "p"), hashed_model(abc, "q")
    >>> campaign = Campaign(eps=None, seed=1)
    >>> _ = campaign.case(target, drafter)
    >>> def drafter_alone(name, trials, rng):
    ...     return simulate("autoregressive", drafter, drafter, trials=trials, rng=rng).blocks
    >>> str(run(campaign, drafter_alone, budget=10_000, seed=1).verdict)
    'LOSSY'
    """
    _check_budget(campaign, budget)
    if in_flight < 1:
        raise ValueError(f"in_flight = {in_flight}: expected at least 1")
    deadline = time.perf_counter() + (math.inf if seconds is None else seconds)
    seeds = np.random.SeedSequence(seed)
    jobs = (
        (case, trials, Draw(sampler, case.name, trials, seeds.spawn(1)[0]))
        for trials in batches(budget)
        for case in campaign.cases
    )
    with unspoiled(KIT, "the sampler"):
        try:
            for case, trials, blocks in drawn(jobs, executor, timeout, in_flight):
                _add(campaign, case, trials, blocks)
                advance(trials)
                if campaign.decided_lossy or time.perf_counter() > deadline:
                    break
        except SamplerFailed as failure:
            campaign.stopped = str(failure)
        return campaign.report()


def _add(campaign: Campaign, case: CampaignCase, trials: int, blocks: Blocks) -> None:
    try:
        campaign.add(case, blocks)
    except (ValueError, TypeError) as error:
        raise SamplerFailed(f"the sampler gave bad blocks on {case.name}: {error}") from None
    if len(blocks) != trials:
        raise SamplerFailed(f"the sampler gave {len(blocks)} of {trials} blocks on {case.name}")


def _check_budget(campaign: Campaign, budget: int) -> None:
    if budget < 1:
        raise ValueError(f"budget = {budget}: expected at least 1")
    if not campaign.cases:
        raise ValueError("campaign is empty: declare a case with campaign.case")
    for case in campaign.cases:
        needed = campaign.needed(case)
        if needed is not None and needed > budget:
            raise ValueError(
                f"eps = {campaign.eps} needs a budget of {needed:,} on {case.name}, not "
                f"{budget:,} (or eps=None, to look for bugs only)"
            )


def assert_lossless(
    campaign: Campaign,
    sampler: Sampler,
    *,
    budget: int,
    seed: int,
    executor: Executor | None = None,
    seconds: float | None = None,
    timeout: float | None = None,
    strict: bool = False,
) -> CampaignReport:
    """For pytest: fail if the sampler is LOSSY or fails, and warn loudly if that stays open.

    Parameters
    ----------
    campaign : Campaign
        With the cases to sample; with ``eps=None`` it only looks for bugs.
    sampler : callable
        (name of the case, trials, rng) -> blocks.
    budget : int
        Blocks for each case at most.
    seed : int
        Each batch gets a child of it.
    executor : concurrent.futures.Executor, optional
        Where batches are drawn; by default here, one after the other.
    seconds : float, optional
        Stop drawing after this long.
    timeout : float, optional
        How many seconds to wait for a batch.
    strict : bool
        Fail unless the verdict is LOSSLESS_WITHIN_EPS.

    Raises
    ------
    AssertionError
        With the whole report.

    Warns
    -----
    InconclusiveWarning
        The budget could not certify `eps`; the report says how many trials would.
    """
    __tracebackhide__ = True
    report = run(
        campaign,
        sampler,
        budget=budget,
        seed=seed,
        executor=executor,
        seconds=seconds,
        timeout=timeout,
    )
    fail_or_warn(report, strict)
    return report


class Decided(Protocol):
    """A report with a verdict."""

    @property
    def verdict(self) -> Verdict: ...
    @property
    def stopped(self) -> str | None: ...


def fail_or_warn(report: Decided, strict: bool) -> None:
    """Fail a test where a report is LOSSY or was stopped, and warn where it is INCONCLUSIVE."""
    __tracebackhide__ = True
    inconclusive = report.verdict == Verdict.INCONCLUSIVE
    if report.verdict == Verdict.LOSSY or report.stopped or (strict and inconclusive):
        raise AssertionError(str(report))
    if inconclusive:
        warnings.warn(InconclusiveWarning(str(report)), stacklevel=3)
