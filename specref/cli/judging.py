"""The work of ``specref check``: implementations are judged, and reports written."""

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import click

from specref.adapters.needs import NotInstalledError
from specref.cli.claims import read_claims
from specref.cli.cluster import executor_of
from specref.cli.engines import check_engines
from specref.cli.group import (
    INTERRUPTED,
    MISUSED,
    VIOLATED,
    progress,
    show,
)
from specref.cli.targets import LoadTarget, Target, closed_at_the_end, find_targets
from specref.conformance.checks import Check, engines, texts
from specref.conformance.expectations import load_expected
from specref.conformance.options import CheckOptions, Listener
from specref.conformance.parallel import Workers
from specref.conformance.report import Interrupted, Report
from specref.conformance.saved import failing_cases
from specref.conformance.status import CheckResult, Status
from specref.conformance.strata.shape import Shape, shapes
from specref.conformance.suite import chosen, judged, prepare
from specref.contracts.capabilities import Dtype
from specref.contracts.contract import Contract
from specref.contracts.errors import BrokenContractError
from specref.contracts.table import CONTRACTS, VERIFY
from specref.contracts.text.asking import stdout_to
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

DEFAULT = Shape(32_000, 3, 4)
ESTIMATES = (texts.estimated_seconds, engines.estimated_seconds)
Sizes: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def judge_target(
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
    """Judge what a name stands for, and leave with the exit code."""
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
            # What the sampler itself prints, or a program of its, must not get into the JSON.
            with stdout_to(sys.stderr, 2) if json_file == STDOUT else nullcontext():
                report = _judged(
                    *(
                        found,
                        contract,
                        expected,
                        asked,
                        sizes,
                        dtype,
                        save_so_far,
                        workers,
                        cluster,
                    ),
                    json_file != STDOUT,
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
    told: bool,
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
        doing, drawn, failed = "", 0, False

        def start(one: Check) -> None:
            nonlocal doing, drawn
            doing, drawn = one.id, 0
            advance(0, doing)

        def draw(trials: int) -> None:
            nonlocal drawn
            drawn += trials
            advance(0, f"{doing} · {drawn:,} drawn")

        def end(result: CheckResult) -> None:
            """A report comes at the end; that there is a failure is said at once."""
            nonlocal failed
            new = told and not failed and result.status == Status.FAILED
            line = f"{result.id} failed: {result.finding}: {result.message}" if new else ""
            failed = failed or new
            advance(result.status != Status.NOT_APPLICABLE, result.id, line)

        listener = Listener(
            advance=draw,
            on_start=start,
            on_result=end,
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
