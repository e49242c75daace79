"""Stage acceptance: accepted lengths follow the closed form, neither longer nor shorter.

On fixtures; of whole loops that report their blocks as `implementation.blocks`, each with
`drafted` and `accepted`; and in the figures that metrics report.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from specref.arrays import Ints
from specref.conformance.checks.check import (
    Check,
    failed,
    not_applicable,
    not_run,
    passed,
    sampled,
)
from specref.conformance.checks.joint import BLOCKS
from specref.conformance.judge import Judge
from specref.conformance.markov import FLAT, PAIRS, PEAKED
from specref.conformance.status import Finding, Outcome
from specref.contracts.fixtures import CHAIN_FIXTURES, TREE_FIXTURES, Fixture, Place, TreeFixture
from specref.contracts.functions import GenerateContract, MetricsContract
from specref.contracts.sampling import giver
from specref.contracts.timeout import within
from specref.contracts.tree import TreeContract, lengths
from specref.contracts.verify import VerifyContract
from specref.distributions import overlap
from specref.models import Model, as_float
from specref.rule import Rule
from specref.rules import RULES, declarable
from specref.statistics.campaign.acceptance import compare_lengths, lower_rate
from specref.statistics.campaign.verdict import AcceptanceResult, Conformance
from specref.theory import block
from specref.theory.metrics import METRICS, Iteration, Log
from specref.vocabulary import Tokens, Vocabulary


def closed_form(name: str, judge: Judge) -> Outcome:
    """As many tokens are accepted as by the declared rule: more is as wrong as fewer."""
    declared = judge.declared
    if declared is None:
        return not_applicable("declares no rule (rule='standard', for example)")
    if declared.accepted_lengths is None:
        return not_applicable(
            f"no closed form of the number of accepted tokens of {declared.name} is known"
        )
    if judge.blocks(name).sharing:
        return not_run(f"blocked by independence/rows-{name}: lengths are of dependent blocks")
    results = judge.blocks(name).report.acceptance
    if not results:
        return not_applicable(
            "an accepted EOS ends a block: lengths do not tell what was accepted"
        )
    allowance = judge.capabilities.tolerance * judge.fixture(name).lookahead
    fitting = [
        rule.name for rule in others(declared) if _fits(rule, name, judge, results, allowance)
    ]
    return of_lengths(results, allowance, fitting, "closed form", "formula ")


def of_lengths(
    results: Sequence[AcceptanceResult],
    allowance: float,
    fitting: Sequence[str],
    source: str,
    short: str = "",
) -> Outcome:
    """The outcome of compared lengths, with the names of other rules that fit them."""
    for result in results:
        if deviates(result, allowance):
            return failed(
                f"numbers of accepted tokens are {result.conformance} at {result.case}: mean "
                f"{result.mean:.4f}, {source} {result.expected:.4f}"
                + "".join(f"; they are those of {rule!r}" for rule in fitting),
                mean=result.mean,
                expected=result.expected,
            )
    means = ", ".join(f"{result.mean:.3f} ({short}{result.expected:.3f})" for result in results)
    also = "".join(f"; {rule!r} would fit, too" for rule in fitting)
    return passed(f"mean number of accepted tokens {means}{also}")


def deviates(result: AcceptanceResult, allowance: float) -> bool:
    """Whether accepted lengths deviate by more than the claimed tolerance allows."""
    wrong = result.conformance != Conformance.CONFORMS
    return wrong and abs(result.largest_gap) > result.allowed_gap + allowance


def others(declared: Rule) -> list[Rule]:
    """The other rules with a closed form that are given drafts, if this rule is given drafts."""
    given = [rule for rule in RULES.values() if rule.verify and rule.accepted_lengths]
    return [rule for rule in given if declared.verify and rule != declared]


def _fits(
    rule: Rule, name: str, judge: Judge, results: Sequence[AcceptanceResult], allowance: float
) -> bool:
    """Whether the accepted lengths are also consistent with the law of another rule."""
    fixture, lengths = judge.fixture(name), rule.accepted_lengths
    assert lengths is not None, "only rules with a closed form are compared"
    seen = [(place, blocks) for place, blocks in judge.blocks(name).blocks.items() if blocks]
    for (place, blocks), result in zip(seen, results, strict=True):
        law = lengths(fixture.target, fixture.drafter, place.context, place.lookahead)
        counts = by_length(blocks, fixture.lookahead)
        found = compare_lengths(place.name, counts, [float(x) for x in law], judge.options.alpha)
        if abs(found.largest_gap) > result.allowed_gap + allowance:
            return False
    return True


def by_length(blocks: Mapping[Tokens, int], lookahead: int) -> Ints:
    """How many blocks have 1, 2, … tokens."""
    counts = np.zeros(lookahead + 1, dtype=np.int64)
    for tokens, times in blocks.items():
        counts[len(tokens) - 1] += times
    return counts


def bound(name: str, judge: Judge) -> Outcome:
    """No lossless rule keeps the first k drafts more often than block verification does.

    That is sum min(p, q) for k = 1. Above it, drafts are not from the declared q, or the output
    is not the target's.
    """
    found, fixture = judge.blocks(name), judge.fixture(name)
    if found.sharing:
        return not_run(f"blocked by independence/rows-{name}: lengths are of dependent blocks")
    alpha = judge.level / sum(place.lookahead for place in fixture.places)
    for place, kept in found.kept.items():
        for k, most in enumerate(_most_kept(fixture, place), 1):
            least = lower_rate(kept[k], kept[0], alpha)
            if least > most + k * judge.capabilities.tolerance + 1e-12:
                return failed(
                    f"{kept[k] / kept[0]:.4f} of blocks kept {k} drafts at {place.name}, surely "
                    f"more than {most:.4f}, the most that a lossless rule keeps: drafts not from "
                    "q, or a lossy rule",
                    kept=kept[k],
                    drafted=kept[0],
                    bound=most,
                )
    return passed("no drafts kept more often than a lossless rule can")


def _most_kept(fixture: Fixture, place: Place) -> list[float]:
    """P(the first k drafts are accepted) under block verification, for k = 1 to the lookahead."""
    target, drafter = as_float(fixture.target), as_float(fixture.drafter)
    rows = block.draft_rows(target, drafter, place.context, place.lookahead)
    kept = block.survival(block.accepted_prefixes(target, place.context, rows))
    return [*map(float, kept[1:]), *[0.0] * (place.lookahead + 1 - len(kept))]


def lengths_of_rule(name: str, judge: Judge) -> Outcome:
    """Blocks have as many tokens as those of the declared rule."""
    rule, rules = judge.capabilities.rule, declarable(tree=True)
    if rule is None:
        return not_applicable(f"declares no rule (rule={' or '.join(map(repr, rules))})")
    if judge.refusal(name):
        return not_applicable(judge.refusal(name))
    longest = max(fixture.lookahead for fixture in TREE_FIXTURES.values())
    allowance = judge.capabilities.tolerance * longest
    results = list(compared(name, judge, rule))
    fitting = [
        other
        for other in rules
        if other != rule
        and not any(deviates(result, allowance) for result in compared(name, judge, other))
    ]
    return of_lengths(results, allowance, fitting, "exactly")


def compared(name: str, judge: Judge, rule: str) -> Iterator[AcceptanceResult]:
    """Compare the lengths at each place with the law of a rule."""
    fixture = judge.fixture(name)
    assert isinstance(fixture, TreeFixture)
    blocks = judge.blocks(name).blocks
    for place in fixture.places:
        counts = by_length(blocks[place], place.lookahead)
        if counts.any():
            alpha = judge.level / len(fixture.places)
            yield compare_lengths(place.name, counts, lengths(fixture, place, rule), alpha)


CHECKS = tuple(
    check
    for name in CHAIN_FIXTURES
    for check in (
        Check(
            f"acceptance/{name}",
            BLOCKS,
            partial(closed_form, name),
            finding=Finding.ACCEPTANCE,
            law=True,
        ),
        sampled(f"acceptance/bound-{name}", VerifyContract, partial(bound, name)),
    )
)
OF_TREES = tuple(
    sampled(
        f"acceptance/{name}",
        TreeContract,
        partial(lengths_of_rule, name),
        finding=Finding.ACCEPTANCE,
    )
    for name in TREE_FIXTURES
)


TEXTS, TOKENS = 10, 200
SUM_MIN = float(overlap(FLAT.next_token(()), PEAKED.next_token(())))
DRAFTER_ONLY = "xy"
ROUNDING = 1e-9
UNTOLD = "does not tell its blocks"


def first_drafts(judge: Judge) -> Outcome:
    """No lossless rule keeps a first draft more often than sum min(p, q)."""
    if not hasattr(judge.implementation, "blocks"):
        return not_applicable(UNTOLD)
    if judge.declared and not judge.declared.draws_from_q:
        return not_applicable("declares a rule whose drafts are not drawn from q, one a position")
    return _of_first_drafts(
        judge, "more", "drafts are verified with another q, or the rule is lossy"
    )


def lost_drafts(judge: Judge) -> Outcome:
    """The declared rule keeps first drafts no less often than sum min(p, q)."""
    rule = judge.declared
    if rule and rule.accepted_lengths is None:
        return not_applicable(
            f"no closed form of the number of accepted tokens of {rule.name} is known"
        )
    if rule is None or rule.acceptance_rate(FLAT, PEAKED) < SUM_MIN - ROUNDING:
        return not_applicable("declares no rule that keeps sum min(p, q) of first drafts")
    if not hasattr(judge.implementation, "blocks"):
        return not_applicable(UNTOLD)
    return _of_first_drafts(judge, "fewer", "the draft model does not draft by the q it was given")


def _of_first_drafts(judge: Judge, wrong: Literal["more", "fewer"], why: str) -> Outcome:
    """The outcome of counted first drafts: surely more, or fewer, than `SUM_MIN` fail."""
    kept, drafted = _first_drafts(judge)
    if not drafted:
        return not_applicable("nothing was drafted")
    facts = {"kept": kept, "drafted": drafted, "bound": SUM_MIN}
    least = lower_rate(kept, drafted, judge.level)
    most = 1 - lower_rate(drafted - kept, drafted, judge.level)
    if least > SUM_MIN if wrong == "more" else most < SUM_MIN:
        return failed(
            f"{kept} of {drafted} first drafts kept, surely {wrong} than sum min(p, q) = "
            f"{SUM_MIN:.3f}: {why}",
            **facts,
        )
    return passed(f"{kept} of {drafted} first drafts kept, sum min(p, q) = {SUM_MIN:.3f}", **facts)


def _first_drafts(judge: Judge) -> tuple[int, int]:
    """How many first drafts were kept, and how many there were; counted once."""
    if judge.first_drafts is not None:
        return judge.first_drafts
    first: list[bool] = []
    started = time.perf_counter()
    for number in range(TEXTS):
        if judge.seconds is not None and time.perf_counter() - started > judge.seconds:
            break  # whatever was seen until now
        blocks = _blocks(judge, FLAT, PEAKED, number)
        # The number of blocks is fixed beforehand: every text has at least so many.
        longest = max((block.drafted for block in blocks), default=0) + 1
        first += [b.accepted > 0 for b in blocks[: TOKENS // longest - 1] if b.drafted]
    judge.first_drafts = sum(first), len(first)
    return judge.first_drafts


def self_draft(judge: Judge) -> Outcome:
    """Drafts of the target itself, under other ids where the rule reads those, are accepted.

    The model has order 2, so that a wrong token in the drafter's context is noticed. If the rule
    skips tokens that the target does not know, the drafter has some of them.
    """
    if not hasattr(judge.implementation, "blocks"):
        return not_applicable(UNTOLD)
    rule = judge.declared
    if rule is None or not (rule.accepts_equals and rule.draws_from_q):
        return not_applicable("declares no rule that keeps every draft where p = q")
    drafter = PAIRS if rule.same_vocabulary else relabelled(PAIRS, DRAFTER_ONLY * rule.restricts)
    blocks = _blocks(judge, PAIRS, drafter)
    drafted, kept = (sum(getattr(b, name) for b in blocks) for name in ("drafted", "accepted"))
    if not drafted:
        return not_applicable("nothing was drafted")
    if kept < drafted:
        return failed(
            f"{kept} of {drafted} drafts of a draft model that is the target were kept: q, or the "
            "draft model's context, is not what it should be",
            kept=kept,
            drafted=drafted,
        )
    return passed(f"all {drafted} drafts of a draft model that is the target were kept")


def relabelled(model: Model, drafter_only: Sequence[str] = ()) -> Model:
    """The same model with its tokens in another order, after additional tokens of mass 1/2."""
    size, more = len(model.vocabulary), len(drafter_only)
    order = [(2 * i + 2) % size for i in range(size)] if size % 2 else list(range(size))[::-1]
    words: Sequence[Any] = [*drafter_only, *(model.vocabulary.tokens[i] for i in order)]

    def next_token(context: Tokens) -> Any:
        known = tuple(order[token - more] for token in context if token >= more)
        row = model.next_token(known)[order]
        return np.concatenate([[row.sum() / (2 * more)] * more, row / 2]) if more else row

    return Model(Vocabulary(words), next_token)


def _blocks(judge: Judge, target: Model, drafter: Model, number: int = 0) -> Sequence[Any]:
    rng = judge.rng(f"blocks {number}")
    implementation: Any = judge.implementation
    arguments = as_float(target), as_float(drafter), (0,), TOKENS
    within(judge.timeout, lambda: giver(implementation)(arguments, rng))
    return tuple(implementation.blocks)


LOOPS = (
    sampled("acceptance/first-drafts", GenerateContract, first_drafts),
    sampled("acceptance/lost-drafts", GenerateContract, lost_drafts, finding=Finding.ACCEPTANCE),
    Check("acceptance/self-draft", GenerateContract, self_draft, finding=Finding.ACCEPTANCE),
)


YES, NO = True, False
# Decisions after a rejection, an accepted EOS, iterations without drafts, uneven lengths, two
# requests of different length, a second process: cases that published figures got wrong.
LOGS: tuple[Log, ...] = (
    (
        Iteration((YES, YES, NO), 3),
        Iteration((NO, YES, YES), 1),
        Iteration((YES, NO), 2, request=1),
        Iteration((), 1, request=1),
        Iteration((YES, YES, YES), 4, request=1, rank=1),
        Iteration((YES, YES), 1, request=2, rank=1),
    ),
    (
        Iteration((YES, YES), 3),
        Iteration((YES,), 2),
        Iteration((NO, NO), 1, request=1),
        Iteration((NO, YES), 1, request=1, rank=1),
        Iteration((YES, NO, YES), 2, request=1, rank=1),
    ),
)


def _long_log(iterations: int) -> Log:
    """Of many requests, with up to 12 drafts; of those, some first ones are kept."""
    return tuple(
        Iteration(
            tuple(place != i * 5 % 17 for place in range(i * 7 % 13)),
            min(i * 7 % 13, i * 5 % 17) + 1,
            request=i // 7,
            rank=i // 7 % 3,
        )
        for i in range(iterations)
    )


LONG = _long_log(3_000)
FEW = 20


def reported(judge: Judge) -> Outcome:
    """The figure equals its definition on logs with everything that public figures missed."""
    metric = judge.capabilities.metric
    for number, log in enumerate((*LOGS, LONG)):
        got = within(judge.timeout, partial(judge.implementation, log))
        expected = METRICS[metric](log)
        if not _equal(got, expected):
            of = f"log {number}" if len(log) <= FEW else f"a log of {len(log):,} iterations"
            shown = list(map(str, log[:FEW]))
            return failed(f"{of}: {metric} is {expected}, not {got}", log=shown)
    return passed(f"{metric} on {len(LOGS)} logs, and on one of {len(LONG):,} iterations")


def _equal(got: object, expected: object) -> bool:
    try:
        if isinstance(expected, tuple):
            pairs = zip(got, expected, strict=True)  # type: ignore[call-overload]
            return all(abs(float(x) - float(y)) < 1e-9 for x, y in pairs)
        return abs(float(got) - float(expected)) < 1e-9  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


REPORTED = (Check("acceptance/reported", MetricsContract, reported, finding=Finding.ACCEPTANCE),)
