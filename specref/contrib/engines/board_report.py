"""Rows of the scoreboard: what came of an engine, for people and as JSON."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from specref.conformance.status import LOSSY, Finding, Status
from specref.report.forms import TEXT, Reports, Schema, form_of, listed, record, said
from specref.report.layout import Column, Prose, Table
from specref.report.machine import write_json

NOT_RUN, PASSED, KNOWN = "not_run", "passed", "LOSSY, known"
CRASHED, LATE, MEMORY, OUTPUT = "crashed", "time limit", "memory limit", "output limit"
NETWORK = "asked for a network"
VERDICTS: Mapping[str, str] = {
    Finding.DEPENDENCE: "LOSSY",
    Finding.LAW: "LOSSY",
    Finding.CONTRACT: "broken contract",
    Finding.EDGE: "edge",
    Finding.ACCEPTANCE: "accepted tokens",
    Finding.PLAIN: "wrong baseline",
    Finding.UNANSWERED: "not answered",
    Finding.NOT_EXERCISED: "not_exercised",
}
JUDGED, FOUND = frozenset({PASSED, KNOWN}), frozenset({"LOSSY", KNOWN})
GREEDY = "greedy; no distribution is judged"
TEXTS = "end-to-end/texts", "end-to-end/texts-same"
COLUMNS = (
    Column("path"),
    Column("contract"),
    Column("verdict"),
    Column("s", right=True),
    Column("what was seen", folds=True),
)


INSTALLED = re.compile(r"/\S*/site-packages/")


@dataclass(frozen=True)
class Row:
    """What came of one way in which one engine speculates.

    Attributes
    ----------
    engine, path, contract : str
        The path is the registered name.
    verdict : str
        ``passed`` says no more than `power`; ``LOSSY, known`` is an expected failure.
    evidence : str
        What was found, or drawn; why there is no verdict.
    power : str
        What would have been detected, where no wrong distribution was found.
    violated : bool
        A failure that is not expected.
    package : str
        The engine's package and its version, where it was installed for this.
    megabytes : int
        What the installation added.
    run : str
        When the command began that judged it and others, and its options.
    """

    engine: str
    path: str
    contract: str
    verdict: str
    evidence: str
    power: str = ""
    violated: bool = False
    version: str = ""
    seconds: float = 0.0
    command: str = ""
    package: str = ""
    megabytes: int = 0
    date: str = ""
    run: str = ""

    @property
    def judged(self) -> bool:
        """Whether there is a verdict."""
        return self.violated or self.verdict in JUDGED


def verdict_of(record: Mapping[str, Any], ending: str = "") -> dict[str, Any]:
    """The fields of a row that a report says, if it was written by a command that ended so.

    * `ending`: How the command ended, if not by itself: what was found before counts all the same.
    """
    results = record["results"]
    failed = [one for one in results if one["status"] == Status.FAILED]
    known = [one for one in results if one["status"] == Status.EXPECTED_FAILURE]
    known = [one for one in known if one["finding"] in LOSSY]
    open_ = [one for one in results if one["status"] == Status.INCONCLUSIVE]
    greedy = record.get("capabilities", {}).get("greedy", False)
    verdict, shown = "inconclusive", [one for one in open_ if one["message"]]
    if failed:
        verdict = VERDICTS[record["finding"]]
        shown = [one for one in failed if one["finding"] == record["finding"]]
    elif ending or not record["complete"]:
        verdict, shown = ending or "interrupted", []
    elif known:
        verdict, shown = KNOWN, known
    elif record["finding"]:
        verdict = VERDICTS[record["finding"]]
        shown = [one for one in results if one["finding"] == record["finding"]]
    elif record["exit_code"] == 0:
        verdict, shown = PASSED, []
    evidence = f"{shown[0]['id']}: {shown[0]['message']}" if shown else _drawn(results)
    whole = not ending and record["complete"]
    power = "" if verdict in FOUND or not whole else GREEDY if greedy else _power(results)
    if verdict == "inconclusive" and not open_:
        evidence = record["verdict"]
    return {
        "verdict": verdict,
        "evidence": INSTALLED.sub("", " ".join(evidence.split())),
        "power": power,
        "violated": bool(failed),
        "version": record["version"],
    }


def _drawn(results: Sequence[Mapping[str, Any]]) -> str:
    """How much was drawn, and what was found that is no failure."""
    texts = [one for one in results if one["id"] in TEXTS and one["message"]]
    told = [
        f"{one['id']}: {one['message']}" for one in texts if one["status"] != Status.NOT_APPLICABLE
    ]
    for one in results:
        if one["finding"] == Finding.EDGE:
            rate = one["evidence"].get("per_million_tokens")
            rare = "" if rate is None else f", {rate:.0e} per million tokens"
            told.append(f"edge: {one['id']}{rare}")
    trials = sum(one["evidence"].get("trials") or 0 for one in results)
    passed = sum(one["status"] == Status.PASSED for one in results)
    return "; ".join([f"{passed} checks passed, {trials:,} trials", *told])


def _power(results: Sequence[Mapping[str, Any]]) -> str:
    """The distances that would have been found by drawing, and those that were computed."""
    found = {one["id"]: one["evidence"].get("detectable_tv") for one in results}
    found = {id_: tv for id_, tv in found.items() if tv}
    drawn = [tv for id_, tv in found.items() if id_.startswith("end-to-end/")]
    drawn = drawn or [*found.values()]
    exact = [
        one["evidence"]["total_variation"]
        for one in results
        if one["id"].partition("/")[2].startswith("probed")
        and "total_variation" in one["evidence"]
    ]
    parts = [f"TV ≥ {min(drawn):.2g}" if min(drawn) < 1 else "none"] if drawn else []
    if drawn and min(drawn) < 1 and f"{max(drawn):.2g}" != f"{min(drawn):.2g}":
        parts = [f"TV ≥ {min(drawn):.2g} to {max(drawn):.2g}, by check"]
    return "; ".join([*parts, *([f"exact distribution within {max(exact):.0e}"] if exact else [])])


def board_table(rows: Sequence[Row]) -> RenderableType:
    """The rows for people, and how many engines have a verdict."""
    styles = {PASSED: "green", KNOWN: "bold yellow", NOT_RUN: "dim"}
    cells = [
        (
            row.path,
            row.contract,
            Text(row.verdict, "bold red" if row.violated else styles.get(row.verdict, "magenta")),
            f"{row.seconds:.0f}" if row.seconds else "",
            f"{row.evidence} ({row.power})" if row.power else row.evidence,
        )
        for row in rows
    ]
    return Group(Table(COLUMNS, cells), "", Prose(summary(rows)))


def summary(rows: Sequence[Row]) -> str:
    """How many of the rows have which verdict."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return f"{len(rows)} paths of {len({row.engine for row in rows})} engines: {told}"


def exit_code_of(rows: Sequence[Row]) -> int:
    """1: an unexpected violation; 2: an installed engine has no verdict, or none has; else 0."""
    installed = [row for row in rows if row.verdict != NOT_RUN]
    if any(row.violated for row in rows):
        return 1
    return 0 if installed and all(row.judged for row in installed) else 2


def write_board(
    file: str,
    rows: Sequence[Row],
    stronger: Sequence[Row] = (),
    undecided: Sequence[Row] = (),
    unfinished: str = "",
) -> None:
    """Write rows as JSON, all or nothing.

    * `rows`, `stronger`, `undecided`: The last verdict on each path, those before it with more
      power, last runs without one.
    """
    parts = {"rows": rows, "stronger": stronger, "undecided": undecided}
    listed = []
    for name, found in parts.items():
        lines = ",\n".join(f"  {json.dumps(asdict(row), ensure_ascii=False)}" for row in found)
        listed.append(f' "{name}": [\n{lines}\n ]')
    whole = ",\n".join([*listed, f' "unfinished": {json.dumps(unfinished)}'])
    write_json(file, f"{{\n{whole}\n}}")


def read_board(file: Path, part: str = "rows") -> tuple[Row, ...]:
    """The rows that were written; none if there is no file.

    * `part` ({"rows", "stronger", "undecided"}): The last verdict on each path, those before it
      with more power, or last runs without one.
    """
    if not file.exists():
        return ()
    try:
        record = json.loads(file.read_text("utf-8"))
        return tuple(Row(**row) for row in record[part])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{file}: expected the JSON of a scoreboard ({error})") from None


BOARD: dict[str, Schema] = {
    "rows": listed(form_of(Row)),
    "stronger": said("On the scoreboard: earlier rows with more power.", listed(form_of(Row))),
    "undecided": said("On the scoreboard: later runs without a verdict.", listed(form_of(Row))),
    "unfinished": said("On the scoreboard: the run that was interrupted, if one was.", TEXT),
}
REPORTS: Reports = {
    "engines": ("specref check --installed", record(**BOARD)),
}
