"""The matrix of triggers as a table, a record and a page of the docs."""

from rich.console import Group, RenderableType

from specref.contrib.selftest.trigger_matrix import WANTED, TriggerMatrix, TriggerRow, bugs_of
from specref.contrib.selftest.triggered import ALL, Bugs
from specref.report.layout import Column, Prose, Table

KINDS = {trigger.id: trigger.kind for one in ALL.values() for trigger in one.triggers}
MISSED = "missed"


def trigger_table(matrix: TriggerMatrix) -> RenderableType:
    """One row for each trigger and base bug: what finds it."""
    good = matrix.share >= WANTED
    told = Prose(total(matrix), "bold green" if good else "bold red")
    return Group(trigger_rows(matrix), "", told)


def trigger_rows(matrix: TriggerMatrix) -> Table:
    """What finds each bug in each situation."""
    columns = [Column("situation"), Column("bug"), Column("found by", folds=True)]
    return Table(columns, [(row.trigger, row.bug, found_by(row)) for row in matrix.rows])


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
    """The matrix as an object that JSON can hold."""
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
    """A page for the docs: for each contract and situation, what finds each bug."""
    parts = [TITLE.format(total=total(matrix))]
    for contract, known in ALL.items():
        rows = tuple(row for row in matrix.rows if bugs_of(row.trigger) is known)
        if rows:
            part = TriggerMatrix(rows, matrix.seed)
            stages = " and ".join([", ".join(known.elsewhere[:-1]), known.elsewhere[-1]])
            parts.append(SECTION.format(contract=contract, total=total(part), stages=stages))
            parts.append(_table(part, known))
    return "\n".join(parts).rstrip("\n")


def _table(matrix: TriggerMatrix, known: Bugs) -> str:
    names = [bug.id for bug in known.bugs]
    lines = [
        f"| situation | kind | {' | '.join(names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    own = [row for row in matrix.rows if row.bug not in names]
    for trigger, rows in matrix.by_trigger.items():
        if {row.bug for row in rows}.isdisjoint(names):
            continue
        found = {row.bug: found_by(row) for row in rows}
        cells = [found.get(name, "").replace("strata/", "") for name in names]
        lines.append(f"| `{trigger}` | {KINDS[trigger]} | {' | '.join(cells)} |")
    told = [f"`{row.bug}` at `{row.trigger}`: {found_by(row)}" for row in own]
    if told:
        lines += ["", f"Bugs of one situation: {'; '.join(told).replace('strata/', '')}."]
    missed = [f"`{bug}` at `{trigger}`" for trigger, bug in matrix.missed]
    return "\n".join([*lines, "", f"Missed: {', '.join(missed) or 'none'}.", ""])


TITLE = """# Situations

A bug may act in one situation alone: at one batch size, for one kind of row, when something is not
passed. Each situation below was met by an implementation that is right everywhere else, with each
of these bugs; the cell is the first stratum that fails it or, where
none does, the first of the other checks that are named below.
Written by `specref zoo --triggers --markdown docs/records/triggers.md`. {total}.
"""
SECTION = """## Contract {contract}

{total}. What no stratum fails is put to the stages {stages}.
"""
