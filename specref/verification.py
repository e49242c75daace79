"""The main job: every algorithm over the family of toy pairs, proved, compared and sampled."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from specref.algorithms import ALGORITHMS, Step, decode
from specref.chance import Sampled
from specref.distributions import Probability
from specref.losslessness.exact import (
    Difference,
    completed,
    is_lossless_loop,
    output_distribution,
    proof,
    trace_to,
)
from specref.losslessness.statistics import ALPHA, TestResult, total_variation_test
from specref.models import as_float
from specref.pairs import Case, Pair, Profile, cases, toy_pairs
from specref.theory import accepted_length_distribution
from specref.vocabulary import Tokens

TRIALS: dict[Profile, int] = {"quick": 20_000, "standard": 100_000, "thorough": 1_000_000}
LOOP_TOKENS = 3
SAMPLED_LOOKAHEAD = 2
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
    monte_carlo : TestResult
        Sampled decode loops against the target's joint law.
    """

    algorithm: str
    cases: int = 0
    paths: int = 0
    not_applicable: int = 0
    loops: int = 0
    acceptances: int = 0
    failures: tuple[str, ...] = ()
    monte_carlo: TestResult | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether something was checked and nothing failed."""
        sampled = self.monte_carlo is not None and not self.monte_carlo.rejected
        return bool(self.cases and sampled and not self.failures)


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
        _report(name, step, profile, np.random.default_rng([seed, index]), advance)
        for index, (name, step) in enumerate(ALGORITHMS.items())
    )
    return Verification(profile, seed, len(toy_pairs(profile)), reports)


def cases_of(profile: Profile) -> tuple[Case, ...]:
    """The cases of a profile."""
    return tuple(cases(toy_pairs(profile), profile))


def _report(
    name: str, step: Step, profile: Profile, rng: np.random.Generator, advance: Advance
) -> AlgorithmReport:
    started = time.perf_counter()
    report = AlgorithmReport(name)
    for case in cases_of(profile):
        report = _with_case(report, step, case)
        advance(name)
    report = replace(report, monte_carlo=_sampled(name, step, TRIALS[profile], rng))
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
    with_loop = case.lookahead == SAMPLED_LOOKAHEAD and not case.context
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


def _sampled(name: str, step: Step, trials: int, rng: np.random.Generator) -> TestResult:
    pair = next(pair for pair in reversed(toy_pairs("quick")) if applies(name, pair))
    target, drafter, length = as_float(pair.target), as_float(pair.drafter), LOOP_TOKENS
    chance = Sampled(rng)
    run = partial(decode, step, target, drafter, (), SAMPLED_LOOKAHEAD, length, chance)
    counts = Counter(run() for _ in range(trials))
    return total_variation_test(counts, completed({(): 1}, target, (), length), ALPHA)


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
    raised: tuple[tuple[Case, Exception], ...]
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
    raised: list[tuple[Case, Exception]] = []
    for case in chosen:
        try:
            found, enumerated = _refute(step, case)
        except Exception as error:  # a user's rule may raise anything
            raised.append((case, error))
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
