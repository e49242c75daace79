"""The kill matrix as a document and as a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from rich.text import Text

from specref.conformance.status import Stage
from specref.contrib.selftest.kill_matrix import STAGES, Matrix, Row
from specref.contrib.selftest.trigger_matrix import TriggersRecord
from specref.report.document import Document, Heading, Kind, Part, bullets
from specref.report.forms import Ids, Reports, Whole, form_of
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
LEGEND = (
    "mutant or control: a mutant is a planted bug, and lossy; a control looks like a bug, is "
    "lossless, and must pass.",
    "stage: where it departs from its rule, such as accept or residual.",
    "TV: the largest exact total variation from the target on the pairs of models that the checks "
    "use; empty if it is no step, loop or batch whose tokens could be off.",
    "{stages}: stages of specref check. 2/9 means that 2 of its 9 checks for this rule failed; "
    "an empty cell, that no check of the stage applies.",
)
ABOUT = (
    "Every planted bug and every lossless look-alike, under every check that applies to it:",
    "id: its name, for `specref zoo ID`.",
    "rule: the rule that it departs from; of a figure that is reported wrongly, the figure.",
    "stage: where it departs; control marks a look-alike, which is lossless.",
    "formula: what it does in place of its rule. p is the target's distribution, q the draft "
    "model's, x the draft token, i its position, and (v)+ is max(v, 0).",
    "TV: the largest exact total variation on the pairs of models that the checks use; on other "
    "pairs it may be larger. It is of the completed block; of the first tokens for a decode loop; "
    "and of two requests together for a step of a batch. It is empty for wrong figures, for "
    "verifiers that break their contract, and for dependence between rows.",
    "killed by: the stages of `specref check`, or the checks, that fail it; passes: none does.",
    "seen in: public code or papers that have it.",
)


def kills_document(matrix: Matrix) -> Document:
    """How many checks of each stage fail each mutant and control; on pages, which, and why."""
    columns = [
        *(Column("mutant or control"), Column("stage"), Column("TV", right=True)),
        *(Column(SHORT.get(stage, str(stage)), right=True) for stage in STAGES),
    ]
    problems = matrix.problems
    parts: list[Part] = [
        Table(columns, [_stages_row(row) for row in matrix.rows]),
        "",
        *(Prose(line, "dim") for line in legend()),
        *(Prose(line, "dim") for line in missed(matrix) if matrix.whole),
        *(Prose(problem, "red") for problem in problems),
        Prose(summary(matrix), "bold red" if problems else "bold green"),
    ]
    more: list[Part] = [Heading("What each is"), *columns_said(), entries_table(matrix)]
    return Document("specref zoo", *headline(matrix), parts, more)


def legend() -> list[str]:
    """What each column of the matrix is."""
    names = [SHORT.get(stage, str(stage)) for stage in STAGES]
    short = "; ".join(f"{short} is {stage}" for stage, short in SHORT.items())
    return [line.format(stages=", ".join(names)) for line in LEGEND] + [f"{short}."]


def columns_said() -> list[Part]:
    """What each column of the table of entries is."""
    return [Prose(ABOUT[0]), *bullets(ABOUT[1:])]


def headline(matrix: Matrix) -> tuple[Kind, str]:
    """What is so of the mutants and controls that were run."""
    if matrix.problems:
        return "bad", f"{len(matrix.problems)} problems"
    if matrix.whole:
        return "good", "Every mutant is killed, every control passes, no check is idle"
    mutants, controls = matrix.counts["mutants"], matrix.counts["controls"]
    parts = []
    if mutants:
        many = f"each of these {mutants} mutants is killed"
        parts.append("the mutant is killed" if mutants == 1 else many)
    if controls:
        many = f"each of these {controls} controls passes"
        parts.append("the control passes" if controls == 1 else many)
    told = ", ".join(parts) or "nothing was run"
    return "good", told[0].upper() + told[1:]


def summary(matrix: Matrix) -> str:
    """How many are as they should be."""
    counts = matrix.counts
    return (
        f"{counts['killed']} of {counts['mutants']} mutants killed, {counts['passed']} of "
        f"{counts['controls']} controls passed, {len(matrix.idle)} idle checks; seed "
        f"{matrix.seed}, set to detect TV ≥ {matrix.detect_tv:g}"
    )


def missed(matrix: Matrix) -> list[str]:
    """What each fixture alone would miss, because its campaign passes it."""
    return [
        f"{name} alone would miss: {', '.join(ids) or 'none of them'}"
        for name, ids in matrix.missed.items()
    ]


def _stages_row(row: Row) -> list[Text]:
    style = "red" if row.problem else "dim" if row.entry.lossless else ""
    cells = [_fails(row, stage) for stage in STAGES]
    told = [row.entry.id, kind_of(row.entry), variation(row), *cells]
    return [Text(cell, style) for cell in told]


def entries_table(matrix: Matrix) -> Table:
    """What each entry is: its formula, its exact distance, what kills it, where it was seen."""
    columns = [Column("id"), Column("rule"), Column("stage"), Column("formula", folds=True)]
    columns += [
        Column("TV", right=True),
        *(Column(x, folds=True) for x in ("killed by", "seen in")),
    ]
    return Table(columns, [_entry_row(row) for row in matrix.rows])


def _entry_row(row: Row) -> list[str]:
    entry = row.entry
    killers = ", ".join(dict.fromkeys(family(id_) for id_ in row.killers)) or "passes"
    cites = ", ".join(f"[{cite}]({address(cite)})" for cite in entry.cites)
    told = kind_of(entry), entry.formula, variation(row), killers, cites
    return [f"`{entry.id}`", entry.rule, *told]


@dataclass(frozen=True)
class Counts:
    """How many there are, and how many are as they should be."""

    mutants: Whole
    killed: Whole
    controls: Whole
    passed: Whole


@dataclass(frozen=True)
class EntryRecord:
    """What checks say of a mutant or a control."""

    id: str
    rule: str
    stage: Annotated[str, "Where it departs from the rule."]
    lossless: Annotated[bool, "Whether it is a control."]
    formula: str
    cites: Annotated[Ids, "Where it was seen in public."]
    total_variation: Annotated[float | None, "The largest on the pairs of its rule."]
    killers: Annotated[Ids, "Checks that fail it."]
    survives: Annotated[Ids, "Checks that pass it."]


@dataclass(frozen=True)
class KillsRecord:
    """What ``specref zoo`` writes as JSON."""

    seed: int
    detect_tv: float
    counts: Counts
    problems: Annotated[Ids, "What is not as it should be."]
    idle: Annotated[Ids, "Checks that fail no mutant."]
    missed_by_fixture: Annotated[Mapping[str, Ids], "{fixture: mutants that its campaign passes}."]
    rows: Sequence[EntryRecord]


def kills_record(matrix: Matrix) -> KillsRecord:
    """The kill matrix with a record for each entry."""
    rows = [
        EntryRecord(
            row.entry.id,
            row.entry.rule,
            row.entry.stage,
            row.entry.lossless,
            row.entry.formula,
            row.entry.cites,
            row.variation,
            row.killers,
            sorted(row.asked - set(row.killers)),
        )
        for row in matrix.rows
    ]
    counts = Counts(**matrix.counts)
    told = matrix.problems, matrix.idle, matrix.missed
    return KillsRecord(matrix.seed, matrix.detect_tv, counts, *told, rows)


def family(id_: str) -> str:
    """A check as the page names it: by its stage, where one of these checks stands for all."""
    return id_.split("/")[0] if id_.split("/")[0] not in ("smoke", "boundary", "replay") else id_


def kind_of(entry: Entry) -> str:
    """Where an entry departs from its rule, and whether it is a control."""
    return f"{entry.stage}, control" if entry.lossless else entry.stage


def variation(row: Row) -> str:
    """The exact total variation of an entry, if it has one."""
    return "" if row.variation is None else f"{row.variation:.4f}"


def _fails(row: Row, stage: Stage) -> str:
    """How many checks of a stage an entry fails, of those that were put to it."""
    failed, asked = (
        sum(id_.startswith(f"{stage}/") for id_ in ids) for ids in (row.killers, row.asked)
    )
    return f"{failed}/{asked}" if asked else ""


REPORTS: Reports = {
    "zoo": ("specref zoo", form_of(KillsRecord)),
    "zoo-triggers": ("specref zoo --triggers", form_of(TriggersRecord)),
}
