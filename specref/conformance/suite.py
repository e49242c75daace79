"""The suite: runs the checks in the order of their stages, and makes the report."""

import difflib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from specref.conformance.batch_bugs import batch_bug
from specref.conformance.checks import CHECKS, Check
from specref.conformance.checks.check import few_threads
from specref.conformance.checks.probed import one_draft, two_drafts
from specref.conformance.diagnosis import Diagnosis, Observed, diagnose, unnamed
from specref.conformance.diagnosis.laws import laws_compared
from specref.conformance.diagnosis.ranking import ExactBlocks, diagnose_exactly
from specref.conformance.explaining import explained, explains, explanation, further
from specref.conformance.judge import ExactLaw, Judge
from specref.conformance.options import LONGER, CheckOptions, Listener
from specref.conformance.report import RUNNING, Interrupted, Report
from specref.conformance.scheduling import Ahead, Clock, Workers, ahead_of_samples, in_order
from specref.conformance.splits import located
from specref.conformance.status import (
    FIRST,
    CheckResult,
    Finding,
    Outcome,
    Stage,
    Status,
    blocker,
    drafts_of,
    grouped,
    settled_by,
)
from specref.conformance.time_limit import EXPLAINED, LateError, TimeLimit, at_most
from specref.contracts.capabilities import Capabilities, capabilities_of, explicit_claims
from specref.contracts.contract import Contract, Subject
from specref.contracts.signature import accepted_keywords, parameters_passed
from specref.contracts.table import signed
from specref.contracts.text import Engine, Journal
from specref.contracts.verify import VerifyContract
from specref.rules import RULES

SMOKE = ("smoke", "replay", "boundary", "joint/probed", "joint/probed-", "end-to-end/probed")
"""What the profile smoke asks for: nothing whose distribution is sampled."""
DRAWN = ("boundary/rare-draft",)
"""What it does not ask for: thousands of calls, until a draft comes that is rare."""
RARE = 0.01
NEAR = 0.75
NO_LISTENER = Listener()


def run_checks(
    implementation: Callable[..., Any],
    options: CheckOptions,
    listener: Listener = NO_LISTENER,
    workers: Workers | None = None,
    started: float | None = None,
) -> Report:
    """As `check`, with the options as one object, and when the time began that limits it."""
    began = time.perf_counter()
    if workers is not None and options.texts is not None:
        raise ValueError(f"texts = {options.texts!r}: expected None with workers")
    judge, asked = prepare(implementation, options, listener.advance)
    asked, copied = in_order(asked, judge)
    known_ids(options.expected_failures)
    named = replace(options, name=options.name or own_name(implementation))
    judge.journal = journal_of(implementation, named)
    results: list[CheckResult] = []
    clock = Clock(options.seconds, asked, judge.contract)
    judge.limit = TimeLimit(options.time_limit, started or began, judge.contract)
    ahead = workers and Ahead(asked, judge, workers, options.blocking, clock.apart)

    def report(
        results: Sequence[CheckResult], diagnosis: Diagnosis | None = None, complete: bool = True
    ) -> Report:
        warnings = *rare_edges(results), *vacuous(judge), *printing(results), *idle(results)
        seconds = time.perf_counter() - began
        known = judge.capabilities, tuple(results), warnings, diagnosis, seconds, complete
        return Report(named, *known, told=judge.told, passed_on=judge.passed)

    here = partial(Check.run, judge=judge)

    def so_far(why: str) -> list[CheckResult]:
        left = [one for one in asked[len(results) :] if one.is_for(judge.contract)]
        return results + [one.result(Outcome(Status.NOT_RUN, why)) for one in left]

    try:
        for one in asked:
            listener.on_start(one)
            if ahead:
                ahead.send(results)
            judge.seconds = clock.share(len(results), judge.limit.left())
            run: Callable[[Check], CheckResult] = ahead.result if ahead else here
            if copied and (one.id in FIRST or (not ahead and drafts_of(one.id))):
                run = partial(ahead_of_samples, judge=judge)
            result = _instead(one, judge, results if options.blocking else [], run)
            drawn = judge.seconds if clock.draws(len(results)) else None
            if options.time_limit is not None:
                elsewhere = ahead is not None
                run = partial(judge.limit.run, run=run, share=drawn, elsewhere=elsewhere)
            results.append(_as_expected(one, result or run(one), judge))
            listener.on_result(results[-1])
            if options.exitfirst and results[-1].status == Status.FAILED:
                results = so_far(f"stopped after {one.id}")
                break
            if len(results) < len(asked):
                listener.on_report(report(so_far("not yet"), complete=False))
        judged = located(report(results, diagnosed_in_time(judge, results)), judge, copied)
        return replace(judged, seconds=time.perf_counter() - began)
    except KeyboardInterrupt as stop:
        found = _interrupted(so_far("interrupted"), len(results), stop)
        named_bug = diagnosed(judge, found, draw_on=False)
        raise Interrupted(report(found, named_bug, complete=False)) from stop
    finally:
        if judge.journal:
            judge.journal.close()
        if ahead:
            ahead.cancel()


def own_name(implementation: Callable[..., Any]) -> str:
    """What an implementation is called, if it is not given a name."""
    return str(getattr(implementation, "__qualname__", type(implementation).__name__))


def journal_of(implementation: Callable[..., Any], options: CheckOptions) -> Journal | None:
    """Where texts of an engine are kept, if they are."""
    if options.texts is None or not isinstance(implementation, Engine):
        return None
    law = implementation.fingerprint
    known = {"engine": options.name, "version": options.version, "law": law}
    return Journal(options.texts, known)


def _interrupted(
    found: list[CheckResult], done: int, stop: KeyboardInterrupt
) -> list[CheckResult]:
    """The results so far, where the check that ran says where it was."""
    if done == len(found):
        return found
    lines = [line for note in getattr(stop, "__notes__", ()) for line in note.splitlines()]
    evidence = {"traceback": tuple(lines)} if lines else {}
    running = replace(found[done], message=RUNNING, evidence=evidence)
    return [*found[:done], running, *found[done + 1 :]]


def prepare(
    implementation: Callable[..., Any],
    options: CheckOptions,
    advance: Callable[[int], None] = lambda trials: None,
) -> tuple[Judge, tuple[Check, ...]]:
    """The judge and the selected checks."""
    accepted_keywords(implementation)
    rule = {} if options.algorithm is None else {"rule": options.algorithm}
    capabilities = capabilities_of(implementation, **{**rule, **options.claims})
    explicit = explicit_claims(implementation, options.claims)
    fitting(capabilities.rule, options.contract)
    signed(implementation, options.contract)
    capabilities, told = options.contract.read(implementation, capabilities, explicit)
    reachable(capabilities)
    for dtype in options.dtypes:
        reachable(replace(capabilities, dtype=dtype))
    if options.texts is not None and not options.contract.of_engines:
        raise ValueError(
            f"texts = {options.texts!r}: expected None under the contract {options.contract}"
        )
    statistical = sum(one.statistical and one.is_for(options.contract) for one in CHECKS)
    subject = Subject(implementation, capabilities, options.timeout, advance)
    only = SMOKE if options.profile == "smoke" and options.only is None else options.only
    asked = chosen(only)
    left_out = {one.id for one in chosen(options.skip, "skip")} if options.skip else set()
    left_out |= {*DRAWN, *LONGER} if only is SMOKE else set()
    asked = tuple(one for one in asked if one.id not in left_out)
    passed = parameters_passed(implementation, options.contract, capabilities)
    return Judge(subject, options, statistical, advance, told=told, passed=passed), asked


def reachable(capabilities: Capabilities) -> None:
    """Raise `ValueError` if the claimed dtype or device cannot be used on this machine."""
    if capabilities.arrays == "numpy":
        if capabilities.dtype in ("bfloat16", "float16") or capabilities.device != "cpu":
            raise ValueError(
                f"dtype = {capabilities.dtype}, device = {capabilities.device}: NumPy arrays are "
                "float64 or float32 on the CPU (arrays='torch' for others)"
            )
        return
    torch = import_module("torch")
    try:
        torch.zeros(1, device=capabilities.device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device = {capabilities.device!r} cannot be used: {reason}") from None


def fitting(rule: str | None, contract: Contract) -> None:
    """Raise `ValueError` if the contract does not take a rule: trees have their own rules."""
    if rule is not None and not contract.takes_rule(RULES[rule]):
        expected = f"one of {contract.rules}, or None" if contract.rules else "no rule"
        raise ValueError(f"rule = {rule!r}: the contract {contract} has {expected}")


def chosen(only: Sequence[str] | None, name: str = "only") -> tuple[Check, ...]:
    """The checks with these ids, and those whose ids start with one that is no id itself."""
    if isinstance(only, str):
        raise TypeError(f"{name} = {only!r}: expected a list of ids, such as [{only!r}]")
    for start in only or ():
        if not any(one.id.startswith(start) for one in CHECKS):
            hint = _suggestion(start, list(map(str, Stage)))
            raise ValueError(f"{name} = {start!r}: no check has an id like that{hint}")
    ids = {one.id for one in CHECKS}
    exact = {start for start in only or () if start in ids}
    starts = tuple(start for start in only or () if start not in exact)
    return tuple(
        one for one in CHECKS if only is None or one.id in exact or one.id.startswith(starts)
    )


def known_ids(expected: Mapping[str, str]) -> Mapping[str, str]:
    """Return the expected failures if every id exists."""
    ids = {one.id for one in CHECKS}
    for id_ in expected:
        if id_ not in ids:
            raise ValueError(f"expected_failures has no check {id_!r}{_suggestion(id_)}")
    return expected


def _suggestion(word: str, others: Sequence[str] = ()) -> str:
    """A hint at the id most similar to a word, with or without its stage; empty if none is."""
    ids = {one.id.partition("/")[2]: one.id for one in reversed(CHECKS)}
    known = ids | {one.id: one.id for one in CHECKS} | {other: other for other in others}
    close = difflib.get_close_matches(word, known, n=1, cutoff=NEAR)
    return f": did you mean {known[close[0]]!r}?" if close else ""


def _instead(
    one: Check,
    judge: Judge,
    before: Sequence[CheckResult],
    run: Callable[[Check], CheckResult],
) -> CheckResult | None:
    """The result of a check that others block, or settle; None if it is to be run."""
    if not one.is_for(judge.contract) or (one.law and judge.capabilities.greedy):
        return None
    settled = None if judge.options.only else settled_by(one.id, before)
    if settled:
        return one.result(Outcome(Status.NOT_RUN, f"settled by {settled}"))
    blocking = blocker(one.stage, before)
    if blocking is None:
        return None
    if explains(one, before):
        return explained(one, judge=judge, before=before, run=run)
    return one.result(Outcome(Status.NOT_RUN, f"blocked by {blocking}"))


def _as_expected(one: Check, result: CheckResult, judge: Judge) -> CheckResult:
    """A result with why it may have come about, and as what was expected of the check."""
    expected = judge.options.expected_failures
    if why := explanation_in_time(result, judge):
        evidence = {**result.evidence, "explanation": why}
        result = replace(result, message=f"{result.message}; {why}", evidence=evidence)
    if one.id not in expected:
        return result
    reason = expected[one.id]
    if result.status == Status.FAILED:
        message = f"{reason} ({result.message})"
        return replace(result, status=Status.EXPECTED_FAILURE, message=message)
    if result.status == Status.PASSED and one.statistical and judge.options.seconds is not None:
        message = f"not seen in what was drawn within the seconds: {reason}"
        return replace(result, status=Status.INCONCLUSIVE, message=message)
    if result.status == Status.PASSED:
        return replace(result, status=Status.UNEXPECTED_PASS, message=f"passed, though: {reason}")
    return result


def explanation_in_time(result: CheckResult, judge: Judge) -> str:
    """As `explanation`; empty if the time of the run is over."""
    try:
        with at_most(judge.limit.left(EXPLAINED)):
            return explanation(result, judge)
    except LateError:
        return ""


def rare_edges(results: Sequence[CheckResult]) -> Iterator[str]:
    """Warnings of edges of random numbers that are too rare to be failures, one for each call."""
    rare = [r for r in results if r.finding == Finding.EDGE and r.status == Status.PASSED]
    # Of a message "ID: CALL = NUMBER: …" the call.
    same = grouped((r.message.partition(" = ")[0].rpartition(": ")[2], r) for r in rare)
    for some in same.values():
        yield f"{', '.join(one.id for one in some)}: {some[0].message}"


def vacuous(judge: Judge) -> Iterator[str]:
    """Warnings of branches that were taken in under 1 % of the trials of a campaign."""
    little = "little was learned of that branch"
    for key, found in judge.memo.items():
        total = sum(found.hits.values())
        for branch, hits in found.hits.items():
            if key.startswith("blocks") and hits < RARE * total:
                yield f"{key}: {hits:,} of {total:,} blocks ended in a {branch} token; {little}"


def printing(results: Sequence[CheckResult]) -> Iterator[str]:
    """Warnings of engines that print to standard output."""
    for result in results:
        if first := result.evidence.get("printed"):
            said = f"prints to standard output, {first!r} first; that is sent to standard error"
            yield f"{result.id}: {said}"


def idle(results: Sequence[CheckResult]) -> Iterator[str]:
    """Warnings of engines that accept, or reject, drafts in few texts."""
    for result in (one for one in results if one.status == Status.PASSED):
        texts, proposed = result.evidence.get("texts", 0), result.evidence.get("proposed")
        accepted = result.evidence.get("accepted", 0)
        rejected = texts if proposed is None else proposed - accepted
        for what, drafts in (("accepted", accepted), ("rejected", rejected)):
            if drafts < RARE * texts:
                said = f"{drafts:,} drafts {what} in {texts:,} texts"
                yield f"{result.id}: {said}; little was learned of them"


def diagnosed_in_time(judge: Judge, results: Sequence[CheckResult]) -> Diagnosis | None:
    """As `diagnosed`, without more blocks if the time of the run is over."""
    try:
        with at_most(judge.limit.left(EXPLAINED)):
            return diagnosed(judge, results)
    except LateError:
        return diagnosed(judge, results, draw_on=False)


def diagnosed(
    judge: Judge, results: Sequence[CheckResult], *, draw_on: bool = True
) -> Diagnosis | None:
    """Candidate explanations for a failure of the law of blocks or of their lengths.

    With `draw_on`, more blocks are drawn: see `further`.
    """
    suspicious = (Stage.JOINT, Stage.ACCEPTANCE)
    if not any(r.stage in suspicious and r.status == Status.FAILED for r in results):
        return None
    sharing = tuple(key for key, found in judge.memo.items() if found.sharing)
    if sharing:
        return unnamed(sharing)
    hung = any(result.evidence.get("hung") for result in results)
    with few_threads():
        seen, rule = observed(judge, draw_on=draw_on and not hung), judge.rule
        if not seen:
            return diagnosed_exactly(judge)
        found = diagnose(seen, laws_compared(rule))
        wrong = [one for one in results if one.status == Status.FAILED and one.lossy]
        exact = [(one.evidence["total_variation"], one.id) for one in wrong if one.exact]
        found = replace(
            found, elsewhere=tuple(one.id for one in wrong), largest=max(exact, default=None)
        )
        told = found.known or found.clean_fits or found.tokens_fit
        if told or not isinstance(judge.contract, VerifyContract) or not judge.further:
            return found
        candidate = batch_bug(judge)
        return found if candidate is None else found.with_first(candidate)


def diagnosed_exactly(judge: Judge) -> Diagnosis | None:
    """The known bugs that have the laws which were worked out; None if there are none."""
    cases = {FIRST[0]: one_draft(), FIRST[1]: two_drafts(judge.contract.trees)}

    def compared(one: ExactLaw) -> ExactBlocks:
        target, drafter, context, lookahead, place = cases[one.id]
        name = f"{one.id}, {place.name if place else f'lookahead {lookahead}'}"
        options = place.options if place else ()
        case = Observed(name, target, drafter, context, lookahead, {(0,): 1}, options=options)
        return ExactBlocks(case, one.blocks, one.error_bound)

    found = [compared(one) for one in judge.exact_laws if one.blocks]
    return diagnose_exactly(found, laws_compared(judge.rule)) if found else None


def observed(judge: Judge, *, draw_on: bool) -> list[Observed]:
    """The blocks of all campaigns over single iterations, and of `further`."""
    names = [name for name in judge.fixtures if f"blocks/{name}" in judge.memo]
    more = further(judge, names) if draw_on else judge.further
    return [
        Observed(
            f"blocks/{name}, {place.name}",
            judge.fixture(name).target,
            judge.fixture(name).drafter,
            place.context,
            place.lookahead,
            counts,
            options=place.options,
        )
        for name in names
        for place, seen in judge.memo[f"blocks/{name}"].blocks.items()
        if (counts := Counter(seen) + more.get(name, {}).get(place, Counter()))
    ]
