"""The work of ``specref prove``: one rule or all, proved or refuted, and the report written."""

from collections.abc import Callable
from typing import Any, Literal, NoReturn

import click

from specref.cli.cluster import Run
from specref.cli.dominance import compare_rules, verify_dominance
from specref.cli.everywhere import LETTERS, prove_everywhere, require_z3
from specref.cli.group import HOLDS, INTERRUPTED, VIOLATED, leave, misused, progress, refuse_given
from specref.cli.loading import Loaded, load_function
from specref.contracts.signature import accepted_keywords
from specref.contracts.table import contracts_of
from specref.pairs import Profile
from specref.proofs.everywhere.proof import BUDGET
from specref.proofs.exact import check_step
from specref.report.everywhere import enlarged
from specref.report.everywhere_table import answers_document, within_docs
from specref.report.machine import as_json
from specref.report.main_job import verification_document
from specref.report.rules import first_error, outside_chance, rule_document, rule_record
from specref.rules import RULES
from specref.verification import (
    InterruptedProofError,
    RuleReport,
    cases_of,
    prove,
    rule_cases,
    verify,
)
from specref.verification.dominance import BUDGET as OF_CLAIMS
from specref.verification.everywhere import STOPPED, boxes_of, larger_box, prove_boxes
from specref.verification.reports import TRIED

TOY = ("profile", "only")
"""Options without --everywhere alone."""
EVERYWHERE = ("against", "iterations", "tokens", "lookahead", "budget", "save")
"""Options with it alone."""


def prove_rule(
    rule: str,
    profile: Profile,
    everywhere: bool,
    budget: float,
    run: Run,
    pairs: str,
    only: tuple[str, ...],
    against: str | None,
    iterations: int,
    tokens: int,
    lookahead: int,
    save: str | None,
) -> NoReturn:
    """Prove or refute a rule, and leave with the exit code."""
    if everywhere:
        refuse_given(TOY, "without --everywhere")
    else:
        refuse_given(EVERYWHERE, "with --everywhere")
    step = load_function(rule, "rule")
    try:
        check_step(step)
    except TypeError as error:
        misused(f"{rule}: {error}{_judged_by(rule, step)}")
    if everywhere:
        if not 2 <= tokens <= len(LETTERS):
            raise ValueError(f"tokens = {tokens}: expected 2 to {len(LETTERS)}")
        if lookahead < 0:
            raise ValueError(f"lookahead = {lookahead}: expected an integer >= 0")
        kind: Literal["one", "two"] = "one" if pairs in ("same", "one") else "two"
        if against:
            _alone_with_against(save, run)
            known = RULES.get(against)
            other = known.step if known else load_function(against, "against")
            size = tokens, lookahead, iterations
            compare_rules((rule, against), (step, other), *size, kind, budget, run)
        if iterations > 1:
            raise ValueError(f"iterations = {iterations}: expected 1 without --against")
        prove_everywhere(rule, step, tokens, lookahead, kind, budget, save, run)
    if pairs in ("one", "two"):
        raise ValueError(f"pairs = {pairs!r}: expected same or all without --everywhere")
    same, interrupted = pairs == "same", False
    cases = progress(len(rule_cases(profile, same, only or None)), "cases")
    try:
        with run.executor() as pool, cases as advance:
            report = prove(
                Loaded(rule, step),
                profile,
                same_vocabulary=same,
                only=only or None,
                executor=pool,
                advance=lambda case: advance(1, case),
            )
    except InterruptedProofError as stop:
        report, interrupted = stop.report, True
    run.deliver(rule_document(rule, report), as_json(rule_record(rule, report)))
    if interrupted:
        click.echo("interrupted", err=True)
        leave(INTERRUPTED)
    if report.outside:
        misused(f"{rule}: {outside_chance(report)}")
    if report.refuted:
        leave(VIOLATED)
    if report.raised:
        hint = "" if same else " (for one vocabulary: --pairs same)"
        sampled = _judged_by(rule, step) if "rng" in accepted_keywords(step) else ""
        misused(f"{rule} raised {first_error(report)}{hint}{sampled}")
    if not report.proved:
        misused(f"{rule}: nothing was proved, {_why_nothing(report)}")
    leave(HOLDS)


def _why_nothing(report: RuleReport) -> str:
    if not report.enumerated:
        return "--only leaves no cases over one vocabulary (for two: --pairs all)"
    if report.too_large:
        return "every case has too many paths"
    return "it is not defined for any of these vocabularies"


def _judged_by(rule: str, step: Callable[..., Any]) -> str:
    commands = (f"specref check {rule} --contract {one}" for one in contracts_of(step))
    return "".join(f"; by samples: {command}" for command in commands)


def _alone_with_against(save: str | None, run: Run) -> None:
    if save:
        raise ValueError("save: expected without --against")
    if run.workers > 1:
        raise ValueError(f"workers = {run.workers}: expected 1 with --against")
    if run.cluster:
        raise ValueError(f"cluster = {run.cluster}: expected without --against")


def prove_all(
    profile: Profile,
    everywhere: bool,
    budget: float | None,
    run: Run,
    compare: bool,
    known_bugs: bool,
) -> NoReturn:
    """Prove every rule over toy pairs, or for every p and q, or compare them; and leave."""
    if budget is None:
        budget = OF_CLAIMS if compare else BUDGET
    if compare:
        if everywhere or known_bugs:
            raise ValueError("compare: expected without --everywhere and --known-bugs")
        verify_dominance(profile, budget, run)
    if everywhere:
        verify_everywhere(profile, known_bugs, budget, run)
    if known_bugs or run.markdown:
        name = "known-bugs" if known_bugs else "markdown"
        raise ValueError(f"{name}: expected with --everywhere")
    total = len(TRIED) * len(cases_of(profile))
    with run.executor() as pool, progress(total, "cases") as advance:
        verification = verify(profile, run.seed, lambda name: advance(1), pool)
    record = as_json(verification, ok=verification.ok)
    run.deliver(verification_document(verification), record, ("seed", f"{run.seed}"))
    leave(HOLDS if verification.ok else VIOLATED)


def verify_everywhere(profile: Profile, zoo: bool, budget: float, run: Run) -> NoReturn:
    """Print the table of all rules for every p and q."""
    require_z3()
    boxes = boxes_of(profile, zoo=zoo)
    unit = f"rules, at most {budget:g} s each"
    with run.executor() as pool, progress(len(boxes), unit) as advance:
        answers = prove_boxes(boxes, run.seed, budget, pool, lambda answer: advance(1))
        while zoo and not any(answer.note == STOPPED for answer in answers):
            again = {answer: box for answer in answers if (box := larger_box(answer))}
            if not again:
                break
            further = prove_boxes(tuple(again.values()), run.seed, budget, pool)
            answers = tuple(one for one in answers if one not in again) + further
    command = f"specref prove --all --everywhere --profile {profile}" + " --known-bugs" * zoo
    linked = run.markdown is not None and within_docs(run.markdown)
    told = answers_document(answers, f"{command} --markdown FILE", zoo=zoo, linked=linked)
    record = {"profile": profile, "seed": run.seed, "answers": answers}
    run.deliver(told, as_json(record))
    if any(answer.note == STOPPED for answer in answers):
        leave(INTERRUPTED)
    if any(answer.verdict == "open" for answer in answers):
        click.echo(f"some rules are open: try --budget {enlarged(budget):g}", err=True)
    leave(HOLDS if all(answer.as_known for answer in answers) else VIOLATED)
