"""The command line: verify, prove, plan, check."""

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from specref import __version__
from specref.algorithms import ALGORITHMS, Step
from specref.conformance import verifier
from specref.conformance.implementations import transformers
from specref.losslessness import planning
from specref.losslessness.statistics import ALPHA
from specref.pairs import Profile
from specref.report import tables
from specref.report.machine import as_json, write_json
from specref.verification import RuleReport, cases_of, prove_rule, verify

HOLDS, VIOLATED, MISUSED = 0, 1, 2
profile_option = click.option(
    "--profile",
    type=click.Choice(get_args(Profile)),
    default="quick",
    show_default=True,
    help="How many pairs and lookaheads.",
)
seed_option = click.option("--seed", default=0, show_default=True, help="Of everything sampled.")
json_option = click.option(
    "--json",
    "json_file",
    metavar="FILE",
    help="Write the report as JSON to FILE, or - for stdout.",
)


class OneLineErrors(click.Group):
    """Reports misuse as one line on standard error, exit code 2, without a traceback."""

    def invoke(self, context: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(context)
        except (ValueError, TypeError, ImportError, OSError) as error:
            _misused(str(error))


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Executable specification of lossless speculative decoding.

    Exit codes: 0 everything holds, 1 a violation was found, 2 misuse or not run.
    """


@main.command("verify")
@profile_option
@seed_option
@json_option
def verify_command(profile: Profile, seed: int, json_file: str | None) -> NoReturn:
    """Prove every algorithm over the family of toy pairs.

    \b
    Examples:
      specref verify
      specref verify --profile standard --json report.json
    """
    with _progress(len(ALGORITHMS) * len(cases_of(profile))) as advance:
        verification = verify(profile, seed, lambda name: advance(1))
    _show(tables.verification_table(verification), json_file)
    if json_file:
        write_json(json_file, as_json(verification, ok=verification.ok))
    sys.exit(HOLDS if verification.ok else VIOLATED)


@main.command("prove")
@click.argument("rule", metavar="MODULE:FUNCTION")
@profile_option
@click.option(
    "--pairs",
    type=click.Choice(["same", "all"]),
    default="same",
    show_default=True,
    help="Pairs over one vocabulary, or also drafters with another vocabulary.",
)
@json_option
def prove_command(rule: str, profile: Profile, pairs: str, json_file: str | None) -> NoReturn:
    """Prove or refute YOUR verification rule, exactly.

    MODULE:FUNCTION (or FILE.py:FUNCTION) names a function
    step(target, drafter, context, lookahead, chance) that returns a tuple of token ids and
    takes every random decision from chance.draw(probabilities, site) and
    chance.accept(probability, site).

    \b
    Examples:
      specref prove my_rules:my_step
      specref prove ./my_rule.py:step --profile standard
      specref prove specref.algorithms.tli:step --pairs all
    """
    step = _load(rule)
    with _progress(len(cases_of(profile))) as advance:
        report = prove_rule(
            step, profile, same_vocabulary=pairs == "same", advance=lambda case: advance(1)
        )
    _show(tables.rule_report(rule, report), json_file)
    if json_file:
        write_json(json_file, json.dumps(_rule_record(rule, report), indent=2))
    if report.refuted:
        sys.exit(VIOLATED)
    if report.raised:
        case, error = report.raised[0]
        _misused(f"{rule} raised {type(error).__name__} on {case}: {error}")
    sys.exit(HOLDS)


@main.command("check")
@click.argument("implementation", type=click.Choice(["transformers"]))
@click.option("--trials", default=20_000, show_default=True, help="For each case.")
@click.option("--alpha", default=ALPHA, show_default=True, help="False alarms, for each case.")
@seed_option
@json_option
def check_command(
    implementation: str, trials: int, alpha: float, seed: int, json_file: str | None
) -> NoReturn:
    """Judge a public implementation's verification of drafts.

    Toy p and q whose rows differ by position and context; the joint distribution of the
    completed block is compared with the target's by a chi-square test.

    \b
    Examples:
      specref check transformers
      specref check transformers --trials 200000 --seed 7
    """
    try:
        name, function = transformers.load(seed)
    except transformers.NotInstalledError as error:
        click.echo(f"not_run ({error})", err=True)
        sys.exit(MISUSED)
    with _progress(trials * len(verifier.CASES)) as advance:
        report = verifier.judge(
            function, name, trials=trials, alpha=alpha, seed=seed, advance=advance
        )
    _show(tables.verifier_report(report), json_file)
    if json_file:
        write_json(json_file, as_json(report, rejected=report.rejected))
    sys.exit(VIOLATED if report.rejected else HOLDS)


@main.command("plan")
@click.option("--tv", "--detect-tv", type=float, help="How many blocks find this distance?")
@click.option("--n", "trials", type=int, help="Which distance do so many blocks find?")
@click.option("--eps", type=float, help="How many blocks certify a lossless sampler within this?")
@click.option("--mutant", help="How many blocks find this bug of the zoo?")
@click.option("--alpha", default=ALPHA, show_default=True, help="False alarms in a campaign.")
@click.option("--rate", default=10_000.0, show_default=True, help="Blocks per second you sample.")
@json_option
def plan_command(
    tv: float | None,
    trials: int | None,
    eps: float | None,
    mutant: str | None,
    alpha: float,
    rate: float,
    json_file: str | None,
) -> NoReturn:
    """How many blocks does a verdict need, and how long does that take?

    Give one of --tv, --n, --eps and --mutant.

    \b
    Examples:
      specref plan --tv 0.01
      specref plan --n 100000
      specref plan --mutant residual-is-p --rate 2000
    """
    if not rate > 0:
        raise ValueError(f"rate = {rate}: expected a number > 0")
    plans = _plans(tv, trials, eps, mutant, alpha)
    _show(tables.plan_table(plans, tv=tv, trials=trials, alpha=alpha, rate=rate), json_file)
    if json_file:
        write_json(json_file, as_json({"alpha": alpha, "rate": rate, "plans": plans}))
    sys.exit(HOLDS)


def _plans(
    tv: float | None, trials: int | None, eps: float | None, mutant: str | None, alpha: float
) -> tuple[planning.Plan, ...] | tuple[planning.MutantPlan, ...]:
    if [tv, trials, eps, mutant].count(None) != 3:
        raise ValueError("expected exactly one of --tv, --n, --eps and --mutant")
    if mutant is not None:
        return planning.plan_mutant(mutant, alpha)
    if trials is not None:
        return planning.plan_trials(trials, alpha)
    if eps is not None:
        return planning.plan_eps(eps, alpha)
    assert tv is not None
    return planning.plan_distance(tv, alpha)


def _load(rule: str) -> Step:
    module_name, _, function_name = rule.rpartition(":")
    if not module_name:
        raise ValueError(f"rule = {rule!r}: expected MODULE:FUNCTION or FILE.py:FUNCTION")
    sys.path.insert(0, "")
    try:
        module = _module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ImportError(
            f"cannot import {module_name!r}: {type(error).__name__}: {error}"
        ) from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ValueError(f"{module_name!r} has no function {function_name!r}")
    return cast(Step, function)


def _module(name: str) -> object:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    specification = importlib.util.spec_from_file_location(Path(name).stem, name)
    if specification is None or specification.loader is None:
        raise ImportError(f"{name!r} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _rule_record(rule: str, report: RuleReport) -> dict[str, object]:
    return {
        "rule": rule,
        "proved": report.proved,
        "not_run": report.not_run,
        "paths": report.paths,
        "refuted": [
            {
                "case": str(refutation.case),
                "total_variation": str(refutation.total_variation),
                "difference": str(refutation.difference),
                "block": refutation.block,
                "trace": refutation.trace.splitlines(),
            }
            for refutation in report.refuted
        ],
        "raised": [{"case": str(case), "error": str(error)} for case, error in report.raised],
    }


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("cases"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)


def _show(report: Any, json_file: str | None) -> None:
    if json_file != "-":
        Console().print(report)


def _misused(message: str) -> NoReturn:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(MISUSED)
