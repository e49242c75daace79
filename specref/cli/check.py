"""``specref check``: a public implementation, judged by samples."""

import sys
from typing import NoReturn

import click

from specref.cli.group import (
    HOLDS,
    MISUSED,
    VIOLATED,
    json_option,
    progress,
    seed_option,
    show,
)
from specref.conformance import verifier
from specref.conformance.implementations import transformers
from specref.losslessness.statistics import ALPHA
from specref.report import tables
from specref.report.machine import as_json, write_json


@click.command("check")
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
        _not_run(implementation, str(error), json_file)
    with progress(trials * len(verifier.CASES), "trials") as advance:
        report = verifier.judge(
            function, name, trials=trials, alpha=alpha, seed=seed, advance=advance
        )
    show(tables.verifier_report(report), json_file)
    if json_file:
        write_json(json_file, as_json(report, status="run", rejected=report.rejected))
    sys.exit(VIOLATED if report.rejected else HOLDS)


def _not_run(implementation: str, reason: str, json_file: str | None) -> NoReturn:
    click.echo(f"not_run ({reason})", err=True)
    if json_file:
        record = {"implementation": implementation, "status": "not_run", "reason": reason}
        write_json(json_file, as_json(record))
    sys.exit(MISUSED)
