"""Batched loops: strata of rows that differ in one thing after another, and rows by themselves."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from specref.conformance.checks.check import Check, failed, not_applicable, passed, sampled
from specref.conformance.checks.strata import campaign, outcome_of
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome, Status
from specref.conformance.strata.calls import hashed_pair, vocabulary_of
from specref.conformance.strata.campaign import Campaign
from specref.conformance.strata.laws import drawn_pool
from specref.conformance.strata.loops import (
    FIRST_ROW,
    LATER,
    LOOP_STRATA,
    PLACES,
    SETTINGS,
    Loops,
    when,
)
from specref.conformance.strata.shape import CallShape
from specref.conformance.strata.stratum import Stratum
from specref.contracts.fixtures import Fixture
from specref.contracts.functions import SEEDS, BatchCaller, GenerateBatchContract
from specref.contracts.timeout import within
from specref.vocabulary import Tokens

if TYPE_CHECKING:
    from specref.conformance.report import Report

WOULD_SHOW, SHOWN = 3.0, 0.5
"""Evidence, as a power of ten, that the first row had if it were wrong as others are, and what
it has at most where it is called right."""
CALLS = 24
"""Of each shape, where a stratum is lossy."""
SIZE, LENGTHS, BUDGET = 8, (3, 5, 3, 1, 6, 3), 24


def judged(stratum: Stratum[CallShape], judge: Judge) -> Outcome:
    """A sequential test in one situation; if it is lossy, more calls test the first row."""
    if stratum.way == SETTINGS and not BatchCaller(judge.implementation).settings:
        return not_applicable("takes neither temperature nor top_p")
    found = campaign(stratum, None, judge, judge.level)
    outcome = outcome_of([found], judge)
    if not found.lossy or max(shape.batch for shape in stratum.shapes) == 1:
        return outcome
    drawing = Loops(stratum, judge.subject, judge.rng(f"rows of {stratum.name}"))
    more = Campaign(stratum.shapes, drawing.pools, drawing.claims, PLACES)
    for shape in stratum.shapes:
        more.add(shape, drawing.ask(shape, CALLS, 0))
    evidence = more.found(judge.level).by_place
    others = sum(shape.batch - 1 for shape in stratum.shapes) / len(stratum.shapes)
    first_right = evidence[LATER] / others >= WOULD_SHOW and evidence[FIRST_ROW] <= SHOWN
    return replace(outcome, evidence={**outcome.evidence, "first_row_right": first_right})


def batch_order(judge: Judge) -> Outcome:
    """The text of a row is the same, under its seed, in another order and without other rows."""
    caller = BatchCaller(judge.implementation)
    if not caller.seeded:
        return not_applicable("takes one generator for all rows: rows are judged by distribution")
    rng = judge.rng("batch order")
    models = hashed_pair(drawn_pool(rng, SIZE, 42), vocabulary_of(SIZE, ends=True))
    fixture = Fixture("batch order", *models, ())
    contexts = [tuple(rng.integers(SIZE - 1, size=n).tolist()) for n in LENGTHS]
    seeds = rng.integers(SEEDS, size=len(LENGTHS)).tolist()

    def texts(rows: Sequence[int]) -> dict[int, Tokens]:
        given, own = [contexts[row] for row in rows], [seeds[row] for row in rows]
        ask = partial(caller, fixture, given, BUDGET, rng, seeds=own)
        return dict(zip(rows, within(judge.timeout, ask), strict=True))

    every = list(range(len(LENGTHS)))
    known, orders = texts(every), [every, every[::-1], every[3:], *([row] for row in every)]
    for rows in orders:
        for row, text in texts(rows).items():
            if text != known[row]:
                at = next(i for i in range(BUDGET) if text[i : i + 1] != known[row][i : i + 1])
                return failed(
                    f"the text of row {row}, under the same seed, is another in a batch of rows "
                    f"{rows} than in one of rows {every}, from token {at} on",
                    row=row,
                )
    return passed(f"{len(LENGTHS)} rows have the same texts in {len(orders)} batches")


def told(report: "Report") -> "Report":
    """A report of a batched loop, whose failures say when they come about."""
    strata = {one.id.partition("/")[2]: one for one in report.results}
    wrong, right = (
        [name for name in NAMES if name in strata and strata[name].status == status]
        for status in (Status.FAILED, Status.PASSED)
    )
    later = all(strata[name].evidence.get("first_row_right") for name in wrong)
    said = when(wrong, later)
    if not said:
        return report
    names = f" (right: {', '.join(right)})" * bool(right)
    split = {"text": f"{said}{names}", "wrong": wrong, "right": right}
    more: dict[str, Any] = {"when": said, "split": split}
    changed = (
        replace(one, evidence={**one.evidence, **more}) if one.status == Status.FAILED else one
        for one in report.results
    )
    return replace(report, results=tuple(changed))


NAMES = tuple(one.name for one in LOOP_STRATA)
OF = GenerateBatchContract
CHECKS = (
    Check("replay/batch-order", OF, batch_order, finding=Finding.CONTRACT),
    *(sampled(f"strata/{one.name}", OF, partial(judged, one), weight=0.5) for one in LOOP_STRATA),
)
