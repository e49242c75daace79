"""``specref check --installed``: all registered engines, each in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from shlex import join
from typing import IO, Any

import click
from click.core import ParameterSource

from specref.adapters.implementation import Implementation
from specref.cli.group import INTERRUPTED, progress, show
from specref.contracts.contract import Contract
from specref.contrib.engines.board_report import (
    CRASHED,
    FOUND,
    LATE,
    MEMORY,
    NETWORK,
    NOT_RUN,
    OUTPUT,
    PASSED,
    Row,
    board_table,
    exit_code_of,
    verdict_of,
    write_board,
)
from specref.contrib.engines.engines import CUDA, ENGINES, Installable
from specref.contrib.engines.offline import REFUSED
from specref.report.machine import STDOUT

SLOW = (
    "smoke/answers",
    "joint/wide",
    "joint/probed",
    "boundary/zero-coin",
    "boundary/greedy-ties",
)
# A call of theirs with some thousand rows takes minutes on a busy machine.
SLOW_TIMEOUT = ("--timeout", "900")
LONG = 600.0
SECONDS, LOADING = 30.0, 10.0
LIMIT = 600.0
"""Seconds for a path, if no more than a third of that are asked for."""
TAIL, LONGEST = 1 << 20, 200
REPORT = re.compile(r"specref \S+ · ")
PASSED_ON = ("time_limit", "detect_tv", "alpha", "seed", "timeout")
POWER = ("time_limit", "detect_tv")
TAKEN = {"target", "installed", "contract", "json_file", *PASSED_ON}
NO_DOWNLOADS = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
INTERPRETED = {} if CUDA else {"TRITON_INTERPRET": "1"}
GRACE, EVERY = 10.0, 0.2
GIB = 2**30
PROC = Path("/proc")


def _most_memory() -> float:
    """16 GiB, or three quarters of what the machine has."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on every system
        return 16 * GIB
    return min(16 * GIB, 0.75 * there)


MOST_MEMORY, MOST_OUTPUT = _most_memory(), 1.0 * GIB


@dataclass(frozen=True)
class Ending:
    """How a process ended; the verdict is of the row, if there is no report."""

    verdict: str
    told: str
    by_itself: bool = False

    def __str__(self) -> str:
        return self.told


def watched(
    process: "subprocess.Popen[bytes]", limit: float, memory: float, logs: Sequence[Path]
) -> Ending:
    """Wait for a process that takes so many seconds and bytes at most, and writes few to its logs.

    Memory is that of all processes of its session, as /proc tells it; where there is no /proc,
    it is not looked at.
    """
    end = time.monotonic() + limit
    while True:
        left = end - time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(max(min(EVERY, left), 0))
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            return Ending(CRASHED, f"ended {how}", by_itself=True)
        if left <= 0:
            return Ending(LATE, f"not done after {limit:g} s")
        over = None
        if memory_of_session(process.pid) > memory:
            over = Ending(MEMORY, f"used more than {memory / GIB:.3g} GiB")
        elif sum(log.stat().st_size for log in logs) > MOST_OUTPUT:
            over = Ending(OUTPUT, f"printed more than {MOST_OUTPUT / GIB:.3g} GiB")
        if over:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # asked to end, it would go on meanwhile
            return over


def memory_of_session(session: int) -> int:
    """The bytes in memory of all processes of a session; 0 if the system does not tell."""
    pages = 0
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it may have ended
            # After the name, which may have spaces in it, and the closing bracket.
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            pages += int(fields[21]) if int(fields[3]) == session else 0
    return pages * os.sysconf("SC_PAGE_SIZE") if pages else 0


@contextmanager
def ended_with_children(
    command: Sequence[str],
    variables: Mapping[str, str],
    folder: Path | None,
    output: IO[bytes],
    errors: IO[bytes],
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in a session of its own, none of whose group is left at the end."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=dict(variables),
        cwd=folder, start_new_session=True,
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


def quick(contract: Contract, seconds: float, slow: bool = False) -> tuple[str, ...]:
    """The options of the quick form: some checks, at TV 0.05 or for so many seconds.

    * `slow`: Only what takes few calls, at TV 0.2, or at 0.1 if there are ten minutes for it.
    """
    power: tuple[str, ...] = "--detect-tv", "0.05"
    if slow:
        power = "--detect-tv", "0.1" if seconds >= LONG else "0.2", *SLOW_TIMEOUT
    elif contract.timed:
        power = "--time-limit", f"{seconds + LOADING:g}"
    only = SLOW if slow else contract.quick_checks
    return (*(x for one in only for x in ("--only", one)), *power)


def check_engines(context: click.Context, contract: str | None, json_file: str | None) -> int:
    """Judge every registered engine that is installed; the exit code."""
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
                form = quick(path.contract, SECONDS, engine.slow) if own else ()
                limit = limit_for(engine, given.get("time_limit") or SECONDS)
                rows.append(_row(engine, path, [*form, *asked], limit))
                if json_file and json_file != STDOUT:
                    write_board(json_file, rows)
                advance(1, path.name)
        except KeyboardInterrupt:
            interrupted = True
    show(board_table(rows), json_file)
    if json_file:
        write_board(json_file, rows)
    return INTERRUPTED if interrupted else exit_code_of(rows)


def ran_in(engine: Installable) -> str:
    """What rows of an engine say of how its kernels ran."""
    return (
        "in Triton's interpreter (TRITON_INTERPRET=1), on the CPU"
        if engine.slow and INTERPRETED
        else ""
    )


def limit_for(engine: Installable, seconds: float) -> float:
    """How long a path may take that is given so many seconds; slow ones twice as long.

    Texts are drawn for as long as that; exact laws and the short checks come on top.
    """
    limit = max(LIMIT, 3 * seconds)
    return 2 * limit if engine.slow else limit


def _row(engine: Installable, path: Implementation, arguments: Sequence[str], limit: float) -> Row:
    named = engine.name, path.name, str(path.contract)
    if path.missing:
        return Row(*named, NOT_RUN, f"{', '.join(path.missing)} not installed: {path.remedy}")
    return judged_apart(*named, arguments, note=ran_in(engine), limit=limit)


def judged_apart(
    engine: str,
    path: str,
    contract: str,
    arguments: Sequence[str] = (),
    *,
    note: str = "",
    python: str = sys.executable,
    limit: float = LIMIT,
    memory: float = MOST_MEMORY,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    texts: Path | None = None,
) -> Row:
    """The row of ``specref check PATH`` in another process, whatever becomes of that.

    The process has no network (`offline`), and the row says what it asked for.

    * `path`: A registered name, or MODULE:NAME.
    * `limit`: Seconds, after which the process and its children are ended.
    * `memory`: Bytes that they may use together.
    * `texts`: A file for whole texts as they come: if the process is ended, a second run goes on
      from them. It is deleted after a verdict. Not with other contracts.
    """
    named = ["--contract", contract] if ":" in path else []
    asked = ["check", path, *named, *arguments]
    kept = ["--texts", str(texts)] if texts else []
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="specref-") as scratch:
        report, refused, *logs = (
            Path(scratch, name) for name in ("report.json", "refused", "stdout", "stderr")
        )
        start = [python, "-m", "specref.contrib.engines.offline"]
        command = [*start, *asked, *kept, "--json", str(report)]
        variables = {
            **(os.environ if environment is None else environment),
            **NO_DOWNLOADS,
            **INTERPRETED,
            REFUSED: str(refused),
        }
        with (
            logs[0].open("wb") as output,
            logs[1].open("wb") as errors,
            ended_with_children(command, variables, folder, output, errors) as process,
        ):
            ending = watched(process, limit, memory, logs)
        record = _read(report)
        hosts = refused.read_text("utf-8").split("\n") if refused.exists() else []
        printed, said = map(_end_of, logs)
    told: dict[str, Any] = {
        "seconds": round(time.perf_counter() - started, 1),
        "command": join(["specref", *asked]),
        "date": datetime.now(UTC).date().isoformat(),
    }
    if record is None or "results" not in record:
        fields = _unjudged(record, ending, (said or printed or ["nothing was printed"])[-1])
    else:
        complete = record["complete"] and ending.by_itself
        fields = verdict_of(record, "" if complete else ending.verdict)
        if not complete:
            fields["evidence"] = f"{ending}; {fields['evidence']}"
        if note:
            fields["evidence"] += f"; {note}"
        own = [line for line in takewhile(lambda line: not REPORT.match(line), printed) if line]
        own = own if len(own) < len(printed) else []
        own += [
            one["evidence"]["printed"] for one in record["results"] if "printed" in one["evidence"]
        ]
        if own:
            fields["evidence"] += f"; prints to standard output: {_short(own[0])}"
    row = Row(engine, path, contract, **_refused(fields, hosts), **told)
    if texts and row.judged:
        texts.unlink(missing_ok=True)
    return row


def _refused(fields: dict[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
    """The fields, where the process had asked for hosts: an error may come of that alone."""
    named = ", ".join(dict.fromkeys(filter(None, hosts)))
    if not named:
        return fields
    if fields["verdict"] in FOUND or fields["verdict"] == PASSED:
        return {**fields, "evidence": f"{fields['evidence']}; was refused a network ({named})"}
    evidence = f"asked for {named}, and there is no network; {fields['evidence']}"
    return {**fields, "verdict": NETWORK, "evidence": evidence, "violated": False}


def _unjudged(record: Mapping[str, Any] | None, ending: Ending, last: str) -> dict[str, Any]:
    if record is not None:
        return {"verdict": NOT_RUN, "evidence": str(record.get("reason", last))}
    return {"verdict": ending.verdict, "evidence": f"{ending}; {_short(last)}"}


def _short(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _end_of(log: Path) -> list[str]:
    """The lines of a log, of its last bytes if it is long; those with nothing in them left out."""
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - TAIL, 0))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return [line for line in lines if line.strip()]


def _read(file: Path) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found
