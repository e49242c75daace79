"""The report of the conformance kit: a table for people, JSON, JUnit XML and HTML."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from rich.console import Group, RenderableType
from rich.text import Text

from specref.conformance.differences import told
from specref.conformance.report import Report
from specref.conformance.status import CheckResult, Stage, Status, counted
from specref.conformance.strata.calling import ABSENT
from specref.conformance.strata.laws import FEATURES
from specref.conformance.strata.table import OWN as OWN_STRATUM
from specref.conformance.strata.table import UNTRIED
from specref.conformance.summary import diagnosis_told, in_short, shown_first
from specref.report.kit_records import record_of
from specref.report.layout import Column, Prose, Table

STYLES: Mapping[Status, str] = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.EXPECTED_FAILURE: "yellow",
    Status.UNEXPECTED_PASS: "bold yellow",
    Status.NOT_APPLICABLE: "dim",
    Status.NOT_RUN: "magenta",
    Status.INCONCLUSIVE: "bold magenta",
}
COLUMNS = (
    Column("check"),
    Column("status"),
    Column("what was seen", folds=True),
    Column("s", right=True),
)
FEW = 6
OWN = f"strata/{OWN_STRATUM}"
SHIFTS = (
    "situations: a shift is a change of the probability of a set of tokens, or of the mean of "
    "another of the {} features that are bet on, in one direction, averaged over the tokens of "
    "the situation. Not tested: other shapes, distributions and call patterns."
)


def kit_report(report: Report, *, verbose: bool = False) -> RenderableType:
    """The answer first: the verdict, where, why, counts, and what to do next."""
    known = report.counts[Status.EXPECTED_FAILURE]
    style = "bold red" if report.exit_code else "bold yellow" if known else "bold green"
    parts: list[RenderableType] = [*(Prose(line, "dim") for line in report.heading), ""]
    lines = report.summary.lines(report.seconds) if verbose else report.answer
    text = Text("\n".join(lines))
    text.highlight_regex(f"^{re.escape(lines[0])}", style)
    text.highlight_regex("(?m)^[A-Z ]{5,}(?=  )", "bold")
    return Group(*parts, text, *(_details(report) if verbose else ()))


def _details(report: Report) -> list[RenderableType]:
    """The table of checks, and all that is known besides the answer."""
    blocked, seen = report.blocked, report.seen
    rows = [
        (
            result.id,
            Text(str(result.status), STYLES[result.status]),
            seen[result.id],
            f"{result.seconds:.1f}",
        )
        for result in report.results
        if result.status != Status.NOT_APPLICABLE
        and not (result.status == Status.NOT_RUN and result.message in blocked)
    ]
    parts: list[RenderableType] = ["", Prose(effort(report), "dim"), "", Table(COLUMNS, rows), ""]
    parts += [Prose(f"{len(ids)} not_run {why}") for why, ids in blocked.items()]
    shown = list(filter(None, (report.worst, report.worst_exactly)))
    for one in shown:
        parts += [Prose("\n".join(told(one.id, one.evidence["difference"]))), ""]
    if shown and report.contract.rows_said:
        parts += [Prose(report.contract.rows_said, "dim"), ""]
    parts += [Prose(line) for line in report.growth]
    for ids, lines in report.tracebacks.items():
        parts.append(Text("\n".join([f"traceback of {ids}:", *(f"  {x}" for x in lines)])))
    if any(result.status in (Status.PASSED, Status.FAILED) for result in report.strata):
        parts.append(Prose(SHIFTS.format(len(FEATURES)), "dim"))
    parts += [Prose(line, "dim") for line in nowhere(report)]
    parts += [Prose(f"not tried: {one.id}: {one.message}", "yellow") for one in _untried(report)]
    parts += [Prose(line, "dim") for line in not_applicable(report)]
    parts += [Prose(f"warning: {warning}", "yellow") for warning in report.warnings]
    parts += [Prose(one) for one in diagnosis_told(report)]
    return [*parts, Prose(report.verdict, "bold")]


def not_applicable(report: Report) -> list[str]:
    """How many checks belong to other contracts, and which do not apply to what is claimed."""
    lines = []
    if number := report.other_contracts:
        belong = "1 check belongs" if number == 1 else f"{number} checks belong"
        lines.append(f"{belong} to other contracts than {report.contract}")
    told = {result.id for result in _untried(report)}
    if not report.options.shapes:
        told.add(OWN)
    for why, ids in report.switched_off.items():
        if left := [id_ for id_ in ids if id_ not in told]:
            some = ", ".join(left[:FEW]) + f" and {len(left) - FEW} more" * (len(left) > FEW)
            lines.append(f"n/a: {why}: {some}")
    return lines


def nowhere(report: Report) -> list[str]:
    """What is tried nowhere under the contract, unless it is asked for; of campaigns alone."""
    ends = Stage.STRATA, Stage.END_TO_END
    judged = any(
        one.stage in ends and one.status in (Status.PASSED, Status.FAILED)
        for one in report.results
    )
    limits = UNTRIED.get(str(report.contract), ())
    return [f"tried nowhere, unless asked for: {'; '.join(limits)}"] * bool(judged and limits)


def _untried(report: Report) -> list[CheckResult]:
    """The strata that do not apply, if others do.

    But for the one at shapes that are asked for, and those of what an implementation has not.
    """
    untried = [one for one in report.strata if one.status == Status.NOT_APPLICABLE]
    missed = [one for one in untried if one.id != OWN and not one.message.startswith(ABSENT)]
    return missed * (len(untried) < len(report.strata))


def effort(report: Report) -> str:
    """How much was asked for."""
    return f"alpha {report.alpha:g} · {_power(report)}"


def _power(report: Report) -> str:
    seconds = report.options.seconds
    if seconds is not None:
        return f"draws for {seconds:g} s: what would be detected is in each line"
    return f"set to detect TV ≥ {report.detect_tv:g} {report.contract.tried_on}"


def kit_record(report: Report) -> dict[str, Any]:
    """A report of `specref check` as an object that JSON can hold."""
    return asdict(record_of(report))


def kit_junit(reports: Sequence[Report]) -> str:
    """JUnit XML: a suite for each report, a test case for each check of its contract.

    The verdict is a property of the suite, and the whole answer in the failure that it shows.
    An error that several checks met is said in the first; the others name that.
    """
    root = ElementTree.Element("testsuites")
    for report in reports:
        own = [one for one in report.results if one.id not in report.of_other_contracts]
        counts = counted(own)
        skipped = (Status.NOT_APPLICABLE, Status.NOT_RUN, Status.EXPECTED_FAILURE)
        attributes = {
            "name": f"specref {report.name}",
            "tests": len(own),
            "failures": counts[Status.FAILED] + counts[Status.UNEXPECTED_PASS],
            "errors": counts[Status.INCONCLUSIVE],
            "skipped": sum(counts[status] for status in skipped),
            "time": f"{report.seconds:.3f}",
        }
        words = {key: str(value) for key, value in attributes.items()}
        suite = ElementTree.SubElement(root, "testsuite", words)
        told = {"name": "verdict", "value": _printable(in_short(report))}
        ElementTree.SubElement(ElementTree.SubElement(suite, "properties"), "property", told)
        shown = shown_first(report)
        for result in own:
            answer = report.answer if shown is not None and result.id == shown.id else ()
            _junit_case(suite, result, report.seen[result.id], answer)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _junit_case(
    suite: ElementTree.Element, result: CheckResult, seen: str, answer: Sequence[str]
) -> None:
    names = {"classname": f"specref.{result.stage}", "name": result.id}
    case = ElementTree.SubElement(suite, "testcase", {**names, "time": f"{result.seconds:.3f}"})
    if result.status == Status.PASSED:
        return
    kind = "skipped"
    if result.status in (Status.FAILED, Status.UNEXPECTED_PASS):
        kind = "failure"
    elif result.status == Status.INCONCLUSIVE:
        kind = "error"
    what = result.finding or result.status
    first = seen in (result.message, f"{result.finding}: {result.message}")
    said = result.message if first else seen
    attributes = {"message": f"{what}: {_printable(said)}"}
    if kind == "skipped":
        expected = result.status == Status.EXPECTED_FAILURE
        attributes["type"] = "pytest.xfail" if expected else "pytest.skip"
    element = ElementTree.SubElement(case, kind, attributes)
    if first or answer:
        element.text = "\n".join(map(_printable, answer or result.traceback)) or None


def _printable(text: str) -> str:
    """Without control characters, which XML cannot hold."""
    return "".join(character for character in text if character.isprintable())
