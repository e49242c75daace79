"""``specref check``: a user's sampler, judged by the conformance kit."""

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, get_args

import click

from specref.adapters.needs import NotInstalledError
from specref.cli.claims import claim_option, read_claims
from specref.cli.cluster import cluster_option, executor_of
from specref.cli.engines import check_engines
from specref.cli.group import (
    INTERRUPTED,
    MISUSED,
    VIOLATED,
    html_option,
    json_option,
    progress,
    show,
    timeout_option,
    workers_option,
    writable,
)
from specref.cli.targets import LoadTarget, Target, closed_at_the_end, find_targets
from specref.conformance.checks import Check, engines, texts
from specref.conformance.expectations import load_expected
from specref.conformance.options import CheckOptions, Listener, Profile
from specref.conformance.parallel import Workers
from specref.conformance.report import Interrupted, Report
from specref.conformance.saved import failing_cases
from specref.conformance.status import Status
from specref.conformance.strata.shape import Shape, shapes
from specref.conformance.suite import chosen, judged, prepare
from specref.contracts.capabilities import Dtype
from specref.contracts.contract import Contract
from specref.contracts.errors import BrokenContractError
from specref.contracts.table import CONTRACTS, VERIFY
from specref.contracts.text.contract import Engine
from specref.contracts.text.isolated import isolated
from specref.contracts.timeout import TIMEOUT
from specref.report.kit import kit_junit, kit_record, kit_report
from specref.report.kit_html import kit_html
from specref.report.machine import (
    STDOUT,
    as_json,
    check_destination,
    check_folder,
    is_special,
    write_json,
)
from specref.rules import declarable
from specref.statistics.campaign.levels import ALPHA

DEFAULT = Shape(32_000, 3, 4)
ESTIMATES = (texts.estimated_seconds, engines.estimated_seconds)
Sizes: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@click.command("check")
@click.argument("target")
@click.option(
    "--contract",
    type=click.Choice(tuple(CONTRACTS)),
    help="How it is called; by default verify, or what a registered name is made for.",
)
@click.option(
    "--algorithm",
    type=click.Choice(declarable()),
    metavar="RULE",
    help="The rule that it declares (specref list rules); then accepted lengths are judged, too.",
)
@click.option(
    "--profile",
    type=click.Choice(get_args(Profile)),
    default="quick",
    show_default=True,
    help="The distance that is surely detected: 0.05, 0.02, 0.01.",
)
@click.option("--detect-tv", type=float, help="That distance itself.")
@click.option("--alpha", default=ALPHA, show_default=True, help="False alarms, over all checks.")
@click.option("--trials", type=int, help="For each statistical check, instead of --detect-tv.")
@click.option(
    "--seconds",
    type=float,
    help="Draw for so long in all instead, and say what would have been found.",
)
@timeout_option
@click.option("--only", multiple=True, metavar="ID", help="Checks whose ids start like this.")
@click.option("--seed", default=0, show_default=True, help="Of everything random.")
@click.option(
    "--vocabulary", type=int, multiple=True, help="Judge it at this size besides; repeat for more."
)
@click.option("--lookahead", type=int, multiple=True, help="Drafts of a row there.")
@click.option("--batch", type=int, multiple=True, help="Rows of a batch there.")
@click.option(
    "--dtype", type=click.Choice(get_args(Dtype)), multiple=True, help="What it is given there."
)
@claim_option
@click.option(
    "--isolate",
    is_flag=True,
    help="Ask an engine in a process of its own, so that the kit outlives a crash of it.",
)
@click.option(
    "--texts",
    metavar="FILE",
    callback=writable,
    help="Write texts of an engine there as they come; a second run goes on from them.",
)
@click.option("--expected", metavar="FILE.toml", help="Expected failures, with reasons.")
@click.option("--save", metavar="FOLDER", help="Write failing cases for `specref replay`.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML.")
@html_option
@workers_option
@cluster_option
@json_option
def check_command(
    target: str,
    contract: str | None,
    expected: str | None,
    save: str | None,
    junit: str | None,
    html_file: str | None,
    json_file: str | None,
    only: tuple[str, ...],
    claim: tuple[str, ...],
    vocabulary: tuple[int, ...],
    lookahead: tuple[int, ...],
    batch: tuple[int, ...],
    dtype: tuple[Dtype, ...],
    isolate: bool,
    workers: int,
    cluster: str | None,
    **options: Any,
) -> NoReturn:
    """Judge YOUR sampler: is it lossless, how sure is that, and which bug does it look like?

    TARGET is MODULE:FUNCTION, FILE.py:FUNCTION, a registered name such as transformers, or a
    program in any language, 'process:COMMAND', as `specref write --language` prints one. The
    function takes target_probs [B, K+1, V], draft_probs [B, K, V], draft_tokens [B, K] and rng,
    and returns tokens [B, K+1] padded with -1, and counts [B]. With --contract tree, parents
    [B, K] come after draft_tokens: the node before each draft, -1 for the root, -2 for no draft.
    With --contract text, TARGET is an Engine: it is asked for whole texts, and these are compared
    with its law or its plain mode; drafts have to be proposed and accepted, else the verdict is
    NOT_EXERCISED.

    TARGET engines is every registered engine that is installed, one after the other in its quick
    form and in a process of its own; a crash is a row. Exit code 1 if one of them fails where that
    is not expected; 2 if an installed one has no verdict, or none is installed.

    A sampler in NumPy takes 2 to 30 seconds, those that fail early the least; whole texts take
    minutes, and how many is said before. With --seconds 10 drawing takes 10 s in all, and what
    else checks do a few seconds more.

    Exit codes: 0 lossless at the declared power, 1 lossy or a broken contract (or accepted
    lengths that are not those of --algorithm), 2 misuse, inconclusive, not answered in time, not
    exercised or not run; 130 after Ctrl-C or SIGTERM. The JSON file is rewritten after each check.

    \b
    Examples:
      specref check examples.correct:verify
      specref check samplers:verify --algorithm standard --detect-tv 0.02
      specref check samplers:step --contract step --save failures
      specref check samplers:verify_tree --contract tree --algorithm topdown
      specref check samplers:verify --vocabulary 151936 --lookahead 5 --batch 32
      specref check transformers --contract generate --json report.json
      specref check samplers:verify --workers 4
      specref check samplers:verify --seconds 10
      specref check engines.py:mine --contract text --texts texts.jsonl
      specref check 'process:./my_sampler --flag'
      specref check engines --json engines.json
    """
    if target == "engines":
        sys.exit(check_engines(click.get_current_context(), contract, json_file))
    if junit:
        check_destination(junit)
    if save:
        check_folder(save)
    sizes = (vocabulary, lookahead, batch) if vocabulary or lookahead or batch or dtype else None
    asked = CheckOptions(only=list(only) or None, claims=read_claims(claim), **options)
    reports: list[Report] = []
    interrupted = False

    def save_so_far(report: Report) -> None:
        if json_file and json_file != STDOUT and not is_special(Path(json_file)):
            write_json(json_file, as_json(_records([*reports, report])))

    for found in _found_or_not_run(target, contract, json_file, options["timeout"]):
        if isolate:
            found = _isolated(found, options["timeout"])
        try:
            # What the sampler itself prints must not get into the JSON.
            with redirect_stdout(sys.stderr) if json_file == STDOUT else nullcontext():
                report = _judged(
                    found, contract, expected, asked, sizes, dtype, save_so_far, workers, cluster
                )
        except Interrupted as stop:
            report, interrupted = stop.report, True
        show(kit_report(report), json_file)
        _save(report, found.name, asked.timeout, save)
        reports.append(report)
        if interrupted:
            break
    if json_file:
        write_json(json_file, as_json(_records(reports)))
    if junit:
        write_json(junit, kit_junit(reports))
    if html_file:
        write_json(html_file, kit_html(reports))
    codes = {report.exit_code for report in reports}
    sys.exit(INTERRUPTED if interrupted else VIOLATED if VIOLATED in codes else max(codes))


def _judged(
    found: Target,
    contract: str | None,
    expected: str | None,
    asked: CheckOptions,
    sizes: Sizes | None,
    dtypes: tuple[Dtype, ...],
    on_report: Callable[[Report], None],
    count: int,
    cluster: str | None,
) -> Report:
    expectations = {**found.expected, **(load_expected(expected, found.name) if expected else {})}
    wanted = tuple(asked.only) if asked.only else ""
    judged_as = CONTRACTS[contract] if contract else found.contract or VERIFY
    options = replace(
        asked,
        contract=judged_as,
        shapes=_shapes(sizes, judged_as) if sizes else (),
        dtypes=dtypes,
        expected_failures={k: v for k, v in expectations.items() if k.startswith(wanted)},
        detect_tv=found.detect_tv if asked.detect_tv is asked.seconds is None else asked.detect_tv,
        timeout=found.timeout,
        name=found.name,
        version=found.version,
        claims={**found.claims, **asked.claims},
    )
    total = sum(one.is_for(options.contract) for one in chosen(options.only))
    if options.seconds is None:
        say_how_long(found, options)
    with executor_of(count, cluster) as executor, progress(total, "checks") as advance:
        doing, drawn = "", 0

        def start(one: Check) -> None:
            nonlocal doing, drawn
            doing, drawn = one.id, 0
            advance(0, doing)

        def draw(trials: int) -> None:
            nonlocal drawn
            drawn += trials
            advance(0, f"{doing} · {drawn:,} drawn")

        listener = Listener(
            advance=draw,
            on_start=start,
            on_result=lambda result: advance(result.status != Status.NOT_APPLICABLE, result.id),
            on_report=on_report,
        )
        load = LoadTarget(found.name, asked.timeout or TIMEOUT)
        workers = None if executor is None else Workers(executor, load)
        return judged(found.function, options, listener, workers)


def _isolated(found: Target, timeout: float) -> Target:
    if not isinstance(found.function, Engine):
        raise ValueError(f"--isolate: expected an Engine, not {found.name}")
    return replace(found, function=isolated(found.function, LoadTarget(found.name, timeout)))


def say_how_long(found: Target, options: CheckOptions) -> None:
    """Say on standard error how long whole texts will take, if that is over a minute."""
    judge, asked = prepare(found.function, options)
    try:
        minutes = sum(estimate(judge, asked) for estimate in ESTIMATES) / 60
    except BrokenContractError:
        return  # the checks will tell
    if minutes > 1:
        told = f"{found.name}: about {minutes:.0f} minutes (--seconds 12 for a quick look)"
        click.echo(told, err=True)


def _shapes(sizes: Sizes, contract: Contract) -> tuple[Shape, ...]:
    """Every combination of the sizes that were given, with defaults for the others."""
    one = DEFAULT if "batch" in contract.shaped else DEFAULT._replace(batch=1)
    vocabulary, lookahead, batch = sizes
    return shapes(
        vocabulary or (one.vocabulary,), lookahead or (one.lookahead,), batch or (one.batch,)
    )


def _found_or_not_run(
    target: str, contract: str | None, json_file: str | None, timeout: float
) -> tuple[Target, ...]:
    try:
        return closed_at_the_end(find_targets(target, contract, timeout))
    except NotInstalledError as error:
        click.echo(f"not_run ({error})", err=True)
        if json_file:
            record = {"implementation": target, "status": "not_run", "reason": str(error)}
            write_json(json_file, as_json(record))
        sys.exit(MISUSED)


def _save(report: Report, target: str, timeout: float | None, save: str | None) -> None:
    cases = failing_cases(report, target, timeout) if save else {}
    for name, case in cases.items():
        file = Path(str(save)) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(str(file), as_json(case))
        click.echo(f"saved {file}: specref replay {file}", err=True)


def _records(reports: list[Report]) -> Mapping[str, object]:
    """The record of the only report, or of all."""
    records = [kit_record(report) for report in reports]
    return records[0] if len(records) == 1 else {"reports": records}
