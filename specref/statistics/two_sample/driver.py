"""Run a two-sample test: feed it both samplers in batches, until it is decided."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from specref.spoiled import KIT, unspoiled
from specref.statistics.campaign.driver import (
    Draw,
    Job,
    SamplerFailed,
    batches,
    drawn,
    fail_or_warn,
)
from specref.statistics.two_sample.bets import Texts
from specref.statistics.two_sample.bounds import PARTS, least_trials
from specref.statistics.two_sample.test import TwoSample, TwoSampleReport

TextSampler: TypeAlias = Callable[[int, np.random.Generator], Texts]


def run_two_sample(
    test: TwoSample,
    speculative: TextSampler,
    plain: TextSampler,
    *,
    budget: int,
    seed: int,
    executor: Executor | None = None,
    seconds: float | None = None,
    timeout: float | None = None,
    advance: Callable[[int], None] = lambda trials: None,
) -> TwoSampleReport:
    """Draw up to `budget` texts from each of two samplers; stop when they are LOSSY.

    Parameters
    ----------
    test : TwoSample
        If it has no seed, it takes this one for its report.
    speculative, plain : callable
        (trials, rng) -> texts, as `TwoSample.add` takes them. With a process pool they must be
        picklable.
    budget : int
        Texts on each side, fixed beforehand.
    seed : int
        Each batch of each side gets a child of this seed of its own, so the result does not
        depend on the executor or its number of workers.
    executor : concurrent.futures.Executor, optional
        Threads, processes, or any other; results are counted in order.
    seconds : float, optional
        Stop drawing after this long. What was drawn still depends on the seed alone; how
        much, on the machine.
    timeout : float, optional
        How many seconds to wait for a batch.
    advance : callable
        Told the number of texts on each side after each batch.

    Returns
    -------
    TwoSampleReport
        If a sampler fails or stops answering, what both gave until then is judged, the reason
        is in `stopped`, and the verdict is at best INCONCLUSIVE.

    Raises
    ------
    ValueError
        `budget` < 1, or the test's `eps` cannot be certified with this budget (the message
        says with how many texts it could be, at best).

    Examples
    --------
    >>> def fair(trials, rng):
    ...     return rng.integers(0, 2, (trials, 3))
    >>> def biased(trials, rng):
    ...     return rng.choice(2, (trials, 3), p=[0.6, 0.4])
    >>> str(run_two_sample(TwoSample(), biased, fair, budget=20_000, seed=1).verdict)
    'LOSSY'
    """
    _check_budget(test, budget)
    test.seed = seed if test.seed is None else test.seed
    deadline = time.perf_counter() + (math.inf if seconds is None else seconds)
    pairs = drawn(_jobs(speculative, plain, budget, seed), executor, timeout)
    with unspoiled(KIT, "the sampler"):
        try:
            for (_, trials, left), (_, _, right) in zip(pairs, pairs, strict=True):
                _add(test, trials, left, right)
                advance(trials)
                if test.decided_lossy or time.perf_counter() > deadline:
                    break
        except SamplerFailed as failure:
            test.stopped = str(failure)
        return test.report()


def assert_same_law(
    test: TwoSample,
    speculative: TextSampler,
    plain: TextSampler,
    *,
    budget: int,
    seed: int,
    executor: Executor | None = None,
    seconds: float | None = None,
    timeout: float | None = None,
    strict: bool = False,
) -> TwoSampleReport:
    """For pytest: fail if the samplers are LOSSY or one fails, and warn if that stays open.

    Parameters
    ----------
    test : TwoSample
        With ``eps=None`` it only looks for differences.
    speculative, plain : callable
        (trials, rng) -> texts.
    budget : int
        Texts on each side at most.
    seed : int
        Each batch of each side gets a child of it.
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
        The budget could not certify `eps`; the report says how many texts might.

    Examples
    --------
    >>> def fair(trials, rng):
    ...     return rng.integers(0, 2, (trials, 1))
    >>> report = assert_same_law(TwoSample(), fair, fair, budget=40_000, seed=1)
    >>> str(report.verdict)
    'LOSSLESS_WITHIN_EPS'
    """
    report = run_two_sample(
        test,
        speculative,
        plain,
        budget=budget,
        seed=seed,
        executor=executor,
        seconds=seconds,
        timeout=timeout,
    )
    fail_or_warn(report, strict)
    return report


@dataclass(frozen=True)
class _Side:
    """The name of a sampler, in the place of a campaign's case."""

    name: str


def _nameless(sampler: TextSampler, name: str, trials: int, rng: np.random.Generator) -> Texts:
    """What a sampler gives that takes no name, called as samplers of campaigns are."""
    return sampler(trials, rng)


def _jobs(
    speculative: TextSampler, plain: TextSampler, budget: int, seed: int
) -> Iterator[Job[_Side, Texts]]:
    seeds = np.random.SeedSequence(seed)
    sides = [("speculative", speculative), ("plain", plain)]
    for trials in batches(budget):
        for (name, sampler), child in zip(sides, seeds.spawn(2), strict=True):
            draw = Draw(partial(_nameless, sampler), name, trials, child)
            yield _Side(name), trials, draw


def _add(test: TwoSample, trials: int, speculative: Texts, plain: Texts) -> None:
    try:
        for name, texts in (("speculative", speculative), ("plain", plain)):
            if len(texts) != trials:
                raise SamplerFailed(f"the {name} sampler gave {len(texts)} of {trials} texts")
        test.add(speculative, plain)
    except (ValueError, TypeError) as error:
        raise SamplerFailed(f"a sampler gave bad texts: {error}") from None


def _check_budget(test: TwoSample, budget: int) -> None:
    if budget < 1:
        raise ValueError(f"budget = {budget}: expected at least 1")
    if test.eps is None:
        return
    least = least_trials(test.eps, test.alpha / PARTS)
    if least > budget + test.trials:
        raise ValueError(
            f"eps = {test.eps} needs a budget of at least {least:,} texts on each side, not "
            f"{budget:,} (or eps=None, to look for differences only)"
        )
