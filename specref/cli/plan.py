"""``specref plan samples``: what a verdict costs; ``specref plan speed``: what drafts gain."""

from collections.abc import Callable
from typing import Any, TypeAlias

import click
from click.core import ParameterSource
from rich.console import Group, RenderableType

from specref.cli.group import HOLDS, leave, show
from specref.cli.options import json_option
from specref.report.layout import Column, Prose, Table
from specref.report.machine import as_json, write_json
from specref.statistics.campaign import planning
from specref.statistics.campaign.levels import ALPHA
from specref.statistics.campaign.planning import Plan, typical_trials, typical_tv
from specref.wings import registered
from specref.zoo.planning import FIXTURE_PAIRS, MutantPlan, plan_mutant

Command: TypeAlias = Callable[..., Any]


def asking(hidden: bool) -> Callable[[Command], Command]:
    """The options of `plan samples`; hidden where they stand for it without its name."""
    options = (
        click.option(
            "--tv",
            "--detect-tv",
            type=float,
            hidden=hidden,
            help="How many samples detect this TV?",
        ),
        click.option(
            "--n", "trials", type=int, hidden=hidden, help="Which TV do this many samples detect?"
        ),
        click.option(
            "--eps",
            type=float,
            hidden=hidden,
            help="How many samples certify a lossless sampler within this TV?",
        ),
        click.option("--mutant", hidden=hidden, help="How many samples detect this known bug?"),
        click.option(
            "--alpha", default=ALPHA, show_default=True, hidden=hidden, help="False-positive rate."
        ),
        click.option(
            "--rate",
            default=10_000.0,
            show_default=True,
            hidden=hidden,
            help="Samples per second.",
        ),
    )

    def given(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return given


def plan_table(
    plans: tuple[Plan, ...] | tuple[MutantPlan, ...],
    *,
    tv: float | None,
    trials: int | None,
    alpha: float,
    rate: float,
) -> RenderableType:
    mutants = any(isinstance(plan, MutantPlan) for plan in plans)
    numbers = ("TV", "floor", "expected") if mutants else ("cells", "TV", "blocks")
    columns = [Column("fixture"), *(Column(title, right=True) for title in (*numbers, "time"))]
    return Group(
        Table(columns, [_plan_row(plan, rate) for plan in plans]),
        "",
        *(Prose(line, "dim") for line in _plan_notes(mutants, tv, trials)),
        Prose(f"alpha {alpha:g} for the campaign; time at {rate:,.0f} blocks/s", "dim"),
    )


def _plan_row(plan: Plan | MutantPlan, rate: float) -> list[str]:
    if isinstance(plan, MutantPlan):
        blocks = plan.expected_trials
        cells = [f"{plan.tv:.4f}", f"{plan.floor:,.0f}", f"{blocks:,}"]
    else:
        blocks = plan.trials
        cells = [f"{plan.cells:,}", f"{plan.tv:.4g}", f"{blocks:,}"]
    return [plan.fixture, *cells, _duration(blocks / rate)]


def _plan_notes(mutants: bool, tv: float | None, trials: int | None) -> list[str]:
    if mutants:
        return [
            "floor: no test at this alpha needs fewer on average; expected: when the library's "
            "bet on the bug has won; floor 0: it does what the target excludes, and that is "
            "seen 999 times in 1,000."
        ]
    proved = (
        "Cells: completed blocks that the target can produce; more need more blocks (your own "
        "pair: specref.statistics.plan_distance). Proved, for any sampler, 999 times in 1,000."
    )
    if tv is not None:
        return [proved, f"Typically a campaign needs {typical_trials(tv):,} (measured: 12 / TV²)."]
    if trials is not None:
        return [proved, f"Typically a campaign finds {typical_tv(trials):.4g} (measured)."]
    return ["Proved: a lossless sampler is certified 9 times in 10."]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@click.group("plan", invoke_without_command=True)
@asking(hidden=True)
@json_option
@click.pass_context
def plan_command(context: click.Context, /, **given: Any) -> None:
    """How many samples does a verdict need? Which lookahead is fastest?

    Options without a command are those of `samples`. Takes a second.

    \b
    Examples:
      specref plan samples --tv 0.01
      specref plan samples --mutant residual-is-p --rate 2000
      specref plan speed --acceptance 0.7 --cost 0.05
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    context.invoke(samples_command, **given)


@plan_command.command("samples")
@asking(hidden=False)
@json_option
def samples_command(
    tv: float | None,
    trials: int | None,
    eps: float | None,
    mutant: str | None,
    alpha: float,
    rate: float,
    json_file: str | None,
) -> None:
    """How many samples does a verdict need?

    How long they take is told, too. Give one of --tv, --n, --eps and --mutant. Takes a second.

    \b
    Examples:
      specref plan samples --tv 0.01
      specref plan samples --n 100000
      specref plan samples --mutant residual-is-p --rate 2000
    """
    if not rate > 0:
        raise ValueError(f"rate = {rate}: expected a number > 0")
    plans = _plans(tv, trials, eps, mutant, alpha)
    show(plan_table(plans, tv=tv, trials=trials, alpha=alpha, rate=rate), json_file)
    if json_file:
        write_json(json_file, as_json({"alpha": alpha, "rate": rate, "plans": plans}))
    leave(HOLDS)


def _plans(
    tv: float | None, trials: int | None, eps: float | None, mutant: str | None, alpha: float
) -> tuple[planning.Plan, ...] | tuple[MutantPlan, ...]:
    if [tv, trials, eps, mutant].count(None) != 3:
        raise ValueError("expected exactly one of --tv, --n, --eps and --mutant")
    if mutant is not None:
        return plan_mutant(mutant, alpha)
    if trials is not None:
        return planning.plan_trials(trials, alpha, pair=FIXTURE_PAIRS)
    if eps is not None:
        return planning.plan_eps(eps, alpha, pair=FIXTURE_PAIRS)
    assert tv is not None
    return planning.plan_distance(tv, alpha, pair=FIXTURE_PAIRS)


def _refuse_options(context: click.Context) -> None:
    """Refuse options before the subcommand, which would be ignored."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source == ParameterSource.COMMANDLINE:
            raise ValueError(
                f"{parameter.opts[0]} before {context.invoked_subcommand}: give it after, "
                f"if `specref plan {context.invoked_subcommand}` has it"
            )


for name, entry in registered("commands").items():
    if name.startswith("plan "):
        plan_command.add_command(entry.load())
