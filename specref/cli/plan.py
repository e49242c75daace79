"""``specref plan``: what a verdict costs; ``specref plan speed``: what drafts gain."""

import click
from click.core import ParameterSource

from specref.cli.group import HOLDS, leave, show
from specref.cli.options import json_option
from specref.report import tables
from specref.report.machine import as_json, write_json
from specref.statistics.campaign import planning
from specref.statistics.campaign.levels import ALPHA
from specref.wings import registered
from specref.zoo.planning import FIXTURE_PAIRS, MutantPlan, plan_mutant


@click.group("plan", invoke_without_command=True)
@click.option("--tv", "--detect-tv", type=float, help="How many samples detect this TV?")
@click.option("--n", "trials", type=int, help="Which TV do this many samples detect?")
@click.option(
    "--eps", type=float, help="How many samples certify a lossless sampler within this TV?"
)
@click.option("--mutant", help="How many samples detect this known bug?")
@click.option("--alpha", default=ALPHA, show_default=True, help="False-positive rate.")
@click.option("--rate", default=10_000.0, show_default=True, help="Samples per second.")
@json_option
@click.pass_context
def plan_command(
    context: click.Context,
    tv: float | None,
    trials: int | None,
    eps: float | None,
    mutant: str | None,
    alpha: float,
    rate: float,
    json_file: str | None,
) -> None:
    """How many samples does a verdict need, and how long does that take?

    Give one of --tv, --n, --eps and --mutant; or ask `specref plan speed` which lookahead is
    best. Takes a second.

    \b
    Examples:
      specref plan --tv 0.01
      specref plan --n 100000
      specref plan --mutant residual-is-p --rate 2000
      specref plan speed --acceptance 0.7 --cost 0.05
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    if not rate > 0:
        raise ValueError(f"rate = {rate}: expected a number > 0")
    plans = _plans(tv, trials, eps, mutant, alpha)
    show(tables.plan_table(plans, tv=tv, trials=trials, alpha=alpha, rate=rate), json_file)
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
