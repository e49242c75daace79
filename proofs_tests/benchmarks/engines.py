"""The scoreboard: every engine installed by itself, judged, and deleted again.

    python -m proofs_tests.benchmarks.engines [--only NAME] [--path NAME] [--again]
        [--share] [--whole] [--seconds N] [--limit N]

Each engine gets an environment in a temporary folder, one at a time; PyPI is asked by pip. Rows
are written as they come to docs/records/scoreboard.json, and then as a page. After an
interruption the same command goes on: rows of the same version of the engine are kept, with
``--again`` those of the run that was interrupted, and the texts of a path that came to no verdict
(in a hidden folder beside the record) are taken by the next run. One that cannot be installed has
rows that say so.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import specref
from proofs_tests.pages.scoreboard import board_page, stronger_than
from specref.adapters.implementation import Implementation
from specref.adapters.needs import clone
from specref.cli.group import ended_as_by_ctrl_c
from specref.contracts.table import CONTRACTS
from specref.contrib.engines.board import (
    LOADING,
    SECONDS,
    judged_apart,
    limit_for,
    quick,
    ran_in,
)
from specref.contrib.engines.board_report import (
    NOT_RUN,
    Row,
    read_board,
    write_board,
)
from specref.contrib.engines.checkouts import remedy
from specref.contrib.engines.engines import CUDA, ENGINES, Installable
from specref.report.machine import write_json

ROOT = Path(specref.__file__).parents[1]
DOCS = ROOT / "docs"
RECORD, TROPHIES = DOCS / "records" / "scoreboard.json", DOCS / "records" / "trophies.md"
ROWS = "Rows of the [scoreboard](scoreboard.md): "
INSTALLING = 1_800.0
PARTS = ("rows", "stronger", "undecided")
PATHS = tuple(path.name for engine in ENGINES.values() for path in engine.paths)


class NotInstallableError(Exception):
    """pip failed; the message is what it said last."""


@dataclass(frozen=True)
class Judgement:
    """How rows come about.

    * `forms`: {contract: options of ``specref check``}.
    * `seconds`: For a path of texts.
    * `limit`: Seconds for a row, if not those of `limit_for`.
    * `share`: Environments see the packages of this interpreter, too, and specref as it is here.
    * `run`: When this began, and with which options.
    * `paths`: Only these, if any are named.
    """

    forms: Mapping[str, Sequence[str]]
    seconds: float = SECONDS
    limit: float | None = None
    share: bool = False
    run: str = ""
    paths: Sequence[str] = ()

    def chosen(self, engine: Installable) -> list[Implementation]:
        """The paths of an engine that are to be judged."""
        return [one for one in engine.paths if not self.paths or one.name in self.paths]

    def form(self, contract: str, slow: bool) -> Sequence[str]:
        """The options for a path."""
        if slow:
            return quick(CONTRACTS[contract], self.seconds, slow)
        return self.forms.get(contract, ())


class Environment:
    """A virtual environment in a folder, filled by the pip of this interpreter."""

    def __init__(self, folder: Path, share: bool) -> None:
        self.folder = folder
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = str(folder / "bin" / "python")
        (self.packages,) = folder.glob("lib/python*/site-packages")
        if share:
            paths = [str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
            (self.packages / "shared.pth").write_text("\n".join(dict.fromkeys(paths)) + "\n")
        kept = ("PYTHONPATH", "PYTHONHOME")
        self.variables = {key: value for key, value in os.environ.items() if key not in kept}

    def pip(self, *arguments: str) -> str:
        """What pip says, which is told to work for this environment."""
        command = [sys.executable, "-m", "pip", "--python", self.python, *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=INSTALLING, env=self.variables
            )
        except subprocess.TimeoutExpired:
            raise NotInstallableError(f"pip was not done after {INSTALLING:g} s") from None
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["pip said nothing"]
            errors = [line for line in said if line.startswith("ERROR")]
            raise NotInstallableError((errors or said)[-1])
        return done.stdout

    def version(self, distribution: str) -> str:
        """The installed version, or nothing."""
        code = f"from importlib.metadata import version; print(version({distribution!r}))"
        done = subprocess.run([self.python, "-c", code], capture_output=True, text=True)
        return done.stdout.strip()

    def megabytes(self) -> int:
        files = (one for one in self.packages.rglob("*") if one.is_file())
        return round(sum(one.stat().st_size for one in files) / 1e6)


def version_of(engine: Installable, there: Environment) -> str:
    """The package with its version, or the clone with its commit.

    * raises `NotInstallableError`: There is no clone, or no such package.
    """
    if not engine.clone:
        return f"{engine.distribution} {offered(engine, there)}"
    if not clone(engine.clone).is_dir():
        raise NotInstallableError(remedy(engine.clone))
    asked = ["git", "-C", str(clone(engine.clone)), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    return f"{engine.clone.split('@')[0]} {commit}"


def offered(engine: Installable, there: Environment) -> str:
    """The version of an engine that pip would install, or has."""
    asked = [one for one in engine.requirements if re.split(r"[^\w.-]", one)[0] != "torch"]
    told = there.pip("install", "--dry-run", "--no-deps", "--quiet", "--report", "-", *asked)
    for one in json.loads(told)["install"]:
        if one["metadata"]["name"].replace("_", "-") == engine.distribution:
            return str(one["metadata"]["version"])
    return there.version(engine.distribution)


def install(engine: Installable, there: Environment, share: bool) -> int:
    """Install specref and an engine, and say what that took; the megabytes of the engine."""
    started = time.perf_counter()
    if not share:
        there.pip("install", "--quiet", str(ROOT))
    before = there.megabytes()
    for one in engine.requirements:
        more = ["--no-deps"] if engine.alone and one != "torch" else []
        there.pip("install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), *more, one)
    minutes = (time.perf_counter() - started) / 60
    megabytes = there.megabytes() - before
    print(f"{engine.name}: installed in {minutes:.1f} minutes, {megabytes} MB")
    return megabytes


def run(
    engines: Iterable[Installable], record: Path, how: Judgement, again: bool = False
) -> list[Row]:
    """Judge engines one after the other; every row is written at once.

    Parameters
    ----------
    engines : iterable of Installable
    record : Path
        The JSON, with the rows that are kept.
    how : Judgement
    again : bool
        Judge what is on the record, too, but for what this run has judged.
    """
    board = Board(record, how.run)
    rows = board.rows

    def add(row: Row) -> None:
        board.add(row)
        print(f"{row.path}: {row.verdict}, {row.seconds:.0f} s; {row.evidence}", flush=True)

    def skip(engine: Installable, why: str) -> None:
        print(f"{engine.name}: {why}")
        for path in how.chosen(engine):
            if path.name not in rows or not rows[path.name].judged:
                add(Row(engine.name, path.name, str(path.contract), NOT_RUN, why, run=how.run))

    for engine in engines:
        if engine.needs_cuda and not CUDA:
            skip(engine, "needs CUDA")
            continue
        if not engine.requirements:  # no adapter calls it, and that is what it says
            skip(engine, engine.paths[0].remedy)
            continue
        with tempfile.TemporaryDirectory(prefix="specref-engine-") as folder:
            there = Environment(Path(folder, "environment"), how.share)
            try:
                package = version_of(engine, there)
                wanted = [
                    path for path in how.chosen(engine)
                    if path.name not in rows or rows[path.name].package != package
                    or (again and not board.has(path.name))
                ]  # fmt: skip
                print(f"{package}: {len(wanted)} of {len(how.chosen(engine))} paths to be judged")
                if not wanted:
                    continue
                megabytes = install(engine, there, how.share)
            except NotInstallableError as error:
                skip(engine, f"not installed: {error}")
                continue
            for path in wanted:
                contract = str(path.contract)
                texts = texts_of(record, package, path.name) if path.contract.of_engines else None
                row = judged_apart(
                    engine.name, path.name, contract, how.form(contract, engine.slow),
                    note=ran_in(engine), python=there.python, folder=Path(folder),
                    limit=how.limit or limit_for(engine, how.seconds),
                    environment=there.variables, texts=texts,
                )  # fmt: skip
                add(replace(row, package=package, megabytes=megabytes, run=how.run))
    board.write()
    return list(rows.values())


def texts_of(record: Path, package: str, path: str) -> Path:
    """The file for the texts of a path, in a folder beside the record."""
    folder = record.with_name(f".{record.stem}")
    folder.mkdir(exist_ok=True)
    name = re.sub(r"[^\w.-]", "-", f"{path} {package}")
    return folder / f"{name}.jsonl"


class Board:
    """The rows of a file, which is rewritten after each that is added.

    * `run`: Which run is under way.
    * `rows`, `stronger`, `undecided`: By path: the last verdict; one before it with more power;
      what came of the last run, where it gave no verdict on a version that has one.
    """

    def __init__(self, file: Path, run: str = "") -> None:
        self.file, self.run = file, run
        self.rows, self.stronger, self.undecided = (
            {row.path: row for row in read_board(file, part)} for part in PARTS
        )

    def has(self, path: str) -> bool:
        """Whether this run has judged a path, or tried to."""
        found = [one[path].run for one in (self.rows, self.undecided) if path in one]
        return bool(self.run) and self.run in found

    def add(self, row: Row) -> None:
        """Put in a row, and write the file."""
        last = self.rows.get(row.path)
        self.undecided.pop(row.path, None)
        if last and last.judged and not row.judged and last.package == row.package:
            self.undecided[row.path] = row
        else:
            before = [one[row.path] for one in (self.stronger, self.rows) if row.path in one]
            self.stronger.pop(row.path, None)
            self.stronger.update({one.path: one for one in stronger_than(row, before)})
            self.rows[row.path] = row
        self.write(unfinished=self.run)

    def write(self, unfinished: str = "") -> None:
        parts = (list(getattr(self, name).values()) for name in PARTS)
        write_board(str(self.file), *parts, unfinished=unfinished)


def join(record: Path, other: Path) -> None:
    """Put the rows of another record into one, in their order, as if they came now."""
    board = Board(record)
    for row in read_board(other):
        board.add(row)


def words(options: Mapping[str, Any]) -> list[str]:
    """Options as a command has them; those that were not given are left out.

    >>> words({"only": ["vllm", "sglang"], "again": False, "share": True, "seconds": 30.0})
    ['--only', 'vllm', '--only', 'sglang', '--share', '--seconds', '30']
    """
    told: list[str] = []
    for name, given in options.items():
        for one in given if isinstance(given, list) else [given] * bool(given):
            value = f"{one:g}" if isinstance(one, float) else str(one)
            told += [f"--{name}"] if one is True else [f"--{name}", value]
    return told


def label(record: Path, options: Sequence[str]) -> str:
    """The run that this is: the one on the record that was interrupted, or a new one."""
    words = f"`{shlex.join(options)}`"
    told = json.loads(record.read_text("utf-8")).get("unfinished", "") if record.exists() else ""
    began = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return str(told) if str(told).endswith(f", {words}") else f"{began}, {words}"


def minutes(paths: Iterable[Implementation], rows: Iterable[Row], seconds: float) -> float:
    """About how long judging takes, by the record; for a new path, `seconds` and its loading."""
    known = {row.path: row.seconds for row in rows if row.seconds}
    return sum(known.get(path.name, seconds + LOADING) for path in paths) / 60


def main() -> None:
    """Run what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", action="append", choices=tuple(ENGINES), help="repeat for more")
    parser.add_argument("--path", action="append", choices=PATHS, default=[], help="repeat")
    parser.add_argument("--again", action="store_true", help="judge what is on the record, too")
    parser.add_argument(
        "--share", action="store_true", help="environments see this interpreter's packages, too"
    )
    parser.add_argument("--whole", action="store_true", help="all checks of samplers")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for a path of texts")
    parser.add_argument("--limit", type=float, help="seconds for a path; 600, or three times N")
    parser.add_argument("--join", type=Path, help="a record whose rows are put in; none is judged")
    parser.add_argument("--record", type=Path, default=RECORD, help="the JSON; the page is beside")
    asked = parser.parse_args()
    if asked.join:
        join(asked.record, asked.join)
        write_page(asked.record)
        return
    forms = {
        name: () if asked.whole and not contract.timed else quick(contract, asked.seconds)
        for name, contract in CONTRACTS.items()
    }
    options = words({one: v for one, v in vars(asked).items() if one != "record"})
    began = label(asked.record, options)
    how = Judgement(forms, asked.seconds, asked.limit, asked.share, began, asked.path)
    engines = [one for one in ENGINES.values() if not asked.only or one.name in asked.only]
    engines = [one for one in engines if how.chosen(one)]
    if not engines:
        parser.error("--path: expected paths of the engines of --only")
    for one in engines:
        needs = ", needs CUDA" if one.needs_cuda else ""
        print(f"{one.name}: {len(how.chosen(one))} paths, about {one.megabytes} MB{needs}")
    paths = [path for one in engines for path in how.chosen(one)]
    about = minutes(paths, read_board(asked.record), asked.seconds)
    print(f"judging all took, or would take, about {about:.0f} minutes; installing comes on top")
    try:
        with ended_as_by_ctrl_c():
            run(engines, asked.record, how, asked.again)
    finally:
        write_page(asked.record)


def sections(page: str) -> dict[str, str]:
    """{path: the anchor of its section}, as a page says in lines ``Rows of the [scoreboard]…``."""
    found: dict[str, str] = {}
    anchor = ""
    for line in page.splitlines():
        if line.startswith("## "):
            anchor = re.sub(r"[^\w -]", "", line[3:].lower()).replace(" ", "-")
        elif line.startswith(ROWS):
            found.update(dict.fromkeys(re.findall(r"`([^`]+)`", line), anchor))
    return found


def write_page(record: Path) -> None:
    """Write the page of a record: in docs, or beside another record."""
    rows = read_board(record)
    known = {row.path for row in rows}
    untried = [
        Row(one.name, path.name, str(path.contract), NOT_RUN, "not installed here")
        for one in ENGINES.values()
        for path in one.paths
        if path.name not in known
    ]
    more = [read_board(record, part) for part in PARTS[1:]]
    page = board_page([*rows, *untried], *more, sections=sections(TROPHIES.read_text("utf-8")))
    file = DOCS / "records" / "scoreboard.md" if record == RECORD else record.with_suffix(".md")
    write_json(str(file), page.rstrip("\n"))


if __name__ == "__main__":
    main()
