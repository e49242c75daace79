"""The contract ``text``: texts of an engine, against the law of its target or its plain mode."""

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps

import numpy as np

from specref.conformance.checks.check import (
    Check,
    failed,
    inconclusive,
    not_applicable,
    passed,
    sampled,
)
from specref.conformance.checks.joint import USELESS, outcome_of
from specref.conformance.greedy import greedy_difference
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome, Status
from specref.conformance.trial import Trial, TrialReport
from specref.contracts.asking import SEEDS, Asking, Drafts, printed, stdout_to
from specref.contracts.text import PLAIN, SPECULATIVE, Engine, TextContract
from specref.models import Model
from specref.statistics import TwoSample, TwoSampleReport, detectable_distance
from specref.statistics.campaign.levels import BETA
from specref.statistics.campaign.verdict import Verdict
from specref.statistics.two_sample.bounds import least_trials
from specref.vocabulary import Tokens

FIRST, MOST = 128, 1_024
"""Texts before the first look, and between two: a gross bug is found early."""
GROWTH = 1.5
TWICE = 12
SHARE, TENTH = 4, 10
FAR, MOST_PLAIN = 0.25, 1_500
SAME_LAW, PLAIN_LAW = "end-to-end/texts", "smoke/texts-plain"
PLAIN_TEXTS = "texts/plain"
COMPARED = "has no distribution; end-to-end/texts-same compares text by text"


def quiet(ask: Callable[[Judge], Outcome]) -> Callable[[Judge], Outcome]:
    """The same check, with standard output sent to standard error."""

    @wraps(ask)
    def asked(judge: Judge) -> Outcome:
        with stdout_to(sys.stderr, 2):
            return ask(judge)

    return asked


def engine_of(judge: Judge) -> Engine:
    """The engine that is judged."""
    engine = judge.implementation
    assert isinstance(engine, Engine)
    return engine


def asking(judge: Judge, mode: str, budget: int | None = None) -> Asking:
    """A sampler of texts in one mode."""
    return Asking(judge.subject, mode, judge.journal, budget)


def modes(engine: Engine) -> tuple[str, ...]:
    """The modes that it has."""
    return (SPECULATIVE,) if engine.plain is None else (PLAIN, SPECULATIVE)


def answers(judge: Judge) -> Outcome:
    """A text of as many tokens as its budget says, or up to EOS, in every mode."""
    engine = engine_of(judge)
    with printed() as said:
        for mode in modes(engine):
            Asking(judge.subject, mode).texts(
                [(prompt, budget, 1) for prompt in engine.prompts for budget in (1, engine.tokens)]
            )
    return passed(printed=said[0].splitlines()[0][:80]) if said else passed()


@quiet
def deterministic(judge: Judge) -> Outcome:
    """The same seed gives the same text, in every mode."""
    engine = engine_of(judge)
    if not judge.capabilities.seeded:
        return not_applicable("does not claim to be deterministic under a seed")
    for mode in modes(engine):
        few = -(-TWICE // len(engine.prompts))  # seeds do not matter
        seeds = range(few if judge.capabilities.greedy else TWICE)
        questions = [(prompt, engine.tokens, s) for prompt in engine.prompts for s in seeds]
        first, second = (Asking(judge.subject, mode).texts(questions) for _ in range(2))
        for (prompt, _, seed), one, other in zip(questions, first, second, strict=True):
            if one.tokens != other.tokens:
                return failed(
                    f"{mode} mode gave {one.tokens}, then {other.tokens} under seed {seed} after "
                    f"{prompt}; say seeded=False if so (--declare seeded=false)"
                )
    return passed()


@quiet
def plain(judge: Judge) -> Outcome:
    """Non-speculative decoding has the target's distribution; coarsely."""
    engine = engine_of(judge)
    if engine.plain is None or engine.law is None:
        return not_applicable(
            "has neither a distribution nor non-speculative decoding to compare with"
        )
    judge.memo[PLAIN_TEXTS] = coarsely_drawn(judge, asking(judge, PLAIN))
    return plain_outcome(judge, judge.memo[PLAIN_TEXTS], coarse(judge))


def coarsely_drawn(judge: Judge, sampler: Asking) -> TrialReport:
    """A campaign that finds a coarse distance from the law."""
    trial = trial_of(judge, sampler.engine, sampler.budget)
    trials = judge.trials or coarse_trials(trial, coarse(judge))
    few = FIRST
    if sampler.budget == 1:
        few = trial.needed(USELESS)  # so that a pass says something
        trials = judge.trials or max(trials, few)
    if judge.seconds is not None:
        each, _ = seconds_of_a_text(judge, sampler.mode, sampler.budget)
        trials = min(trials, max(few, int(judge.seconds / SHARE / each)))
    return drawn(judge, trial, sampler, trials)


def coarse(judge: Judge) -> float:
    """The distance to be detected in plain mode, and in texts of one token, by few texts."""
    return max(judge.detect_tv, FAR)


def coarse_trials(trial: Trial, tv: float) -> int:
    """Texts of plain mode, or of one token: so few that other texts soon have their turn."""
    return min(trial.needed(tv), MOST_PLAIN)


def plain_outcome(judge: Judge, found: TrialReport, tv: float) -> Outcome:
    """What a campaign about plain mode says; a failure is none of speculation."""
    outcome = outcome_of(judge, found, tv)
    if outcome.status == Status.FAILED:
        shown = dict(outcome.evidence["difference"])
        shown["place"] = f"non-speculative decoding, {shown['place']}"
        return replace(
            outcome,
            message=f"non-speculative decoding: {outcome.message}",
            finding=Finding.PLAIN,
            evidence={**outcome.evidence, "difference": shown},
        )
    return outcome


def drawn(
    judge: Judge, trial: Trial, sampler: Asking, trials: int, seconds: float | None = None
) -> TrialReport:
    """Draw texts until they are decided, always the same ones in each mode."""
    rng, most = judge.rng(f"engine/{sampler.mode}"), MOST
    if seconds is not None:
        # Texts of an earlier run take no time, and say nothing of how long others take.
        pairs, few = 2 * len(sampler.engine.prompts), seconds / TENTH
        most = max(pairs, min(MOST, int(few / seconds_of_a_text(judge, sampler.mode)[0])))
    return trial.run(sampler, trials, rng, seconds=seconds, first=FIRST, most=most, probe=False)


def trial_of(judge: Judge, engine: Engine, budget: int | None = None) -> Trial:
    """A campaign without texts yet."""
    tolerance, tokens = judge.capabilities.tolerance, budget or engine.tokens
    return Trial(engine.fixture, judge.level, tokens=tokens, mutants={}, tolerance=tolerance)


@quiet
def same_law(judge: Judge) -> Outcome:
    """Texts against the target's distribution; without one, against non-speculative texts."""
    engine = engine_of(judge)
    if engine.law is None:
        if engine.same_text:
            return not_applicable(COMPARED)
        samplers = [asking(judge, mode) for mode in (SPECULATIVE, PLAIN)]
        return exercised(against_plain(judge, samplers, judge.detect_tv), samplers[0])
    sampler = asking(judge, SPECULATIVE)
    trial = trial_of(judge, engine)
    trials = judge.trials or trial.needed(judge.detect_tv)
    found = drawn(judge, trial, sampler, trials, judge.seconds)
    outcome = outcome_of(judge, found)
    if outcome.status == Status.FAILED and engine.plain is not None:
        # With twice as many texts, is plain mode off as well?
        trials, other = max(FIRST, 2 * found.report.trials), judge.memo.get(PLAIN_TEXTS)
        if other is None or other.report.trials < trials:
            other = drawn(judge, trial_of(judge, engine), asking(judge, PLAIN), trials)
        if other.lossy:
            return plain_outcome(judge, other, judge.detect_tv)
    return exercised(outcome, sampler)


@quiet
def one_token(judge: Judge) -> Outcome:
    """Texts of one token are distributed as a first token; coarsely, drafted or not."""
    engine = engine_of(judge)
    if engine.law is not None:
        found = coarsely_drawn(judge, asking(judge, SPECULATIVE, 1))
        if found.lossy and engine.plain is not None:
            plain = coarsely_drawn(judge, asking(judge, PLAIN, 1))
            if plain.lossy:
                return plain_outcome(judge, plain, coarse(judge))
        return outcome_of(judge, found, coarse(judge))
    if engine.same_text:
        return not_applicable(COMPARED)
    samplers = [asking(judge, mode, 1) for mode in (SPECULATIVE, PLAIN)]
    return against_plain(judge, samplers, coarse(judge))


def against_plain(judge: Judge, samplers: Sequence[Asking], tv: float) -> Outcome:
    """Texts of both modes, each with seeds of its own, until a distance would have been found.

    Half of the level is shared by the prompts. The other half is for all of them together: the
    evidence of independent texts multiplies, so that a bug at every prompt needs fewer of each.
    """
    engine = engine_of(judge)
    count = len(engine.prompts)
    share = 1 if count == 1 else 2 * count
    tests = [TwoSample(alpha=judge.level / share, eps=tv) for _ in engine.prompts]
    together, decided = 0.0, -math.log10(judge.level / 2)
    rngs = [judge.rng(f"engine/{sampler.mode}") for sampler in samplers]
    each = 0.0
    if judge.seconds is not None:
        budget = samplers[0].budget
        each = sum(seconds_of_a_text(judge, mode, budget)[0] for mode in modes(engine))
        each *= len(tests)
    started, reports, kinds = time.perf_counter(), list[TwoSampleReport](), set[Tokens]()
    looks: list[tuple[int, float]] = []
    # Texts of one token take little time: so many are drawn that they show something.
    short, detectable = samplers[0].budget == 1, 1.0
    for size in sizes(judge.trials):
        spent = time.perf_counter() - started
        late = judge.seconds is not None and spent + size * each > judge.seconds
        if reports and late and (detectable <= USELESS or not short):
            break
        drawn = [s(size * len(tests), rng) for s, rng in zip(samplers, rngs, strict=True)]
        for index, test in enumerate(tests):
            sides = [blocks[place == index] for place, blocks, _ in drawn]
            test.add(*sides)
            kinds.update(map(tuple, np.unique(np.concatenate(sides), axis=0).tolist()))
        reports = [test.report() for test in tests]
        if count > 1:
            together = max(together, sum(test.evidence for test in tests) / math.log(10))
        # A prompt's own decides at `share` times as much.
        own = max(report.log10_evidence for report in reports) - math.log10(share)
        looks.append((sum(report.trials for report in reports), max(together, own)))
        detectable = max(report.detectable or 1.0 for report in reports)
        enough = detectable <= tv and (judge.seconds is None or short)
        enough |= short and detectable <= USELESS and looks[-1][0] >= MOST_PLAIN
        if together >= decided or any(test.decided_lossy for test in tests) or enough:
            break
    if len(kinds) == 1 and not short:
        return inconclusive(
            f"all {samplers[0].drafts.texts:,} texts of both modes are {next(iter(kinds))}: do "
            "seeds reach the engine? (greedy=true if no token is random)"
        )
    return two_sample_outcome(judge, tests, reports, looks, tv, together, short=short)


def sizes(trials: int | None) -> Iterator[int]:
    """How many texts are drawn before each look; their sum is `trials`, if that is given.

    Examples
    --------
    >>> list(sizes(500))
    [128, 64, 96, 144, 68]
    """
    done, cut = 0, float(FIRST)
    while trials is None or done < trials:
        size = int(cut) - done if trials is None else min(int(cut), trials) - done
        yield size
        done, cut = done + size, cut * GROWTH


def two_sample_outcome(
    judge: Judge,
    tests: list[TwoSample],
    reports: list[TwoSampleReport],
    looks: list[tuple[int, float]],
    tv: float,
    together: float,
    *,
    short: bool,
) -> Outcome:
    """The outcome of two-sample tests, one for each prompt.

    * `looks`: Texts of each mode, and the evidence until then: of all prompts together, or the
      highest of one, divided by how much more of it decides.
    * `together`: The logarithm of the highest evidence of several prompts together; 0 of one.
    * `short`: Whether texts have one token: few of them, which show large distances, will do.
    """
    engine = engine_of(judge)
    each = list(zip(engine.prompts, reports, tests, strict=True))
    lossy = [one for one in each if one[1].verdict == Verdict.LOSSY]
    prompt, worst, test = max(lossy or each, key=lambda one: one[1].log10_evidence)
    detectable = max(report.detectable or 1.0 for report in reports)
    decided = -math.log10(judge.level / 2)
    highest = max(evidence for _, evidence in looks)
    numbers: dict[str, object] = {
        "trials": sum(report.trials for report in reports),
        "log10_evidence": highest,
        "log10_threshold": decided,
        "looks": looks,
        "detectable_tv": detectable,
        "tv": {str(prompt): (r.estimate, r.lower, r.upper) for prompt, r, _ in each},
    }
    if lossy or together >= decided:
        after = "texts of each" if lossy else f"texts of each after each of {len(each)} prompts"
        suspects = [suspect.component for suspect in worst.suspects]
        most = f"; most of all {suspects[0]}" if suspects else ""
        return failed(
            f"texts differ from those of non-speculative decoding: {test.least()} after "
            f"{prompt}, evidence 10^{highest:.0f} after {worst.trials:,} {after}{most}",
            **numbers,
            suspects=suspects,
        )
    if detectable > (max(tv, USELESS) if short or judge.seconds is not None else tv):
        needed = max(report.to_find[1] for report in reports if report.to_find)
        reached = "nothing" if detectable == 1 else f"only TV ≥ {detectable:.3f}"
        return inconclusive(
            f"{worst.trials:,} texts of each mode are too few: {reached} would be detected (TV "
            f"{tv:g} takes about {needed:,}); evidence 10^{highest:z.1f}",
            needed=needed,
            **numbers,
        )
    return passed(
        f"{worst.trials:,} texts of each mode; TV ≥ {detectable:.3f} would be detected",
        **numbers,
    )


def exercised(outcome: Outcome, sampler: Asking) -> Outcome:
    """The same outcome, unless it is no failure and no draft was seen to be accepted."""
    drafts: Drafts = sampler.drafts
    counts = {
        "texts": drafts.texts,
        "proposed": drafts.proposed,
        "accepted": drafts.accepted,
        "taken": sampler.taken,
    }
    told = replace(outcome, evidence={**outcome.evidence, **counts})
    if outcome.status not in (Status.PASSED, Status.INCONCLUSIVE):
        return told
    before = f"; {sampler.taken:,} texts of an earlier run" * bool(sampler.taken)
    lens = ", ".join(map(str, sorted({len(one) for one in sampler.engine.prompts})))
    before = f"; texts of {sampler.budget} tokens, prompts of {lens}{before}"
    if why := drafts.missing:
        return replace(
            told,
            status=Status.INCONCLUSIVE,
            finding=Finding.NOT_EXERCISED,
            message=f"{why}; else: {outcome.message}{before}",
        )
    return replace(told, message=f"{outcome.message}; {drafts}{before}")


@quiet
def same_text(judge: Judge) -> Outcome:
    """The text of non-speculative decoding at the same seed, if promised; or greedy texts."""
    engine = engine_of(judge)
    greedy = judge.capabilities.greedy
    if not (engine.same_text or greedy):
        return not_applicable("does not promise the text of non-speculative decoding under a seed")
    count = 1 if greedy else texts_needed(judge.detect_tv)
    seeds = judge.rng("engine/same").integers(SEEDS, size=judge.trials or count).tolist()
    whole, short = (
        [(prompt, budget, seed) for seed in seeds for prompt in engine.prompts]
        for budget in (engine.tokens, 1)
    )
    questions, sampler = [*whole, *short], asking(judge, SPECULATIVE)
    texts = len(questions)
    # Whether texts of one token have drafts does not matter.
    first = [sampler.texts(whole), asking(judge, SPECULATIVE, 1).texts(short)]
    given = [text.tokens for text in itertools.chain(*first)]
    whose = "non-speculative decoding under the same seed"
    wanted = given
    if engine.plain is not None:
        wanted = [text.tokens for text in asking(judge, PLAIN).texts(questions)]
    if greedy and engine.law is not None:
        if engine.plain is not None and (wrong := _not_argmax(engine.law, questions, wanted)):
            return failed(f"non-speculative decoding: {wrong}", Finding.PLAIN)
        if wrong := _not_argmax(engine.law, questions, given):
            return failed(wrong)
        wanted, whose = given, "greedy decoding of the distribution"
    index = different(given, wanted)
    if index is not None:
        prompt, budget, seed = questions[index]
        return failed(
            f"text {index} of {texts:,} is not that of {whose}: {given[index]}, not "
            f"{wanted[index]}, after {prompt}, budget {budget}, under seed {seed}"
        )
    if greedy:
        untried = all(len(text) == asked[1] for asked, text in zip(questions, wanted, strict=True))
        end = "; none ends before its budget, so stopping at EOS was not tried" * untried
        return exercised(passed(f"{texts:,} texts are those of {whose}{end}"), sampler)
    if len(set(wanted[: len(whole)])) == 1:
        return inconclusive(
            f"all {len(whole):,} texts are {wanted[0]}: do seeds reach the engine? (greedy=true "
            "if no token is random)"
        )
    tv = 1 - BETA ** (1 / len(seeds))
    enough = tv <= (USELESS if judge.seconds is not None else judge.detect_tv)
    say = passed if enough else inconclusive
    return exercised(
        say(
            f"{texts:,} texts are those of {whose}; TV ≥ {tv:.3f} from it would be detected",
            trials=texts,
            detectable_tv=tv,
        ),
        sampler,
    )


def _not_argmax(
    law: Model, questions: Sequence[tuple[Tokens, int, int]], texts: Sequence[Sequence[int]]
) -> str | None:
    """The first text that is none of greedy decoding, which may take any of tied tokens."""
    for (prompt, budget, _), text in zip(questions, texts, strict=True):
        if why := greedy_difference(law, prompt, tuple(text), budget):
            return f"{text} after {prompt}: {why}"
    return None


def different(given: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> int | None:
    """The index of the first text that differs."""
    pairs = enumerate(zip(given, wanted, strict=True))
    return next((index for index, (one, other) in pairs if tuple(one) != tuple(other)), None)


def texts_needed(tv: float) -> int:
    """Texts among which one differs, if one in 1 / tv does, but for a chance of BETA.

    Texts of two modes under one seed differ with a probability of at least their total variation.
    """
    return math.ceil(math.log(BETA) / math.log1p(-tv))


def seconds_of_a_text(
    judge: Judge, mode: str, budget: int | None = None
) -> tuple[float, set[Tokens]]:
    """How long a text takes, by the time of a few; and the few."""
    engine = engine_of(judge)
    seeds, tokens = range(TWICE), budget or engine.tokens
    questions = [(prompt, tokens, seed) for seed in seeds for prompt in engine.prompts]
    sampler = Asking(judge.subject, mode)
    sampler.texts(questions[:1])
    started = time.perf_counter()
    texts = {tuple(one.tokens) for one in sampler.texts(questions)}
    return (time.perf_counter() - started) / len(questions), texts


def estimated_seconds(judge: Judge, asked: tuple[Check, ...]) -> float:
    """About how long the texts take, by the time of a few; 0 if none are asked for.

    Without a law it is a lower bound: how many texts it takes depends on how many there are.
    """
    ids = {one.id for one in asked if one.is_for(judge.contract)}
    if judge.capabilities.greedy or SAME_LAW not in ids:
        return 0.0
    engine = engine_of(judge)
    each, kinds = dict[str, float](), set[Tokens]()
    with stdout_to(sys.stderr, 2):
        for mode in modes(engine):
            each[mode], texts = seconds_of_a_text(judge, mode)
            kinds |= texts
    if engine.law is None:
        n = least_trials(judge.detect_tv, judge.level)
        while detectable_distance(n, len(kinds), judge.level) > judge.detect_tv:
            n = int(n * GROWTH)
        return (judge.trials or n) * len(engine.prompts) * sum(each.values())
    trial = trial_of(judge, engine)
    seconds = (judge.trials or trial.needed(judge.detect_tv)) * each[SPECULATIVE]
    if PLAIN_LAW in ids and PLAIN in each:
        seconds += (judge.trials or coarse_trials(trial, coarse(judge))) * each[PLAIN]
    return seconds


SMOKE = (
    Check("smoke/texts", TextContract, answers, finding=Finding.CONTRACT),
    Check("smoke/texts-deterministic", TextContract, deterministic, finding=Finding.CONTRACT),
    sampled(PLAIN_LAW, TextContract, plain, finding=Finding.PLAIN),
)
CHECKS = (
    Check("end-to-end/texts-same", TextContract, same_text, finding=Finding.CONTRACT),
    sampled(SAME_LAW, TextContract, same_law),
    sampled("end-to-end/texts-of-one-token", TextContract, one_token, weight=0.1),
)
