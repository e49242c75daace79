"""Every algorithm over the toy pairs, proved and sampled, on one core or many."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Integral
from operator import add
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specref.pairs import Pair, Profile, toy_pairs
from specref.rules import RULES
from specref.statistics.campaign.acceptance import MeasuredAcceptance, measure_acceptance
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.driver import run
from specref.statistics.campaign.verdict import CampaignReport
from specref.tables import Tables, draw_blocks, tabulate
from specref.verification.exact import LOOP_LOOKAHEAD, applies, cases_of, check_case
from specref.verification.reports import TRIED, AlgorithmReport, Verification
from specref.zoo import MUTANTS

SAMPLED_PAIRS = ("order 1, zeros", "same vocabulary #0", "reordered", "two vocabularies #0")


class BlockSampler:
    """Blocks of a rule, by the name of the pair; picklable."""

    def __init__(self, tables: dict[str, Tables]) -> None:
        self.tables = tables

    def __call__(self, name: str, trials: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return draw_blocks(self.tables[name], trials, rng).blocks


def sample(
    algorithm: str, trials: int, eps: float, seed: int
) -> tuple[CampaignReport, tuple[MeasuredAcceptance, ...]]:
    """One campaign over blocks of a rule, on pairs it is defined for.

    * `trials`: Blocks on each pair.
    * `eps`: What is to be certified.
    * returns: Their intervals fail with the campaign's alpha, all together.
    """
    campaign = Campaign(eps=eps, seed=seed)
    tables: dict[str, Tables] = {}
    for pair in sampled_pairs(algorithm):
        arguments = (pair.target, pair.drafter, (), LOOP_LOOKAHEAD)
        campaign.case(*arguments, algorithm=algorithm, name=pair.name, mutants=MUTANTS)
        tables[pair.name] = tabulate(algorithm, *arguments)
    report = run(campaign, BlockSampler(tables), budget=trials, seed=seed)
    alpha = campaign.alpha / len(campaign.cases)
    measured = tuple(
        measure_acceptance(case.name, case.lengths, case.accepted, alpha)
        for case in campaign.cases
        if case.accepted is not None and case.trials
    )
    return report, measured


def sampled_pairs(algorithm: str) -> tuple[Pair, ...]:
    """The toy pairs that are sampled: two over one vocabulary, two over two."""
    pairs = [pair for pair in toy_pairs("quick") if pair.name in SAMPLED_PAIRS]
    return tuple(pair for pair in pairs if applies(RULES[algorithm], pair))


TRIALS: dict[Profile, int] = {"quick": 400_000, "standard": 4_000_000, "thorough": 40_000_000}
EPS: dict[Profile, float] = {"quick": 0.02, "standard": 0.01, "thorough": 0.005}
CASES_IN_A_JOB = 8
Advance: TypeAlias = Callable[[str], None]
Job: TypeAlias = Callable[[], AlgorithmReport]


def verify(
    profile: Profile = "quick",
    seed: int = 0,
    advance: Advance = lambda algorithm: None,
    executor: Executor | None = None,
) -> Verification:
    """Prove every rule over the toy pairs, and sample those that say so once.

    * `profile` ({"quick", "standard", "thorough"}): More pairs, and 400,000, 4,000,000 or
      40,000,000 sampled blocks of a rule.
    * `seed`: Of the sampled check; everything else is exact.
    * `advance`: Told the algorithm's name after each case.
    * `executor`: Threads, processes, or any other. The result does not depend on it, or on its
      number of workers.
    * raises `ValueError`: No such profile, or `seed` is not an integer >= 0.

    Examples
    --------
    >>> from concurrent.futures import ProcessPoolExecutor
    >>> with ProcessPoolExecutor(2) as processes:  # doctest: +SKIP
    ...     verify("standard", executor=processes).ok
    True
    """
    if profile not in TRIALS:
        raise ValueError(f"profile = {profile!r}: expected one of {', '.join(TRIALS)}")
    if not isinstance(seed, Integral) or seed < 0:
        raise ValueError(f"seed = {seed!r}: expected an integer >= 0")
    workers = _Workers(executor)
    try:
        # The campaigns take longest: they are submitted first, and waited for last.
        sampled = {
            name: workers.start(_Samples(name, TRIALS[profile], EPS[profile], seed))
            for name in TRIED
            if TRIED[name].sampled
        }
        starts = range(0, len(cases_of(profile)), CASES_IN_A_JOB)
        proofs = {
            name: [workers.start(_Proofs(name, profile, start)) for start in starts]
            for name in TRIED
        }
        reports = tuple(_report(proofs[name], sampled.get(name), advance) for name in TRIED)
    finally:
        workers.cancel()
    return Verification(profile, seed, len(toy_pairs(profile)), reports)


def _report(proofs: Sequence[Job], sampled: Job | None, advance: Advance) -> AlgorithmReport:
    parts = []
    for job in proofs:
        parts.append(job())
        for _ in range(parts[-1].cases + parts[-1].not_applicable):
            advance(parts[-1].algorithm)
    if sampled is not None:
        parts.append(sampled())
    return reduce(add, parts)


class _Workers:
    """Starts jobs on an executor; without one, a job runs when its result is asked for."""

    def __init__(self, executor: Executor | None) -> None:
        self.executor = executor
        self.futures: list[Future[AlgorithmReport]] = []

    def start(self, job: Job) -> Job:
        """The job, or a call that waits for its result."""
        if self.executor is None:
            return job
        self.futures.append(self.executor.submit(job))
        return self.futures[-1].result

    def cancel(self) -> None:
        """Cancel the jobs that have not begun."""
        for future in self.futures:
            future.cancel()


@dataclass(frozen=True)
class _Proofs:
    """The proofs of a few cases. Picklable, unlike models."""

    algorithm: str
    profile: Profile
    start: int

    def __call__(self) -> AlgorithmReport:
        started = time.perf_counter()
        some = cases_of(self.profile)[self.start : self.start + CASES_IN_A_JOB]
        report = sum(
            (check_case(TRIED[self.algorithm], case) for case in some),
            start=AlgorithmReport(self.algorithm),
        )
        return replace(report, seconds=time.perf_counter() - started)


@dataclass(frozen=True)
class _Samples:
    """The campaign of one algorithm."""

    algorithm: str
    trials: int
    eps: float
    seed: int

    def __call__(self) -> AlgorithmReport:
        started = time.perf_counter()
        report, acceptance = sample(self.algorithm, self.trials, self.eps, self.seed)
        return AlgorithmReport(
            self.algorithm,
            monte_carlo=report,
            acceptance=acceptance,
            seconds=time.perf_counter() - started,
        )
