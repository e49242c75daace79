"""``specref vectors``: published test vectors, written, checked, put to a user's sampler."""

import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource
from rich.console import Group, RenderableType

from specref.cli.cluster import cluster_option, executor_of
from specref.cli.completion import targets
from specref.cli.group import HOLDS, VIOLATED, leave, show
from specref.cli.options import (
    Option,
    declare_option,
    json_option,
    read_claims,
    timeout_option,
    workers_option,
)
from specref.contrib.vectors.groups.verifications import BOTH
from specref.report.layout import Column, Prose, Table
from specref.report.machine import STDOUT, as_json, write_json
from specref.rules import DEFAULT
from specref.vectors.reading import DRAWS, FOLDER, POLICIES, load_cases

if TYPE_CHECKING:
    from specref.vectors.running import Run

SHOWN = 40
BY_LAW = "by the exact distribution of the block, as it takes no coins"


@click.command("vectors")
@click.option("--write", metavar="FOLDER", help="Build every file into FOLDER.")
@click.option("--check", is_flag=True, help="Check that the files are what --write would build.")
@click.option(
    "--run",
    "target",
    metavar="TARGET",
    shell_complete=targets,
    help="Run the vectors on MODULE:FUNCTION.",
)
@click.argument("folder", required=False)
@click.option(
    "--rule",
    cls=Option,
    former=("--algorithm",),
    type=click.Choice(BOTH),
    help="By default what it declares.",
)
@click.option("--last", type=click.Choice(DRAWS), help="How it draws the last token.")
@click.option(
    "--policy",
    multiple=True,
    type=click.Choice(POLICIES),
    help="Your sampler follows this convention.",
)
@click.option("--only", default="", metavar="ID", help="Run cases whose ids start with ID.")
@timeout_option
@declare_option
@workers_option()
@cluster_option
@json_option
def vectors_command(
    write: str | None,
    check: bool,
    target: str | None,
    folder: str | None,
    workers: int,
    cluster: str | None,
    **options: Any,
) -> NoReturn:
    """Run the published test vectors on YOUR sampler, or build them.

    FOLDER is where they are, by default those of the package. TARGET is MODULE:FUNCTION,
    FILE.py:FUNCTION, a registered name, or 'process:COMMAND'; the function takes
    target_probs [B, K+1, V], draft_probs [B, K, V], draft_tokens [B, K] and coins. One that takes
    rng instead, or draws from global generators, is judged by the exact law of its block.

    Takes a second or two for --check, or for a function in NumPy. With --workers, processes take
    chunks of 16 cases with --run, and files otherwise.

    Exit codes: 0 all is as published, 1 something is not, 2 misuse or nothing was run.

    \b
    Examples:
      specref vectors --run reference-verify
      specref vectors --run samplers:verify --rule block --last race
      specref vectors --check
      specref vectors --write specref/vectors/v1
    """
    from specref.contrib.vectors import publishing  # --help does not need it

    if [bool(write), check, bool(target)].count(True) != 1:
        raise ValueError("expected one of --write, --check and --run")
    if not target:
        _refuse_given(options)
    if write and folder:
        raise ValueError(f"folder = {folder!r}: --write names the folder itself")
    place = Path(folder) if folder else FOLDER
    if check and not place.is_dir():
        raise ValueError(f"no vectors at {place}")
    with executor_of(workers, cluster) as executor:
        if write:
            names = publishing.write(Path(write), executor)
            click.echo(f"wrote {len(names)} files to {Path(write)}")
            leave(HOLDS)
        if check:
            found = publishing.differences(place, executor)
            for line in found or [f"{place}: every file is what --write would put there"]:
                click.echo(line)
            leave(VIOLATED if found else HOLDS)
        _run(str(target), place, executor, **options)


def _refuse_given(options: Iterable[str]) -> None:
    """Refuse options that would be ignored."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if option.name in options and source is not ParameterSource.DEFAULT:
            raise ValueError(f"{option.opts[0]} goes with --run only")


def _run(
    target: str,
    place: Path,
    executor: Executor | None,
    rule: str | None,
    policy: tuple[str, ...],
    only: str,
    declare: tuple[str, ...],
    json_file: str | None,
    timeout: float,
    last: str | None,
) -> NoReturn:
    from specref.cli.targets import LoadTarget, closed_at_the_end, find_targets
    from specref.contracts.capabilities import capabilities_of
    from specref.contracts.table import VERIFY
    from specref.vectors.by_law import verification
    from specref.vectors.running import run

    if not timeout > 0:
        raise ValueError(f"--timeout {timeout:g}: expected a number of seconds > 0")
    (found,) = closed_at_the_end(find_targets(target, str(VERIFY), timeout))
    claims = {**found.claims, **read_claims(declare)}
    judged = rule or capabilities_of(found.function, **claims).rule or DEFAULT
    verification(judged)
    cases = [case for case in load_cases(place, judged) if case["id"].startswith(only)]
    # What the sampler itself prints must not get into the JSON.
    with redirect_stdout(sys.stderr) if json_file == STDOUT else nullcontext():
        done = run(
            found.function,
            cases,
            algorithm=judged,
            last=last,
            policies=policy,
            timeout=found.timeout,
            executor=executor,
            load=LoadTarget(found.name, timeout),
            **claims,
        )
    show(_report(found.name, done), json_file)
    if json_file:
        write_json(json_file, as_json(done, implementation=found.name, counts=done.counts))
    leave(done.exit_code)


def _report(name: str, done: "Run") -> RenderableType:
    """What failed, and how many passed."""
    policies = "".join(f" · {policy}" for policy in done.policies)
    how = BY_LAW if done.last is None else f"last token: {done.last}"
    told = f"{name}: {done.algorithm} · {how} · {done.dtype}{policies}"
    parts: list[RenderableType] = [Prose(told, "dim")]
    if done.failures:
        blocks = ("expected", "got") if done.last else ()
        columns = [*map(Column, ("case", *blocks)), Column("flags and note", folds=True)]
        rows: list[list[str]] = []
        for one in done.failures[:SHOWN]:
            shown = [_shown(one.expected), _shown(one.got or ())] if blocks else []
            why = " ".join(one.flags) + f": {one.note}" * bool(one.note)
            rows.append([one.id, *shown, why])
        parts.append(Table(columns, rows))
    if len(done.failures) > SHOWN:
        parts.append(Prose(f"… and {len(done.failures) - SHOWN} more: --json FILE has them all"))
    if done.failures and done.fits:
        parts.append(Prose(f"all would pass with {done.fits}", "yellow"))
    parts += [Prose(f"{number} not judged: {why}", "dim") for why, number in done.reasons.items()]
    counted = ", ".join(f"{number} {status}" for status, number in sorted(done.counts.items()))
    style = "bold red" if done.exit_code else "bold green"
    parts.append(Prose(counted or "no case was run", style))
    return Group(*parts)


def _shown(block: Sequence[int]) -> str:
    return " ".join(map(str, block))
