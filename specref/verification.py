"""The main job: every algorithm over the family of toy pairs, proved, compared and sampled."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from specref.algorithms import ALGORITHMS, Step
from specref.chance import TooManyPathsError
from specref.distributions import Probability
from specref.losslessness.campaign import Campaign
from specref.losslessness.driver import run
from specref.losslessness.exact import (
    Difference,
    is_lossless_loop,
    output_distribution,
    proof,
    trace_to,
)
from specref.losslessness.verdict import CampaignReport, Conformance, Verdict
from specref.pairs import Case, Pair, Profile, cases, toy_pairs
from specref.simulate import Tables, draw_blocks, tabulate
from specref.theory import accepted_length_distribution
from specref.vocabulary import Tokens

TRIALS: dict[Profile, int] = {"quick": 400_000, "standard": 4_000_000, "thorough": 40_000_000}
EPS: dict[Profile, float] = {"quick": 0.02, "standard": 0.01, "thorough": 0.005}
SAMPLED_PAIRS = ("order 1, zeros", "same vocabulary #0", "reordered", "two vocabularies #0")
LOOP_TOKENS = 3
LOOP_LOOKAHEAD = 2
Advance = Callable[[str], None]


@dataclass(frozen=True)
class AlgorithmReport:
    """What was checked of one algorithm, and what failed.

    Attributes
    ----------
    cases, paths : int
        Exact proofs of one iteration, and the random paths enumerated for them.
    not_applicable : int
        Cases whose vocabularies the algorithm is not defined for.
    loops, acceptances : int
        Exact proofs of the decode loop; exact comparisons of the accepted-length law.
    failures : tuple of str
        One line for each case that failed.
    monte_carlo : CampaignReport
        Of blocks from the batched twin: their joint law, and their accepted lengths.
    """

    algorithm: str
    cases: int = 0
    paths: int = 0
    not_applicable: int = 0
    loops: int = 0
    acceptances: int = 0
    failures: tuple[str, ...] = ()
    monte_carlo: CampaignReport | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether something was checked and nothing failed."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each thing that failed, or was not done."""
        found = [f"{self.algorithm}: {failure}" for failure in self.failures]
        if not self.cases:
            found.append(f"{self.algorithm}: nothing was proved")
        if self.monte_carlo is None:
            found.append(f"{self.algorithm}: nothing was sampled")
        elif not self.sampled_ok:
            sampled = self.monte_carlo
            lengths = f"accepted lengths {sampled.conformance}"
            found.append(f"{self.algorithm}: Monte Carlo {sampled.verdict}, {lengths}")
        return tuple(found)

    @property
    def sampled_ok(self) -> bool:
        """Whether the samples certify losslessness, and accepted lengths conform."""
        sampled = self.monte_carlo
        return (
            sampled is not None
            and sampled.verdict == Verdict.LOSSLESS_WITHIN_EPS
            and sampled.conformance == Conformance.CONFORMS
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


def applies(algorithm: str, pair: Pair) -> bool:
    """Whether an algorithm is defined for the vocabularies of a pair."""
    if algorithm == "standard":
        return pair.same_vocabulary
    return pair.by_text or algorithm not in ("slem", "slrs")


def verify(
    profile: Profile = "quick", seed: int = 0, advance: Advance = lambda algorithm: None
) -> Verification:
    """Prove every algorithm over the toy pairs, and sample each once.

    Parameters
    ----------
    profile : {"quick", "standard", "thorough"}
    seed : int
        Of the sampled check; everything else is exact.
    advance : callable
        Told the algorithm's name after each case.

    Examples
    --------
    >>> len(cases_of("quick"))
    154
    """
    reports = tuple(
        _report(name, step, profile, seed, advance) for name, step in ALGORITHMS.items()
    )
    return Verification(profile, seed, len(toy_pairs(profile)), reports)


def cases_of(profile: Profile) -> tuple[Case, ...]:
    """The cases of a profile."""
    return tuple(cases(toy_pairs(profile), profile))


def _report(
    name: str, step: Step, profile: Profile, seed: int, advance: Advance
) -> AlgorithmReport:
    started = time.perf_counter()
    report = AlgorithmReport(name)
    for case in cases_of(profile):
        report = _with_case(report, step, case)
        advance(name)
    report = replace(report, monte_carlo=sample(name, profile, seed))
    return replace(report, seconds=time.perf_counter() - started)


def _with_case(report: AlgorithmReport, step: Step, case: Case) -> AlgorithmReport:
    pair = case.pair
    if not applies(report.algorithm, pair):
        return replace(report, not_applicable=report.not_applicable + 1)
    arguments = (pair.target, pair.drafter, case.context, case.lookahead)
    blocks, paths = output_distribution(step, *arguments)
    failures: list[str] = []
    proved = proof(blocks, pair.target, case.context, paths)
    if not proved:
        failures.append(f"{case}: lossy, {proved.difference}")
    with_loop = case.lookahead == LOOP_LOOKAHEAD and not case.context
    if with_loop:
        loop = is_lossless_loop(step, *arguments, length=LOOP_TOKENS)
        failures += [] if loop else [f"{case}: decode loop lossy, {loop.difference}"]
    with_acceptance = pair.target.vocabulary.eos is None
    if with_acceptance:
        formula = accepted_length_distribution(report.algorithm, *arguments)
        counted = accepted_lengths(blocks)
        failures += [] if formula == counted else [f"{case}: acceptance {counted} not {formula}"]
    return replace(
        report,
        cases=report.cases + 1,
        paths=report.paths + paths,
        loops=report.loops + with_loop,
        acceptances=report.acceptances + with_acceptance,
        failures=(*report.failures, *failures),
    )


def accepted_lengths(blocks: dict[Tokens, Probability]) -> tuple[Probability, ...]:
    """The law of the accepted length, from blocks that end with one token of their own.

    Examples
    --------
    >>> accepted_lengths({(0,): 0.25, (1,): 0.25, (0, 1): 0.5})
    (0.5, 0.5)
    """
    law: dict[int, Probability] = {}
    for block, probability in blocks.items():
        law[len(block) - 1] = law.get(len(block) - 1, 0) + probability
    return tuple(law.get(length, 0) for length in range(max(law) + 1))


class TwinSampler:
    """Blocks of the batched twin, by the name of the pair; picklable."""

    def __init__(self, tables: dict[str, Tables]) -> None:
        self.tables = tables

    def __call__(self, name: str, trials: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw blocks."""
        return draw_blocks(self.tables[name], trials, rng).blocks


def sample(
    algorithm: str, profile: Profile, seed: int, executor: Executor | None = None
) -> CampaignReport:
    """One campaign over the batched twin of an algorithm, on pairs it is defined for.

    Examples
    --------
    >>> str(sample("autoregressive", "quick", seed=1).verdict)
    'LOSSLESS_WITHIN_EPS'
    """
    campaign = Campaign(eps=EPS[profile], seed=seed)
    tables: dict[str, Tables] = {}
    for pair in toy_pairs("quick"):
        if pair.name in SAMPLED_PAIRS and applies(algorithm, pair):
            arguments = (pair.target, pair.drafter, (), LOOP_LOOKAHEAD)
            campaign.case(*arguments, algorithm=algorithm, name=pair.name)
            tables[pair.name] = tabulate(algorithm, *arguments)
    return run(campaign, TwinSampler(tables), budget=TRIALS[profile], seed=seed, executor=executor)


@dataclass(frozen=True)
class Refutation:
    """A case on which a rule is lossy: the smallest difference, and a traced path to it."""

    case: Case
    total_variation: Probability
    difference: Difference
    block: Tokens
    trace: str


@dataclass(frozen=True)
class RuleReport:
    """What the family of toy pairs says of one rule.

    Attributes
    ----------
    proved : int
        Cases on which the rule is exactly lossless.
    refuted : tuple of Refutation
        Smallest case first.
    raised : tuple of (Case, Exception)
        Cases on which the rule failed.
    not_run : int
        Cases left out because their pairs have two vocabularies.
    """

    proved: int
    refuted: tuple[Refutation, ...]
    raised: tuple[tuple[Case, BaseException], ...]
    not_run: int
    paths: int


def prove_rule(
    step: Step,
    profile: Profile = "quick",
    *,
    same_vocabulary: bool = True,
    advance: Advance = lambda name: None,
) -> RuleReport:
    """Prove or refute somebody's rule over the toy pairs.

    Parameters
    ----------
    step : callable
        (target, drafter, context, lookahead, chance) -> block.
    profile : {"quick", "standard", "thorough"}
    same_vocabulary : bool
        Only pairs over one vocabulary; otherwise all of them.
    advance : callable
        Told after each case.

    Examples
    --------
    >>> from specref.algorithms import standard
    >>> report = prove_rule(standard.step)
    >>> report.proved, report.refuted, report.raised
    (68, (), ())
    """
    every = cases_of(profile)
    chosen = [case for case in every if case.pair.same_vocabulary or not same_vocabulary]
    proved, paths = 0, 0
    refuted: list[Refutation] = []
    raised: list[tuple[Case, BaseException]] = []
    for case in chosen:
        try:
            found, enumerated = _refute(step, case)
        except (Exception, SystemExit) as error:  # a user's rule may raise anything
            # A traceback would keep every frame of the rule alive.
            raised.append((case, error.with_traceback(None)))
            if isinstance(error, TooManyPathsError):
                break
        else:
            refuted += found
            proved, paths = proved + (not found), paths + enumerated
        advance(str(case))
    return RuleReport(proved, tuple(refuted), tuple(raised), len(every) - len(chosen), paths)


def _refute(step: Step, case: Case) -> tuple[Sequence[Refutation], int]:
    arguments = (case.pair.target, case.pair.drafter, case.context, case.lookahead)
    blocks, paths = output_distribution(step, *arguments)
    proved = proof(blocks, case.pair.target, case.context, paths)
    difference = proved.difference
    if difference is None:
        return [], paths
    block, trace = trace_to(difference.tokens, step, *arguments)
    refutation = Refutation(case, proved.total_variation, difference, block, str(trace))
    return [refutation], paths
