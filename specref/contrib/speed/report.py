"""The gain of speculative decoding for each lookahead, as a table and as a record."""

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from specref.contrib.speed.speedup import (
    break_even_acceptance,
    expected_block_length,
    is_faster,
    operations_increase,
    optimal_lookahead,
    walltime_improvement,
)
from specref.distributions import Probability
from specref.report.forms import (
    FRACTION,
    WHOLE,
    YES,
    Reports,
    form_of,
    listed,
    record,
    said,
)
from specref.report.layout import Column, Prose, Table
from specref.theory.goodput import Acceptance


@dataclass(frozen=True)
class SpeedRow:
    """One lookahead.

    Attributes
    ----------
    lookahead : int
    expected_tokens, speedup, operations : float
        Tokens of an iteration, and its time and operations per token against no drafts.
    break_even : float or None
        The constant acceptance above which it is faster than no drafts; None if there is none.
    """

    lookahead: int
    expected_tokens: float
    speedup: float
    operations: float
    break_even: float | None


@dataclass(frozen=True)
class SpeedPlan:
    """All lookaheads up to a limit, and the best of them."""

    acceptance: tuple[Probability, ...]
    cost: Probability
    operations_ratio: Probability
    best_lookahead: int
    is_faster: bool
    rows: tuple[SpeedRow, ...]


def speed_plan(
    acceptance: Acceptance, cost: Probability, operations_ratio: Probability, lookahead_max: int
) -> SpeedPlan:
    """The plan: exact arithmetic if the arguments are exact; rows are rounded at the end.

    * raises `ValueError`: As `speed.speedup.walltime_improvement` and `operations_increase`.
    """

    def row(lookahead: int) -> SpeedRow:
        return SpeedRow(
            lookahead,
            float(expected_block_length(acceptance, lookahead)),
            float(walltime_improvement(acceptance, lookahead, cost)),
            float(operations_increase(acceptance, lookahead, operations_ratio)),
            break_even_acceptance(lookahead, cost) if lookahead and cost < 1 else None,
        )

    best = optimal_lookahead(acceptance, cost, lookahead_max)
    rates = (acceptance,) if isinstance(acceptance, Probability) else tuple(acceptance)
    rows = tuple(row(lookahead) for lookahead in range(lookahead_max + 1))
    return SpeedPlan(rates, cost, operations_ratio, best, is_faster(acceptance, cost), rows)


def speed_table(plan: SpeedPlan) -> RenderableType:
    """The rows, with a line after which drafting no longer pays, and notes."""
    titles = ("lookahead", "tokens", "speedup", "operations", "break-even")
    columns = [*(Column(title, right=True) for title in titles), Column("")]
    pays = [row.lookahead for row in plan.rows if row.speedup > 1]
    last = max(pays, default=0)
    rows = [_cells(row, row.lookahead == plan.best_lookahead) for row in plan.rows]
    acceptance = ", ".join(f"{float(rate):g}" for rate in plan.acceptance)
    return Group(
        Prose(f"acceptance {acceptance}, cost {float(plan.cost):g}"),
        Table(columns, rows, dashed_after=last + 1 if last < len(rows) - 1 else None),
        *(Prose(line, "dim") for line in _notes(plan, last)),
    )


def _cells(row: SpeedRow, best: bool) -> list[Text]:
    cells = [
        str(row.lookahead),
        f"{row.expected_tokens:.3f}",
        f"{row.speedup:.3f}x",
        f"{row.operations:.3f}x",
        "" if row.break_even is None else f"{row.break_even:.3f}",
        "<- best" if best else "",
    ]
    return [Text(cell, "bold" if best else "") for cell in cells]


def _notes(plan: SpeedPlan, last: int) -> list[str]:
    first, cost = float(plan.acceptance[0]), float(plan.cost)
    sign = ">" if plan.is_faster else "<="
    verdict = "some lookahead is" if plan.is_faster else "no lookahead is"
    notes = [f"{verdict} faster than no drafts: acceptance {first:g} {sign} cost {cost:g}"]
    most = len(plan.rows) - 1
    if last < most:
        notes.append(f"the line: no lookahead from {last + 1} on is faster than no drafts")
    constant = len(plan.acceptance) == 1
    if plan.best_lookahead == most and plan.is_faster and constant:
        notes.append("the best is the last: a greater --lookahead-max may have a better one")
    return [
        *notes,
        "break-even: the acceptance above which this lookahead is faster than no drafts",
        f"assumed: {'acceptances are independent; ' * constant}a pass over more tokens takes no "
        "longer",
        "Leviathan et al. 2023, Equation 1, Theorems 3.8 and 3.11, Corollary 3.9",
    ]


REPORTS: Reports = {
    "plan-speed": (
        "specref plan speed",
        record(
            acceptance=said(
                "Of a draft: one for all positions, or one for each.", listed(FRACTION)
            ),
            cost=said("The time of a draft over that of a target pass.", FRACTION),
            operations_ratio=said("The same for arithmetic operations.", FRACTION),
            best_lookahead=WHOLE,
            is_faster=said("Whether any lookahead is faster than none.", YES),
            rows=listed(form_of(SpeedRow)),
        ),
    ),
}
