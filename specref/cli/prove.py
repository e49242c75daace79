"""``specref prove``: a user's verification rule, proved or refuted."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn

import click
from click.core import ParameterSource

from specref.cli.cluster import cluster_option, executor_of
from specref.cli.dominance import compare_rules
from specref.cli.everywhere import LETTERS, prove_everywhere
from specref.cli.group import (
    HOLDS,
    INTERRUPTED,
    VIOLATED,
    html_option,
    json_option,
    misused,
    profile_option,
    progress,
    seed_option,
    show,
    workers_option,
    writable,
)
from specref.cli.loading import Loaded, load_function
from specref.contracts.keywords import accepted_keywords
from specref.contracts.table import contracts_of
from specref.pairs import Profile
from specref.proofs.everywhere.proof import BUDGET
from specref.proofs.exact import check_step
from specref.report.machine import as_json, write_json
from specref.report.rules import first_error, outside_chance, rule_record, rule_report
from specref.report.rules_html import rule_html
from specref.rules import RULES
from specref.verification import SITUATIONS, InterruptedProofError, RuleReport, prove, rule_cases

TOY = ("profile", "only")
"""Options without --everywhere alone."""
EVERYWHERE = ("against", "iterations", "tokens", "lookahead", "budget", "save")
"""Options with it alone."""


@click.command("prove")
@click.argument("rule", metavar="MODULE:FUNCTION")
@profile_option
@click.option(
    "--pairs",
    type=click.Choice(["same", "all", "one", "two"]),
    default="same",
    show_default=True,
    help="Toy pairs over one vocabulary, or also drafters with another vocabulary; with "
    "--everywhere one vocabulary, or a list of two.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(tuple(SITUATIONS)),
    metavar="SITUATION",
    help=f"Only this situation; repeat for more. There are: {', '.join(SITUATIONS)}.",
)
@workers_option
@cluster_option
@click.option("--everywhere", is_flag=True, help="For every p and q, in place of the toy pairs.")
@click.option(
    "--against",
    metavar="RULE",
    help="With --everywhere: whether it accepts at least as many drafts as this one; "
    "MODULE:FUNCTION, or a name of `specref list rules`.",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="With --against: compare the tokens that so many iterations emit.",
)
@click.option("--tokens", default=3, show_default=True, help="With --everywhere: of a vocabulary.")
@click.option("--lookahead", default=1, show_default=True, help="With --everywhere.")
@click.option(
    "--budget", default=BUDGET, show_default=True, help="With --everywhere: CPU seconds."
)
@click.option(
    "--save",
    metavar="FILE",
    callback=writable,
    help="With --everywhere: write a witness, to be replayed.",
)
@seed_option
@html_option
@json_option
def prove_command(
    rule: str,
    profile: Profile,
    pairs: str,
    only: tuple[str, ...],
    workers: int,
    cluster: str | None,
    everywhere: bool,
    against: str | None,
    iterations: int,
    tokens: int,
    lookahead: int,
    budget: float,
    save: str | None,
    seed: int,
    json_file: str | None,
    html_file: str | None,
) -> NoReturn:
    """Prove or refute YOUR verification rule, exactly.

    MODULE:FUNCTION (or FILE.py:FUNCTION) names a function
    step(target, drafter, context, lookahead, chance) that returns a tuple of token ids and
    takes every random decision from chance.draw(probabilities, site) and
    chance.accept(probability, site). Paths are run again, the first 32 and every 16th: a
    rule that does something else on the same choices, or never asks for any, is not judged.
    A table says what was enumerated: prompts of up to 1,025 tokens, up to 1,030 tokens, up to 16
    drafts, p and q down to 1e-15, EOS at any id. That takes 2 to 6 seconds of CPU time for most
    rules with one draft of a token, and up to 25 for the costliest of those with several.

    Exit codes: 0 lossless on every case, 1 lossy on one, 2 it failed or cannot be judged.

    \b
    Examples:
      specref prove my_rules:my_step
      specref prove ./my_rule.py:step --profile standard --workers 4
      specref prove my_rules:my_step --cluster tcp://host:8786
      specref prove ./my_rule.py:step --only lookaheads --only EOS
      specref prove specref.algorithms.tli:step --pairs all
      specref prove my_rules:my_step --everywhere --tokens 3 --lookahead 2
      specref prove my_rules:my_step --everywhere --against standard
    """
    _refuse_given(TOY if everywhere else EVERYWHERE)
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
    _write(rule, report, json_file, html_file)
    if interrupted:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    if report.outside:
        misused(f"{rule}: {outside_chance(report)}")
    if report.refuted:
        sys.exit(VIOLATED)
    if report.raised:
        hint = "" if same else " (for one vocabulary: --pairs same)"
        sampled = _judged_by(rule, step) if "rng" in accepted_keywords(step) else ""
        misused(f"{rule} raised {first_error(report)}{hint}{sampled}")
    if not report.proved:
        misused(f"{rule}: nothing was proved, {_why_nothing(report)}")
    sys.exit(HOLDS)


def _refuse_given(names: Sequence[str]) -> None:
    """Refuse options that would do nothing, with --everywhere or without."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            how = "without" if context.params["everywhere"] else "with"
            raise ValueError(f"{name}: expected {how} --everywhere")


def _write(rule: str, report: RuleReport, json_file: str | None, html_file: str | None) -> None:
    show(rule_report(rule, report), json_file)
    if json_file:
        write_json(json_file, as_json(rule_record(rule, report)))
    if html_file:
        write_json(html_file, rule_html(rule, report))


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
