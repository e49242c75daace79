"""The matrix of triggers as a document and as a record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from specref.contrib.selftest.trigger_matrix import ALL, WANTED, TriggerMatrix, TriggerRow, bugs_of
from specref.report.document import Document, Heading, Kind, Part, bullets
from specref.report.forms import Ids
from specref.report.layout import Column, Prose, Table

KINDS = {trigger.id: trigger.kind for one in ALL.values() for trigger in one.triggers}
MISSED = "missed"


def triggers_document(matrix: TriggerMatrix) -> Document:
    """What finds each bug in each situation; on pages, how much of each contract."""
    good = matrix.share >= WANTED
    told = Prose(total(matrix), "bold green" if good else "bold red")
    headline = "Enough of them are found" if good else "Too few of them are found"
    parts: list[Part] = [trigger_rows(matrix), "", told]
    kind: Kind = "good" if good else "bad"
    more = [Prose(ABOUT), *_by_contract(matrix)]
    return Document("specref zoo --triggers", kind, headline, parts, more)


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


@dataclass(frozen=True)
class BugRecord:
    """What finds a bug that acts in one situation."""

    trigger: Annotated[str, "The situation in which the bug acts."]
    kind: str
    bug: str
    killers: Annotated[Ids, "Situations that fail it."]
    elsewhere: Annotated[str | None, "The check that fails it, where no situation does."]


@dataclass(frozen=True)
class TriggersRecord:
    """What ``specref zoo --triggers`` writes as JSON."""

    seed: int
    share: Annotated[float, "Of the bugs that were found."]
    missed: Sequence[Ids]
    rows: Sequence[BugRecord]


def triggers_record(matrix: TriggerMatrix) -> TriggersRecord:
    """The matrix with a record for each situation and bug."""
    rows = [
        BugRecord(row.trigger, KINDS[row.trigger], row.bug, row.killers, row.elsewhere)
        for row in matrix.rows
    ]
    return TriggersRecord(matrix.seed, matrix.share, matrix.missed, rows)


def _by_contract(matrix: TriggerMatrix) -> list[Part]:
    """Of each contract how many are found, its situations by kind, and what is missed."""
    parts: list[Part] = []
    for contract, known in ALL.items():
        rows = tuple(row for row in matrix.rows if bugs_of(row.trigger) is known)
        if not rows:
            continue
        part = TriggerMatrix(rows, matrix.seed)
        kinds: dict[str, list[str]] = {}
        for trigger in part.by_trigger:
            kinds.setdefault(KINDS[trigger], []).append(f"`{trigger}`")
        stages = " and ".join([", ".join(known.elsewhere[:-1]), known.elsewhere[-1]])
        told = f"{total(part)}. What no situation fails is put to the stages {stages}."
        missed = ", ".join(f"`{bug}` at `{trigger}`" for trigger, bug in part.missed)
        parts += [
            *(Heading(f"Contract {contract}"), Prose(told)),
            *bullets([f"{kind}: {', '.join(ids)}" for kind, ids in kinds.items()]),
            Prose(f"Missed: {missed or 'none'}."),
        ]
    return parts


ABOUT = (
    "A bug may act in one situation alone: at one batch size, for one kind of row, when something "
    "is not passed. Each situation was met by an implementation that is right everywhere else, "
    "with each of these bugs. It is found by the first situation that fails it or, where none "
    "does, "
    "by the first of the other checks that are named below."
)
