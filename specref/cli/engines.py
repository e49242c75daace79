"""``specref check engines``: all registered engines, each in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shlex import join
from shutil import which
from typing import Any

import click
from click.core import ParameterSource

from specref.adapters.engines import ENGINES
from specref.adapters.registry import Implementation
from specref.cli.group import INTERRUPTED, progress, show
from specref.contracts.contract import Contract
from specref.report.machine import STDOUT
from specref.report.scoreboard import (
    CRASHED,
    LATE,
    NOT_RUN,
    Row,
    board_table,
    exit_code_of,
    verdict_of,
    write_board,
)

SLOW = ("smoke/answers", "joint/probed", "boundary/zero-coin")
SECONDS, LOADING = 30.0, 10.0
LIMIT, GRACE = 600.0, 10.0
PASSED_ON = ("seconds", "detect_tv", "alpha", "seed", "timeout")
POWER = ("seconds", "detect_tv")
TAKEN = {"target", "contract", "json_file", *PASSED_ON}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
INTERPRETED = {} if which("nvidia-smi") else {"TRITON_INTERPRET": "1"}


def quick(contract: Contract, seconds: float, slow: bool = False) -> tuple[str, ...]:
    """The options of the quick form: some checks, at TV 0.1 or for so many seconds.

    Parameters
    ----------
    contract : Contract
    seconds : float
    slow : bool
        Only what takes few calls.

    Examples
    --------
    >>> from specref.contracts.table import ENGINE
    >>> quick(ENGINE, 30)
    ('--seconds', '30')
    """
    power = ("--seconds", f"{seconds:g}") if contract.timed else ("--detect-tv", "0.1")
    only = SLOW if slow else contract.quick_checks
    return (*(word for one in only for word in ("--only", one)), *power)


def check_engines(context: click.Context, contract: str | None, json_file: str | None) -> int:
    """Judge every registered engine that is installed; the exit code.

    Parameters
    ----------
    context : click.Context
        Of ``specref check``: options that were given are passed on to each engine.
    contract : str, optional
        Only what is registered for it.
    json_file : str, optional
        Rewritten after each row.
    """
    given = {
        name: context.params[name]
        for name in context.params
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE
    }
    for name in given:
        if name not in TAKEN:
            raise ValueError(f"--{name.replace('_', '-')}: expected one engine, not all of them")
    options = [x for n in PASSED_ON if n in given for x in (f"--{n}".replace("_", "-"), given[n])]
    asked = [str(one) for one in options]
    chosen = [
        (engine, path)
        for engine in ENGINES.values()
        for path in engine.paths
        if contract in (None, str(path.contract))
    ]
    there = [path for _, path in chosen if not path.missing]
    own = not any(name in given for name in POWER)
    minutes = len(there) * (SECONDS + LOADING) / 60
    about = f", about {minutes:.0f} minutes" if own else ""
    click.echo(f"{len(there)} of {len(chosen)} paths are installed{about}", err=True)
    rows: list[Row] = []
    interrupted = False
    with progress(len(chosen), "paths") as advance:
        try:
            for engine, path in chosen:
                advance(0, path.name)
                rows.append(
                    _row(
                        engine.name,
                        path,
                        [
                            *(quick(path.contract, SECONDS, engine.slow) if own else ()),
                            *asked,
                        ],
                    )
                )
                if json_file and json_file != STDOUT:
                    write_board(json_file, rows)
                advance(1, path.name)
        except KeyboardInterrupt:
            interrupted = True
    show(board_table(rows), json_file)
    if json_file:
        write_board(json_file, rows)
    return INTERRUPTED if interrupted else exit_code_of(rows)


def _row(engine: str, path: Implementation, arguments: Sequence[str]) -> Row:
    if path.missing:
        why = f"{', '.join(path.missing)} not installed: {path.remedy}"
        return Row(engine, path.name, str(path.contract), NOT_RUN, why)
    return judged_apart(engine, path.name, str(path.contract), arguments)


def judged_apart(
    engine: str,
    path: str,
    contract: str,
    arguments: Sequence[str] = (),
    *,
    python: str = sys.executable,
    limit: float = LIMIT,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Row:
    """The row of ``specref check PATH`` in another process, whatever becomes of that.

    Parameters
    ----------
    path : str
        A registered name, or MODULE:NAME.
    arguments : sequence of str
        Options of ``specref check``.
    python : str
        The interpreter.
    limit : float
        Seconds, after which the process and its children are ended.
    environment : mapping, optional
        Variables of the process; those of this one by default. Models are not downloaded.
    folder : Path, optional
        Where it runs.
    """
    named = ["--contract", contract] if ":" in path else []
    asked = ["check", path, *named, *arguments]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="specref-") as scratch:
        report, log = Path(scratch, "report.json"), Path(scratch, "log")
        command = [python, "-m", "specref", *asked, "--json", str(report)]
        variables = {
            **(os.environ if environment is None else environment),
            **OFFLINE,
            **INTERPRETED,
        }
        with log.open("wb") as output, _ended(command, output, variables, folder) as process:
            try:
                code: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
        record = _read(report)
        said = log.read_text("utf-8", "replace").strip().splitlines()
    last = next((line for line in reversed(said) if line.strip()), "nothing was printed")
    told: dict[str, Any] = {
        "seconds": round(time.perf_counter() - started, 1),
        "command": join(["specref", *asked]),
        "date": datetime.now(UTC).date().isoformat(),
    }
    if record is None or "results" not in record:
        fields = _unjudged(record, code, limit, last)
    else:
        complete = record["complete"] and code is not None
        fields = verdict_of(record, "" if complete else LATE if code is None else CRASHED)
        if not complete:
            fields["evidence"] = f"{_ending(code, limit)}; {fields['evidence']}"
    return Row(engine, path, contract, **fields, **told)


def _unjudged(
    record: Mapping[str, Any] | None, code: int | None, limit: float, last: str
) -> dict[str, Any]:
    if record is not None:
        return {"verdict": NOT_RUN, "evidence": str(record.get("reason", last))}
    verdict = LATE if code is None else CRASHED
    return {"verdict": verdict, "evidence": f"{_ending(code, limit)}; {last}"}


def _ending(code: int | None, limit: float) -> str:
    """How a process ended.

    Examples
    --------
    >>> _ending(None, 60), _ending(-11, 60), _ending(0, 60)
    ('not done after 60 s', 'ended by SIGSEGV', 'ended with exit code 0')
    """
    if code is None:
        return f"not done after {limit:g} s"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


@contextmanager
def _ended(
    command: Sequence[str], output: Any, variables: Mapping[str, str], folder: Path | None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in a group of its own, none of which is left at the end."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        env=dict(variables), cwd=folder, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        for ending, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
            try:
                os.killpg(process.pid, ending)
                process.wait(seconds)
            except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
                continue


def _read(file: Path) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found
