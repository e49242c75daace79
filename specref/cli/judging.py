"""The work of ``specref check``: implementations are judged, and reports written."""

import gc
import itertools
import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click
import numpy as np

from specref.adapters.needs import NotInstalledError
from specref.cli.cluster import executor_of
from specref.cli.group import INTERRUPTED, MISUSED, STARTED, VIOLATED, leave, progress, show
from specref.cli.options import read_claims
from specref.cli.targets import LoadTarget, Target, closed_at_the_end, find_targets
from specref.conformance.case_files import failing_cases, load_case, load_expected
from specref.conformance.checks import Check, engines, texts
from specref.conformance.options import CheckOptions, Listener
from specref.conformance.report import Interrupted, Report
from specref.conformance.scheduling import Pace, Workers
from specref.conformance.status import CheckResult, Status
from specref.conformance.strata.shape import Shape, shapes
from specref.conformance.suite import chosen, prepare, run_checks
from specref.conformance.summary import in_short
from specref.contracts.asking import isolated, stdout_to
from specref.contracts.capabilities import Dtype
from specref.contracts.contract import Contract
from specref.contracts.errors import BrokenContractError
from specref.contracts.table import CONTRACTS, VERIFY
from specref.contracts.text import Engine
from specref.contracts.timeout import TIMEOUT
from specref.report.kit import kit_junit, kit_record, kit_report
from specref.report.machine import (
    STDOUT,
    as_json,
    check_destination,
    check_folder,
    is_special,
    write_json,
)
from specref.suggestions import did_you_mean
from specref.wings import registered

USUAL_SHAPE = Shape(32_000, 3, 4)
OF_SHAPE = {"V": "vocabulary", "K": "lookahead", "B": "batch", "dtype": "dtype"}
FREED = 31 << 20
QUICK = 2.0
"""Writing that takes fewer seconds is never put off: the check that comes next may be the last."""
ESTIMATES = (texts.estimated_seconds, engines.estimated_seconds)


@dataclass(frozen=True)
class Files:
    save: str | None
    junit: str | None
    html: str | None
    json: str | None
    next_at: dict[str, float] = field(default_factory=dict, compare=False)

    def check(self) -> None:
        """Refuse a file or folder that cannot be written, before anything is judged."""
        if self.junit:
            check_destination(self.junit)
        if self.save:
            check_folder(self.save)

    def so_far(self, reports: list[Report]) -> None:
        """Write the JSON of what is known so far, so that it survives an interrupt.

        Not while slow writing would take more than a third of the time.
        """
        if self.json and self.json != STDOUT and not is_special(Path(self.json)):
            now = time.monotonic()
            if now >= self.next_at.get(self.json, -math.inf):
                write_json(self.json, as_json(_records(reports)))
                done = time.monotonic()
                if done - now > QUICK:
                    self.next_at[self.json] = done + 2 * (done - now - QUICK)

    def write(self, reports: list[Report]) -> None:
        if self.json:
            write_json(self.json, as_json(_records(reports)))
        if self.junit:
            write_json(self.junit, kit_junit(reports))
        if self.html:
            from specref.report.kit_html import kit_html

            write_json(self.html, kit_html(reports))


class Wanted(NamedTuple):
    """Shapes that were asked for: whole ones, and sizes of which every combination is meant."""

    whole: tuple[Mapping[str, str], ...] = ()
    vocabulary: tuple[int, ...] = ()
    lookahead: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    dtype: tuple[Dtype, ...] = ()

    def shapes(self, contract: Contract) -> tuple[Shape, ...]:
        one = USUAL_SHAPE if "batch" in contract.shaped else USUAL_SHAPE._replace(batch=1)
        found = [
            one._replace(**{name: int(x) for name, x in each.items() if name != "dtype"})
            for each in self.whole
        ]
        sizes = self.vocabulary, self.lookahead, self.batch
        if any(sizes) or (self.dtype and not self.whole):
            found += shapes(*(given or (usual,) for given, usual in zip(sizes, one, strict=True)))
        return tuple(dict.fromkeys(found))

    @property
    def dtypes(self) -> tuple[Dtype, ...]:
        """The dtypes; each shape is judged in all of them."""
        named: list[Any] = [each["dtype"] for each in self.whole if "dtype" in each]
        return tuple(dict.fromkeys([*named, *self.dtype]))


def read_shape(text: str) -> Mapping[str, str]:
    """A shape that is written NAME=VALUE,NAME=VALUE."""
    found: dict[str, str] = {}
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if name not in OF_SHAPE or not equals:
            hint = did_you_mean(name, OF_SHAPE)
            raise ValueError(f"shape has {pair!r}: expected {'=…, '.join(OF_SHAPE)}=…{hint}")
        if name != "dtype" and not value.isdigit():
            raise ValueError(f"shape has {pair!r}: expected an integer")
        found[OF_SHAPE[name]] = value
    return found


@dataclass(frozen=True)
class Asked:
    """What the command line asks for, whatever is judged.

    * `contract`, `expected`: Instead of what a registered name is made for, and beside what it is
      expected to fail.
    * `failures_at_once`: Whether the first failure is said when it comes.
    """

    contract: str | None
    expected: str | None
    options: CheckOptions
    wanted: Wanted
    workers: int
    cluster: str | None
    failures_at_once: bool
    started: float

    def options_for(self, found: Target) -> CheckOptions:
        asked = self.options
        more = load_expected(self.expected, found.name) if self.expected else {}
        wanted = tuple(asked.only) if asked.only else ""
        contract = CONTRACTS[self.contract] if self.contract else found.contract or VERIFY
        asked_for = (asked.detect_tv, asked.seconds, asked.profile)
        free = asked_for == (None, None, CheckOptions().profile)
        return replace(
            asked,
            contract=contract,
            shapes=self.wanted.shapes(contract),
            dtypes=self.wanted.dtypes,
            expected_failures={
                id_: why
                for id_, why in {**found.expected, **more}.items()
                if id_.startswith(wanted)
            },
            detect_tv=found.detect_tv if free else asked.detect_tv,
            timeout=found.timeout,
            name=found.name,
            version=found.version,
            claims={**found.claims, **asked.claims},
        )


def judge_installed(contract: str | None, json_file: str | None) -> NoReturn:
    """Judge every registered engine that is installed, and leave with the exit code."""
    judge_all = registered("commands")["check engines"].load()
    leave(judge_all(click.get_current_context(), contract, json_file))


def judge_target(
    target: str,
    *,
    contract: str | None,
    expected: str | None,
    rule: str | None,
    declare: tuple[str, ...],
    shape: tuple[str, ...],
    vocabulary: tuple[int, ...],
    lookahead: tuple[int, ...],
    batch: tuple[int, ...],
    dtype: tuple[Dtype, ...],
    time_limit: float | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    isolate: bool,
    workers: int,
    cluster: str | None,
    files: Files,
    verbose: bool,
    quiet: bool,
    **options: Any,
) -> NoReturn:
    """Judge what a name stands for, and leave with the exit code."""
    files.check()
    checks = CheckOptions(
        algorithm=rule,
        only=list(only) or None,
        skip=skip,
        claims=read_claims(declare),
        time_limit=time_limit,
        **options,
    )
    to_stdout = files.json == STDOUT
    wanted = Wanted(tuple(map(read_shape, shape)), vocabulary, lookahead, batch, dtype)
    started = click.get_current_context().meta[STARTED]
    asked = Asked(contract, expected, checks, wanted, workers, cluster, not to_stdout, started)
    reports: list[Report] = []
    interrupted = False
    for found in _found_or_not_run(target, contract, files.json, options["timeout"]):
        if isolate:
            found = _isolated(found, options["timeout"])
        try:
            # What the sampler itself prints, or a program of its, must not get into the JSON.
            with stdout_to(sys.stderr, 2) if to_stdout else nullcontext():
                report = _judged(found, asked, lambda report: files.so_far([*reports, report]))
        except Interrupted as stop:
            report, interrupted = stop.report, True
        told = in_short(report) if quiet else kit_report(report, verbose=verbose)
        show(told, files.json)
        _save(report, found.name, checks.timeout, files.save)
        reports.append(report)
        if interrupted:
            break
    files.write(reports)
    codes = {report.exit_code for report in reports}
    leave(INTERRUPTED if interrupted else VIOLATED if VIOLATED in codes else max(codes))


def _judged(found: Target, asked: Asked, on_report: Callable[[Report], None]) -> Report:
    options = asked.options_for(found)
    total = sum(one.is_for(options.contract) for one in chosen(options.only))
    pace = Pace({} if options.seconds is not None else say_how_long(found, options))
    # glibc keeps up to twice the size of the largest block that was freed, of at most 32 MiB: so
    # that freed memory is not zeroed for each call anew.
    np.empty(FREED, dtype=np.uint8)
    gc.freeze()  # what was imported stays, and need not be looked through again and again
    with (
        executor_of(asked.workers, asked.cluster) as executor,
        progress(total, "checks") as advance,
    ):
        line = ProgressLine(advance, asked.failures_at_once, pace)
        listener = Listener(
            advance=line.draw, on_start=line.start, on_result=line.end, on_report=on_report
        )
        load = LoadTarget(found.name, asked.options.timeout or TIMEOUT)
        workers = None if executor is None else Workers(executor, load)
        return run_checks(found.function, options, listener, workers, asked.started)


class ProgressLine:
    """Which check is under way, and how much it drew; a first failure is said at once."""

    def __init__(self, advance: Callable[..., None], failures_at_once: bool, pace: Pace) -> None:
        self.advance, self.to_be_said, self.pace = advance, failures_at_once, pace
        self.doing, self.drawn = "", 0

    def start(self, one: Check) -> None:
        self.doing, self.drawn = one.id, 0
        self.pace.begin(one.id)
        self.advance(0, self.doing, left=self.pace.left)

    def draw(self, trials: int) -> None:
        self.drawn += trials
        self.pace.draw(trials)
        self.advance(0, f"{self.doing} · {self.drawn:,} drawn", left=self.pace.left)

    def end(self, result: CheckResult) -> None:
        line = ""
        self.pace.end(whole=result.status == Status.PASSED)
        if self.to_be_said and result.status == Status.FAILED:
            line = f"{result.id} failed: {result.finding}: {result.message}"
            self.to_be_said = False
        done = result.status != Status.NOT_APPLICABLE
        self.advance(done, result.id, line, self.pace.left)


def _isolated(found: Target, timeout: float) -> Target:
    if not isinstance(found.function, Engine):
        raise ValueError(f"--isolate: expected an Engine, not {found.name}")
    return replace(found, function=isolated(found.function, LoadTarget(found.name, timeout)))


def say_how_long(found: Target, options: CheckOptions) -> Mapping[str, float]:
    """Say on standard error how long whole texts will take, if that is over a minute.

    Returns the texts of each check, by which that is told anew as the checks run.
    """
    judge, asked = prepare(found.function, options)
    try:
        minutes = sum(estimate(judge, asked) for estimate in ESTIMATES) / 60
    except BrokenContractError:
        return {}  # the checks will tell
    if minutes > 1:
        told = f"{found.name}: about {minutes:.0f} minutes (--time-limit 30 for a quick look)"
        click.echo(told, err=True)
    return texts.texts_wanted(judge, asked)


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
        leave(MISUSED)


def _save(report: Report, target: str, timeout: float | None, save: str | None) -> None:
    cases = failing_cases(report, target, timeout) if save else {}
    for name, case in cases.items():
        file = _free(Path(str(save)) / name, case)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(str(file), as_json(case))
        click.echo(f"saved {file}: specref replay {file}", err=True)


def _free(file: Path, case: Mapping[str, Any]) -> Path:
    """The file, or the next beside it that holds nothing but such a case."""
    numbered = (file.with_stem(f"{file.stem}-{n}") for n in itertools.count(2))
    return next(
        one for one in itertools.chain([file], numbered) if not one.exists() or _holds(one, case)
    )


def _holds(file: Path, case: Mapping[str, Any]) -> bool:
    """Whether a file has a case of the same implementation, called in the same way."""
    try:
        known = load_case(str(file))
    except (ValueError, TypeError, OSError):
        return False
    return all(
        known.get(name) == case[name] for name in ("target", "folder", "contract", "claims")
    )


def _records(reports: list[Report]) -> Mapping[str, object]:
    """The record of the only report, or of all."""
    records = [kit_record(report) for report in reports]
    return records[0] if len(records) == 1 else {"reports": records}
