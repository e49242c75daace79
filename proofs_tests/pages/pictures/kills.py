"""The kill matrix on record as a heat map: every mutant, and the stages that fail it."""

from itertools import groupby
from typing import NamedTuple, get_args

from proofs_tests.pages import measured
from proofs_tests.pages.pictures.svg import Drawing
from specref.conformance.status import Stage
from specref.contrib.selftest.kill_matrix import STAGES, Matrix
from specref.contrib.selftest.kills_report import SHORT
from specref.zoo import entry as zoo

LEFT, TOP, CELL, LINE, GAP = 140, 110, 52, 3, 5


class Killed(NamedTuple):
    """A mutant: where it departs from the rule, and the stages that fail it."""

    kind: str
    stages: frozenset[str]

    def colour(self, stage: Stage) -> str:
        """Of its cell."""
        if stage not in self.stages:
            return "panel"
        return "first" if stage == next(s for s in STAGES if s in self.stages) else "both"


def mutants(matrix: Matrix) -> list[Killed]:
    """The mutants of a kill matrix; controls are left out."""
    return [
        Killed(row.entry.stage, frozenset(check.split("/")[0] for check in row.killers))
        for row in matrix.rows
        if not row.entry.lossless
    ]


def kills() -> Drawing:
    """A line a mutant, a column a stage; the first stage that fails it in another colour."""
    page = mutants(measured.matrix())
    killed = sum(bool(one.stages) for one in page)
    kinds = [kind for kind in get_args(zoo.Stage) if any(one.kind == kind for one in page)]
    drawing = Drawing(
        measured.said_of_heat_map(len(page), killed),
        height=TOP + LINE * len(page) + GAP * len(kinds) + 62,
    )
    drawing.text(
        20, 32, f"{len(page)} planted bugs, and the stages of checks they fail", bold=True
    )
    drawing.key(20, 62, "first", "first stage it fails")
    drawing.key(200, 62, "both", "fails, too")
    drawing.key(316, 62, "panel", "passes, or is not asked")
    for stage in STAGES:
        _column_text(drawing, stage, TOP - 12, SHORT.get(stage, str(stage)), "muted")
    y = TOP
    for kind in kinds:
        of = sorted(
            (one for one in page if one.kind == kind),
            key=lambda one: [stage not in one.stages for stage in STAGES],
        )
        label = f"{kind} {len(of)}"
        drawing.text(LEFT - 12, y + LINE * len(of) / 2 + 5, label, size=15, anchor="end")
        for stage in STAGES:
            top = y
            for colour, run in groupby(of, key=lambda one: one.colour(stage)):
                high = LINE * len(list(run))
                drawing.rect(_left(stage), top, CELL, high, colour)
                top += high
        y += LINE * len(of) + GAP
    for told, colours, place in (("fail", {"first", "both"}, 22), ("fail first", {"first"}, 44)):
        drawing.text(LEFT - 12, y + place, told, "muted", size=15, anchor="end")
        for stage in STAGES:
            count = sum(one.colour(stage) in colours for one in page)
            _column_text(drawing, stage, y + place, str(count), "ink")
    return drawing


def _left(stage: Stage) -> float:
    return LEFT + (CELL + 8) * STAGES.index(stage)


def _column_text(drawing: Drawing, stage: Stage, y: float, text: str, fill: str) -> None:
    drawing.text(_left(stage) + CELL / 2, y, text, fill, size=15, anchor="middle")
