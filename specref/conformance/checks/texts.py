"""Stages iterations and end-to-end: the joint law of the first tokens of whole texts."""

import math
import time
from collections.abc import Sequence
from functools import partial

from specref.conformance.checks.check import (
    Check,
    failed,
    inconclusive,
    not_applicable,
    passed,
    sampled,
)
from specref.conformance.checks.greedy import calls_problem
from specref.conformance.checks.joint import BLOCKS, USELESS, outcome_of
from specref.conformance.checks.strata import tokens_of_calls
from specref.conformance.greedy import judge_greedy
from specref.conformance.judge import Judge
from specref.conformance.markov import CHAIN, GUESS, judge_markov
from specref.conformance.status import Finding, Outcome
from specref.conformance.strata.table import TEXT_STRATA
from specref.conformance.trial import TrialReport
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.functions import GenerateBatchContract, GenerateContract
from specref.contracts.sampling import TEXT
from specref.contracts.timeout import within
from specref.contracts.verify import SameRows, VerifyContract
from specref.models import Model, as_float
from specref.statistics import CampaignReport
from specref.statistics.campaign.planning import typical_trials, typical_tv
from specref.statistics.campaign.verdict import Verdict
from specref.vocabulary import Tokens

LOOPS, EOS = (GenerateContract, GenerateBatchContract), "eos"
"""Whose texts are drawn on fixtures; those of batches on that with this name alone, since strata
judge their distribution, and this whether they depend on each other."""
TEXTS, KEPT = 50, "wide"
STARTS: tuple[Tokens, ...] = ((0,), (1,), (2,), (3, 4), (4, 0, 0))
LONG, SHORT = 40, 16
TIMED = 0.1
"""Seconds of calls by which others are estimated: a single one may take ten times as long."""


def texts(name: str, judge: Judge) -> Outcome:
    """A campaign over the first tokens of texts, several iterations long."""
    return of_texts(judge.texts(name), judge)


def of_kept_generators(judge: Judge) -> Outcome:
    """The same under one generator for all iterations of a request, or of all requests."""
    verifier = judge.called("kept-generators")
    if why := verifier.refusal():
        return not_applicable(why)
    fixture = judge.fixture(KEPT).only(1)
    sampler = SameRows(verifier, fixture, TEXT)
    return of_texts(judge.texts_of(f"{KEPT}, generators kept", sampler, fixture), judge)


def of_texts(found: TrialReport, judge: Judge) -> Outcome:
    """The outcome of a campaign over texts."""
    if found.dependent and not found.lossy:
        return failed(
            f"texts depend on each other: evidence 10^{found.dependence:.0f}", Finding.DEPENDENCE
        )
    return outcome_of(judge, found)


def markov(judge: Judge) -> Outcome:
    """Long texts of an order-1 chain, with a bet at every transition."""
    laws, tv = len(CHAIN.vocabulary), judge.detect_tv
    needed = laws * typical_trials(tv)
    tokens = judge.trials or needed
    if judge.seconds is not None:
        least = laws * TEXT
        tokens = max(least, int(TEXT * judge.seconds / seconds_of_a_text(judge)))
        tv = min(USELESS, typical_tv(tokens // laws))
        needed = tokens if tv < USELESS else laws * typical_trials(USELESS)
    report = within(
        judge.timeout and TEXTS * judge.timeout,
        partial(
            judge_markov, judge.implementation, CHAIN, GUESS,
            tokens=tokens, seed=judge.options.seed, alpha=judge.level,
        ),
    )  # fmt: skip
    return transitions(report, tv, needed if tokens < needed else None)


def seconds_of_a_text(judge: Judge) -> float:
    """How long the function of models takes for a short text, when called again and again."""
    sampler, rng = judge.calls(judge.fixture("wide").only(0)), judge.rng("how long")
    sampler(1, rng)  # what is made once is not counted
    calls, each = 1, list[float]()
    while True:
        started = time.perf_counter()
        sampler(calls, rng)
        spent = time.perf_counter() - started
        each.append(spent / calls)
        if spent < TIMED:
            calls = min(4 * calls, math.ceil(calls * 2 * TIMED / max(spent, TIMED / 100)))
        elif len(each) > 1:
            return min(each)  # whatever else a busy machine does only adds to it


def texts_wanted(judge: Judge, asked: Sequence[Check]) -> dict[str, int]:
    """{id: short texts, or as many tokens} of the campaigns and strata of texts."""
    greedy = judge.capabilities.greedy
    found: dict[str, int] = {}
    for one in asked:
        if not one.is_for(judge.contract) or (one.law and greedy):
            continue
        stage, _, name = one.id.partition("/")
        if one.id == "end-to-end/markov":
            tokens = len(CHAIN.vocabulary) * typical_trials(judge.detect_tv)
            found[one.id] = (judge.trials or tokens) // TEXT
        elif stage == "end-to-end" and name in judge.fixtures:
            found[one.id] = judge.needed(name)
        elif tokens := tokens_of_calls(judge, [one.id]):
            found[one.id] = tokens // TEXT
    return found


def estimated_seconds(judge: Judge, asked: Sequence[Check]) -> float:
    """How long campaigns and strata of texts take, by the time of one; 0 if none is asked for."""
    wanted = sum(texts_wanted(judge, asked).values())
    return wanted * seconds_of_a_text(judge) if wanted else 0.0


def transitions(report: CampaignReport, tv: float, needed: int | None = None) -> Outcome:
    """The outcome of bets on every transition; `needed` is set if there were too few tokens."""
    numbers: dict[str, object] = {"tokens": report.tokens, "log10_evidence": report.log10_evidence}
    if report.verdict == Verdict.LOSSY:
        return failed(
            report.impossible
            or f"transitions are not the target's: {report.least}, evidence "
            f"10^{report.log10_evidence:.0f} after {report.tokens:,} tokens",
            **numbers,
        )
    if report.stopped:
        message, *lines = report.stopped.splitlines()
        numbers |= {"traceback": tuple(lines)} if lines else {}
        return failed(message, Finding.CONTRACT, **numbers)
    if needed is not None:
        return inconclusive(
            f"{report.tokens:,} tokens would not find TV {tv:g} ({needed:,} usually do); "
            f"evidence 10^{report.log10_evidence:z.1f}, where "
            f"10^{-math.log10(report.alpha / 2):.1f} decides",
            needed=needed,
            **numbers,
        )
    return passed(f"{report.tokens:,} transitions; TV of about {tv:g} is usually found", **numbers)


def greedy(judge: Judge) -> Outcome:
    """Greedy texts, token by token what the target alone would give: long ones, and to EOS."""
    if not judge.capabilities.greedy:
        return not_applicable("does not decode greedily")
    asked: list[tuple[Model, Model, tuple[Tokens, ...], int]] = [(CHAIN, GUESS, STARTS, LONG)]
    for fixture in map(judge.fixture, CHAIN_FIXTURES):
        models = as_float(fixture.target), as_float(fixture.drafter)
        asked.append((*models, tuple(place.context for place in fixture.places), SHORT))
    texts = 0
    for target, drafter, contexts, tokens in asked:
        size = {"tokens": tokens, "seed": judge.options.seed}
        judging = partial(judge_greedy, judge.implementation, target, drafter, contexts, **size)
        if difference := within(judge.timeout, judging):
            return failed(difference)
        texts += len(contexts)
    said = f"{texts} greedy texts are the target's own, also in {len(TEXT_STRATA)} situations"
    return calls_problem(judge, TEXT_STRATA) or passed(said)


CHECKS = (
    Check("end-to-end/greedy", GenerateContract, greedy),
    sampled("end-to-end/markov", GenerateContract, markov),
    *(
        check
        for name in CHAIN_FIXTURES
        for check in (
            sampled(f"iterations/{name}", BLOCKS, partial(texts, name), weight=2),
            sampled(f"end-to-end/{name}", LOOPS[: 1 + (name == EOS)], partial(texts, name)),
        )
    ),
    sampled("iterations/generators-kept", VerifyContract, of_kept_generators, weight=2),
)
