"""The work of ``specref prove``: a rule, proved or refuted, and the report written."""

from collections.abc import Callable
from typing import Any, Literal, NoReturn

import click

from specref.cli.cluster import executor_of
from specref.cli.dominance import compare_rules
from specref.cli.everywhere import LETTERS, prove_everywhere
from specref.cli.group import (
    HOLDS,
    INTERRUPTED,
    VIOLATED,
    deliver,
    leave,
    misused,
    progress,
    refuse_given,
)
from specref.cli.loading import Loaded, load_function
from specref.contracts.signature import accepted_keywords
from specref.contracts.table import contracts_of
from specref.pairs import Profile
from specref.proofs.exact import check_step
from specref.report.machine import as_json
from specref.report.rules import first_error, outside_chance, rule_document, rule_record
from specref.rules import RULES
from specref.verification import InterruptedProofError, RuleReport, prove, rule_cases

TOY = ("profile", "only")
"""Options without --everywhere alone."""
EVERYWHERE = ("against", "iterations", "tokens", "lookahead", "budget", "save")
"""Options with it alone."""


def prove_rule(
    rule: str,
    profile: Profile,
    seed: int,
    workers: int,
    cluster: str | None,
    everywhere: bool,
    budget: float,
    json_file: str | None,
    html_file: str | None,
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
            _alone_with_against(save, workers, cluster)
            known = RULES.get(against)
            other = known.step if known else load_function(against, "against")
            steps = step, other
            size = tokens, lookahead, iterations
            files = json_file, html_file
            compare_rules((rule, against), steps, *size, kind, budget, seed, *files)
        if iterations > 1:
            raise ValueError(f"iterations = {iterations}: expected 1 without --against")
        asked = tokens, lookahead, kind, budget, seed, workers, cluster
        prove_everywhere(rule, step, *asked, json_file, html_file, save)
    if pairs in ("one", "two"):
        raise ValueError(f"pairs = {pairs!r}: expected same or all without --everywhere")
    same, interrupted = pairs == "same", False
    cases = progress(len(rule_cases(profile, same, only or None)), "cases")
    try:
        with executor_of(workers, cluster) as pool, cases as advance:
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
    record = as_json(rule_record(rule, report))
    deliver(rule_document(rule, report), record, json_file, html_file)
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


def _alone_with_against(save: str | None, workers: int, cluster: str | None) -> None:
    if save:
        raise ValueError("save: expected without --against")
    if workers > 1:
        raise ValueError(f"workers = {workers}: expected 1 with --against")
    if cluster:
        raise ValueError(f"cluster = {cluster}: expected without --against")
