"""The matrix of triggers as a table, a record and a page of the docs."""

from rich.console import Group, RenderableType

from specref.report.layout import Column, Prose, Table
from specref.verification.trigger_matrix import WANTED, TriggerMatrix, TriggerRow
from specref.zoo.triggers import BASE_BUGS, TRIGGERS

KINDS = {trigger.id: trigger.kind for trigger in TRIGGERS}
MISSED = "missed"


def trigger_table(matrix: TriggerMatrix) -> RenderableType:
    """One row for each trigger and base bug: what finds it."""
    columns = [Column("situation"), Column("bug"), Column("found by", folds=True)]
    rows = [(row.trigger, row.bug, found_by(row)) for row in matrix.rows]
    good = matrix.share >= WANTED
    return Group(
        Table(columns, rows), "", Prose(total(matrix), "bold green" if good else "bold red")
    )


def found_by(row: TriggerRow) -> str:
    """The checks that fail a bug in a situation."""
    return ", ".join(row.killers) or row.elsewhere or MISSED


def total(matrix: TriggerMatrix) -> str:
    """How many were found."""
    found = len(matrix.rows) - len(matrix.missed)
    return (
        f"{found} of {len(matrix.rows)} found ({matrix.share:.1%}): {len(matrix.by_trigger)} "
        f"situations, seed {matrix.seed}"
    )


def trigger_record(matrix: TriggerMatrix) -> dict[str, object]:
    """The matrix for machines."""
    return {
        "seed": matrix.seed,
        "share": matrix.share,
        "missed": matrix.missed,
        "rows": [
            {
                "trigger": row.trigger,
                "kind": KINDS[row.trigger],
                "bug": row.bug,
                "killers": row.killers,
                "elsewhere": row.elsewhere,
            }
            for row in matrix.rows
        ],
    }


def trigger_markdown(matrix: TriggerMatrix) -> str:
    """A page for the docs: for each situation, what finds each base bug."""
    names = [bug.id for bug in BASE_BUGS]
    lines = [
        TITLE.format(total=total(matrix)),
        f"| situation | kind | {' | '.join(names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    for trigger, rows in matrix.by_trigger.items():
        found = {row.bug: found_by(row) for row in rows}
        cells = [found.get(name, "").replace("strata/", "") for name in names]
        lines.append(f"| `{trigger}` | {KINDS[trigger]} | {' | '.join(cells)} |")
    missed = [f"`{bug}` at `{trigger}`" for trigger, bug in matrix.missed]
    return "\n".join([*lines, "", f"Missed: {', '.join(missed) or 'none'}."])


TITLE = """# Situations

A bug may act in one situation alone: at one batch size, for one kind of row, when something is not
passed. Each situation below was met by a verifier that is right everywhere else, with each of
these bugs; the cell is the first check of a default run that fails it, a stratum where nothing
else is said. Written by `specref zoo --triggers --markdown docs/triggers.md`. {total}.
"""
