"""The kill matrix as a page: a heat map of mutants and stages."""

from specref.contrib.selftest.kill_matrix import STAGES, Matrix, Row
from specref.contrib.selftest.kills_report import (
    LEGEND,
    SHORT,
    failed_of,
    kind_of,
    summary,
    variation,
)
from specref.contrib.selftest.trigger_matrix import WANTED, TriggerMatrix
from specref.contrib.selftest.triggers_report import total, trigger_rows
from specref.report.page import (
    Markup,
    again,
    as_html,
    element,
    facts,
    html_page,
    joined,
    link_of,
    section,
    verdict_box,
)


def zoo_html(matrix: Matrix, command: str = "") -> str:
    """A page with a cell for each mutant or control and each stage of checks."""
    problems = [element("p", problem) for problem in matrix.problems]
    headline = "Every mutant is killed, every control passes, no check is idle"
    if not matrix.whole:
        headline = _each(matrix)
    told = element("p", summary(matrix))
    box = verdict_box(
        "bad" if problems else "good",
        f"{len(problems)} problems" if problems else headline,
        told,
        *problems,
    )
    titles = ("mutant or control", *(SHORT.get(x, str(x)) for x in STAGES), "TV", "departs at")
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    body = (element("tr", *_cells(row)) for row in matrix.rows)
    heat = element("table", element("thead", head), element("tbody", *body), class_="heat")
    seen = [
        (row.entry.id, joined([x for cite in row.entry.cites for x in (", ", link_of(cite))][1:]))
        for row in matrix.rows
        if row.entry.cites
    ]
    missed = [
        element("p", f"{name} alone would miss: {', '.join(ids) or 'none of them'}", class_="soft")
        for name, ids in matrix.missed.items()
        if matrix.whole
    ]
    said = (
        LEGEND + " The stronger its colour, the larger the share of the stage's checks that fail."
    )
    return html_page(
        "specref zoo",
        element("h1", "specref zoo"),
        box,
        section(
            "Mutants, controls and stages",
            element("p", said, class_="soft"),
            element("div", heat, class_="scroll"),
            *missed,
        ),
        section("Seen in public", facts(seen)) if seen else "",
        section("Run it again", *again(command, ("seed", f"{matrix.seed}"))),
    )


def _each(matrix: Matrix) -> str:
    """What is so of the mutants and controls that were run, where others were not."""
    mutants, controls = matrix.counts["mutants"], matrix.counts["controls"]
    parts = []
    if mutants:
        many = f"each of these {mutants} mutants is killed"
        parts.append("the mutant is killed" if mutants == 1 else many)
    if controls:
        many = f"each of these {controls} controls passes"
        parts.append("the control passes" if controls == 1 else many)
    told = ", ".join(parts) or "nothing was run"
    return told[0].upper() + told[1:]


def _cells(row: Row) -> list[Markup]:
    """A row of the heat map; the share of failed checks is its colour, and its text."""
    cells = []
    for stage in STAGES:
        failed, asked = failed_of(row, stage)
        share = f"--share: {10 + 40 * failed // asked}%" if failed else None
        told = f"{failed}/{asked}" if asked else ""
        cells.append(element("td", told, class_="some" if failed else None, style=share))
    return [
        element("td", row.entry.id),
        *cells,
        element("td", variation(row)),
        element("td", kind_of(row.entry)),
    ]


def trigger_html(matrix: TriggerMatrix, command: str = "") -> str:
    """A page with a row for each situation and bug."""
    good = matrix.share >= WANTED
    headline = "Enough of them are found" if good else "Too few of them are found"
    return html_page(
        "specref zoo --triggers",
        element("h1", "specref zoo --triggers"),
        verdict_box("good" if good else "bad", headline, element("p", total(matrix))),
        section("Bugs that act in one situation", as_html(trigger_rows(matrix))),
        section("Run it again", *again(command, ("seed", f"{matrix.seed}"))),
    )
