"""The kill matrix as a table, a record and a page of the docs."""

from rich.console import Group, RenderableType
from rich.text import Text

from specref.conformance.status import Stage
from specref.contrib.selftest.kill_matrix import STAGES, Matrix, Row
from specref.report.layout import Column, Prose, Table
from specref.report.page import address
from specref.zoo import Entry

SHORT = {
    Stage.ACCEPTANCE: "accept",
    Stage.INDEPENDENCE: "indep",
    Stage.ITERATIONS: "iter",
    Stage.END_TO_END: "e2e",
    Stage.BOUNDARY: "bound",
}


def zoo_table(matrix: Matrix) -> RenderableType:
    """One row for each mutant and control: how many checks of each stage fail it."""
    columns = [
        *(Column("mutant or control"), Column("stage"), Column("TV", right=True)),
        *(Column(SHORT.get(stage, str(stage)), right=True) for stage in STAGES),
    ]
    table = Table(columns, [_zoo_row(row) for row in matrix.rows])
    lines = [Prose(problem, "red") for problem in matrix.problems]
    total = Prose(summary(matrix), "bold red" if matrix.problems else "bold green")
    missed = [
        Prose(f"{name} alone would miss: {', '.join(ids) or 'none of them'}", "dim")
        for name, ids in matrix.missed.items()
        if matrix.whole
    ]
    return Group(table, "", Prose(LEGEND, "dim"), *missed, *lines, total)


def summary(matrix: Matrix) -> str:
    """How many are as they should be."""
    counts = matrix.counts
    return (
        f"{counts['killed']} of {counts['mutants']} mutants killed, {counts['passed']} of "
        f"{counts['controls']} controls passed, {len(matrix.idle)} idle checks; seed "
        f"{matrix.seed}, set to detect TV ≥ {matrix.detect_tv:g}"
    )


def _zoo_row(row: Row) -> list[Text]:
    style = "red" if row.problem else "dim" if row.entry.lossless else ""
    cells = [_fails(row, stage) for stage in STAGES]
    told = [row.entry.id, kind_of(row.entry), variation(row), *cells]
    return [Text(cell, style) for cell in told]


LEGEND = (
    "Cells: failed / asked checks of a stage. TV: the largest exact total variation on the "
    "pairs that the checks use, where it is a step. Controls are lossless and must pass."
)


def zoo_record(matrix: Matrix) -> dict[str, object]:
    """The kill matrix as an object that JSON can hold, with a record for each entry."""
    return {
        "seed": matrix.seed,
        "detect_tv": matrix.detect_tv,
        "counts": dict(matrix.counts),
        "problems": matrix.problems,
        "idle": matrix.idle,
        "missed_by_fixture": dict(matrix.missed),
        "rows": [
            {
                "id": row.entry.id,
                "rule": row.entry.rule,
                "stage": row.entry.stage,
                "lossless": row.entry.lossless,
                "formula": row.entry.formula,
                "cites": row.entry.cites,
                "total_variation": row.variation,
                "killers": row.killers,
                "survives": sorted(row.asked - set(row.killers)),
            }
            for row in matrix.rows
        ],
    }


def zoo_markdown(matrix: Matrix, *, pictured: bool = False) -> str:
    """A table for the docs: formula, exact distance, killers, where it was seen.

    Parameters
    ----------
    matrix : Matrix
    pictured : bool
        Whether the page is in a folder beside docs/pictures, which has the heat map.
    """
    lines = [TITLE.format(**matrix.counts, seed=matrix.seed, detect_tv=matrix.detect_tv)]
    if pictured:
        lines.append(PICTURE.format(said=said_of_heat_map(**matrix.counts)))
    lines += [
        "| id | rule | stage | formula | TV | killed by | seen in |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in matrix.rows:
        killers = ", ".join(dict.fromkeys(family(id_) for id_ in row.killers)) or "passes"
        entry = row.entry
        cites = ", ".join(f"[{cite}]({address(cite)})" for cite in entry.cites)
        cells = (f"`{entry.id}`", entry.rule, kind_of(entry), entry.formula, variation(row))
        escaped = (cell.replace("|", "\\|") for cell in (*cells, killers, cites))
        lines.append(f"| {' | '.join(escaped)} |")
    lines += ["", "## What each fixture alone would miss, because its campaign passes it", ""]
    lines += [f"* `{name}`: {_ids(ids)}" for name, ids in matrix.missed.items()]
    return "\n".join(lines)


TITLE = """# The zoo

Every planted bug and every lossless look-alike, under every check that can be put to it. Written
by `specref zoo --markdown FILE` (seed {seed}, --detect-tv {detect_tv:g}): {killed} of
{mutants} mutants killed, {passed} of {controls} controls passed. The rule is the clean one; of a
figure, its definition. TV is the largest exact total variation on the pairs of models that the
checks use (on others it may be larger): of the completed block where the entry is a step, of the
first tokens where it is a loop that carries something, of the joint law of two requests where it
is a step of a batch. Figures that are reported wrongly, verifiers that break their contract, and
dependence between rows have none.
"""


PICTURE = """<picture>
  <source media="(prefers-color-scheme: dark)" srcset="../pictures/kills-dark.svg">
  <img alt="{said}" src="../pictures/kills-light.svg" width="640">
</picture>

A line for each known bug, and at the left where it departs from its rule; a column for each stage
of checks. An empty cell is a stage that the bug passed, or whose checks are for another contract.
`specref zoo --html FILE` writes the map with names and numbers.
"""


def said_of_heat_map(mutants: int, killed: int, **others: int) -> str:
    """What the heat map shows, in words."""
    return (
        f"Heat map of {mutants} planted bugs, by where they are, against {len(STAGES)} stages of "
        f"checks: {killed} fail at least one stage."
    )


def _ids(ids: tuple[str, ...]) -> str:
    return ", ".join(f"`{id_}`" for id_ in ids) or "none"


def family(id_: str) -> str:
    """A check as the page names it: by its stage, where one of these checks stands for all."""
    return id_.split("/")[0] if id_.split("/")[0] not in ("smoke", "boundary", "replay") else id_


def kind_of(entry: Entry) -> str:
    """Where an entry departs from its rule, and whether it is a control."""
    return f"{entry.stage}, control" if entry.lossless else entry.stage


def variation(row: Row) -> str:
    """The exact total variation of an entry, if it has one."""
    return "" if row.variation is None else f"{row.variation:.4f}"


def failed_of(row: Row, stage: Stage) -> tuple[int, int]:
    """How many checks of a stage an entry fails, and how many were put to it."""
    failed, asked = (
        sum(id_.startswith(f"{stage}/") for id_ in ids) for ids in (row.killers, row.asked)
    )
    return failed, asked


def _fails(row: Row, stage: Stage) -> str:
    failed, asked = failed_of(row, stage)
    return f"{failed}/{asked}" if asked else ""
