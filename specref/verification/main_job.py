"""Every algorithm over the toy pairs, proved and sampled, on one core or many."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from numbers import Integral
from operator import add
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specref.chance import OutsideChanceError, TooManyPathsError
from specref.distributions import Probability, push_forward
from specref.laws import Law
from specref.pairs import Case, Pair, Profile, cases, toy_pairs
from specref.proofs.exact import Proof, is_lossless_loop, output_distribution, proof
from specref.rule import Rule
from specref.rules import RULES
from specref.statistics.campaign.acceptance import MeasuredAcceptance, measure_acceptance
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.driver import run
from specref.statistics.campaign.verdict import CampaignReport, Conformance, Verdict
from specref.tables import Tables, draw_blocks, tabulate
from specref.vocabulary import Tokens
from specref.zoo import MUTANTS
from specref.zoo.standard.printed import algorithm_5

PRINTED = Rule(
    "algorithm-5-printed",
    ("Timor et al. 2025, Algorithm 5, line 12 as printed",),
    algorithm_5,
    lossless=False,
)
TRIED: Mapping[str, Rule] = MappingProxyType({**RULES, PRINTED.name: PRINTED})


@dataclass(frozen=True)
class AlgorithmReport:
    """The checks of one algorithm, and the failures.

    Attributes
    ----------
    cases, paths : int
        Exact proofs of one iteration, and the random paths enumerated for them.
    not_applicable : int
        Cases whose vocabularies the algorithm is not defined for.
    loops, acceptances : int
        Exact proofs of the decode loop; exact comparisons of the number of accepted tokens.
    failures : tuple of str
        One line for each case that failed.
    monte_carlo : CampaignReport
        The joint distribution of sampled blocks, and their numbers of accepted tokens.
    acceptance : tuple of MeasuredAcceptance
        Acceptance of the same blocks with exact intervals, and the closed forms.
    seconds : float
        Of work, summed over workers.
    refuted : int
        Cases on which a rule that is published and lossy is refuted.
    """

    algorithm: str
    cases: int = 0
    paths: int = 0
    not_applicable: int = 0
    loops: int = 0
    acceptances: int = 0
    failures: tuple[str, ...] = ()
    monte_carlo: CampaignReport | None = None
    acceptance: tuple[MeasuredAcceptance, ...] = ()
    seconds: float = 0.0
    refuted: int = 0

    def __add__(self, other: "AlgorithmReport") -> "AlgorithmReport":
        """The report on the cases of both."""
        sums: dict[str, Any] = {
            one.name: getattr(self, one.name) + getattr(other, one.name)
            for one in fields(self)
            if one.name not in ("algorithm", "monte_carlo")
        }
        sampled = other.monte_carlo if self.monte_carlo is None else self.monte_carlo
        return AlgorithmReport(self.algorithm, monte_carlo=sampled, **sums)

    @property
    def ok(self) -> bool:
        """Whether something was checked and nothing failed."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each thing that failed, or was not done."""
        found, rule = list(self.failures), TRIED[self.algorithm]
        if not self.cases:
            found.append("nothing was proved")
        if not rule.lossless and not self.refuted:
            found.append("published as it is, and not refuted")
        if self.monte_carlo is None and rule.sampled:
            found.append("nothing was sampled")
        if self.monte_carlo is not None and not self.sampled_ok:
            sampled = self.monte_carlo
            lengths = f"numbers of accepted tokens {sampled.conformance}"
            wrong = [f"; {measured}" for measured in self.acceptance if not measured.agrees]
            found.append(f"Monte Carlo {sampled.verdict}, {lengths}{''.join(wrong[:1])}")
        return tuple(f"{self.algorithm}: {problem}" for problem in found)

    @property
    def sampled_ok(self) -> bool:
        """Whether the samples certify losslessness, and accepted lengths their closed form."""
        sampled, law = self.monte_carlo, TRIED[self.algorithm].accepted_lengths
        return (
            sampled is not None
            and sampled.verdict == Verdict.LOSSLESS_WITHIN_EPS
            and sampled.conformance == (Conformance.CONFORMS if law else Conformance.NOT_RUN)
            and all(measured.agrees for measured in self.acceptance)
        )


@dataclass(frozen=True)
class Verification:
    """The reports of all algorithms, and how to repeat the run."""

    profile: Profile
    seed: int
    pairs: int
    reports: tuple[AlgorithmReport, ...]

    @property
    def ok(self) -> bool:
        """Whether every algorithm passed every check."""
        return all(report.ok for report in self.reports)


LOOP_TOKENS = 3
LOOP_LOOKAHEAD = 2
LOOP_PATHS = 400
"""The most random paths of an iteration whose loop is proved, too."""


def applies(rule: Rule, pair: Pair) -> bool:
    """Whether a rule is defined for the vocabularies of a pair."""
    if rule.same_vocabulary:
        return pair.same_vocabulary
    return pair.by_text or not rule.by_text


def cases_of(profile: Profile) -> tuple[Case, ...]:
    """The cases of a profile."""
    return tuple(cases(toy_pairs(profile), profile))


def check_case(rule: Rule, case: Case) -> AlgorithmReport:
    """Prove one case: the completed block, the decode loop, the accepted lengths.

    Of a rule that is published and lossy, only one iteration is tried.
    """
    if not applies(rule, case.pair):
        return AlgorithmReport(rule.name, not_applicable=1)
    if not rule.lossless:
        return _refuted(rule, case)
    blocks, proved = _proof(rule, case)
    failures = [] if proved else [f"{case}: lossy, {proved.difference}"]
    starting = case.lookahead == LOOP_LOOKAHEAD and not case.context
    with_loop = starting and proved.paths <= LOOP_PATHS
    if with_loop:
        arguments = (case.pair.target, case.pair.drafter, case.context, case.lookahead)
        loop = is_lossless_loop(rule.step, *arguments, length=LOOP_TOKENS)
        failures += [] if loop else [f"{case}: decode loop lossy, {loop.difference}"]
    # An accepted EOS ends a block without a token of its own: lengths would not tell.
    with_acceptance = case.pair.target.vocabulary.eos is None and bool(
        rule.accepted_lengths or (rule.accepts_first and case.lookahead)
    )
    if with_acceptance:
        failures += _acceptance_failures(rule, blocks, case)
    return AlgorithmReport(
        rule.name, 1, proved.paths, 0, int(with_loop), int(with_acceptance), tuple(failures)
    )


def _proof(rule: Rule, case: Case) -> tuple[Law, Proof]:
    arguments = (case.pair.target, case.pair.drafter, case.context, case.lookahead)
    blocks, paths = output_distribution(rule.step, *arguments)
    return blocks, proof(blocks, case.pair.target, case.context, paths)


def _refuted(rule: Rule, case: Case) -> AlgorithmReport:
    """A case that refutes a rule, or does not; not applicable where its listing divides by 0."""
    try:
        _, proved = _proof(rule, case)
    except (OutsideChanceError, TooManyPathsError):
        raise
    except ValueError:
        return AlgorithmReport(rule.name, not_applicable=1)
    return AlgorithmReport(rule.name, 1, proved.paths, refuted=int(not proved))


def _acceptance_failures(rule: Rule, blocks: Law, case: Case) -> list[str]:
    pair, counted = case.pair, accepted_lengths(blocks)
    formula: tuple[Probability, ...]
    if rule.accepted_lengths:
        formula = rule.accepted_lengths(pair.target, pair.drafter, case.context, case.lookahead)
    else:
        assert rule.accepts_first is not None
        rows = (model.next_token(case.context) for model in (pair.target, pair.drafter))
        formula, counted = (rule.accepts_first(*rows),), (1 - counted[0],)
    return [] if formula == counted else [f"{case}: acceptance {counted} not {formula}"]


def accepted_lengths(blocks: dict[Tokens, Probability]) -> tuple[Probability, ...]:
    """The law of the accepted length, from blocks that end with one token of their own."""
    law = push_forward(blocks, lambda block: len(block) - 1)
    return tuple(law.get(length, 0) for length in range(max(law) + 1))


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
            name: workers.start(partial(_samples, name, TRIALS[profile], EPS[profile], seed))
            for name in TRIED
            if TRIED[name].sampled
        }
        starts = range(0, len(cases_of(profile)), CASES_IN_A_JOB)
        proofs = {
            name: [workers.start(partial(_proofs, name, profile, start)) for start in starts]
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
        for future in self.futures:
            future.cancel()


def _proofs(algorithm: str, profile: Profile, start: int) -> AlgorithmReport:
    """The proofs of a few cases; to be sent by numbers, since models are not picklable."""
    started = time.perf_counter()
    some = cases_of(profile)[start : start + CASES_IN_A_JOB]
    reports = (check_case(TRIED[algorithm], case) for case in some)
    report = sum(reports, start=AlgorithmReport(algorithm))
    return replace(report, seconds=time.perf_counter() - started)


def _samples(algorithm: str, trials: int, eps: float, seed: int) -> AlgorithmReport:
    started = time.perf_counter()
    report, acceptance = sample(algorithm, trials, eps, seed)
    seconds = time.perf_counter() - started
    return AlgorithmReport(algorithm, monte_carlo=report, acceptance=acceptance, seconds=seconds)
