"""``specref plan speed``: which lookahead, and what it gains, as a table, a record and a plot.

The plot needs matplotlib: the optional extra `report`.
"""

import importlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import click
from rich.console import Group, RenderableType
from rich.text import Text

from specref.cli.group import HOLDS, leave, show
from specref.cli.options import json_option
from specref.contrib.speed.speedup import (
    break_even_acceptance,
    expected_block_length,
    is_faster,
    operations_increase,
    optimal_lookahead,
    walltime_improvement,
)
from specref.distributions import Probability
from specref.optional import PARTS
from specref.report.forms import FRACTION, WHOLE, YES, Reports, form_of, listed, record, said
from specref.report.layout import Column, Prose, Table
from specref.report.machine import as_json, check_destination, write_json
from specref.report.palette import BLACK, BLUE, GREY, GRID, VERMILLION
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
    )
}


SPEED, TOKENS, OPERATIONS = BLUE, GREY, VERMILLION


def load_matplotlib() -> Any:
    """Matplotlib's module of figures.

    * raises `ImportError`: It is not installed.
    """
    try:
        return importlib.import_module("matplotlib.figure")
    except ImportError:
        raise ImportError(
            f"--plot needs matplotlib, which is not installed: {PARTS['report'].remedy}"
        ) from None


def draw_speed_plan(plan: SpeedPlan, file: str) -> None:
    """Speedup and operations against the lookahead, as an image of the file's type.

    * raises `ImportError`: Matplotlib is not installed.
    * raises `ValueError`: It cannot write this type of file.
    """
    figure = load_matplotlib().Figure(figsize=(7, 5.6), layout="constrained")
    speed, operations = figure.subplots(2, 1, sharex=True, height_ratios=[2.4, 1])
    _draw_speed(speed, plan)
    _draw_operations(operations, plan)
    for axes in (speed, operations):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.margins(x=0.03)
    operations.xaxis.get_major_locator().set_params(integer=True)
    operations.set_xlabel("lookahead (drafts per target pass)")
    figure.savefig(file, dpi=150)


def _draw_speed(axes: Any, plan: SpeedPlan) -> None:
    lookaheads = [row.lookahead for row in plan.rows]
    speedups = [row.speedup for row in plan.rows]
    tokens = [row.expected_tokens for row in plan.rows]
    cost = float(plan.cost)
    axes.plot(lookaheads, tokens, "--", color=TOKENS, label="cost 0: tokens per target pass")
    axes.plot(lookaheads, speedups, "o-", color=SPEED, markersize=4, label=f"cost {cost:g}")
    axes.axhline(1, color=BLACK, linewidth=1)
    axes.text(1.01, 1, "no drafts", transform=axes.get_yaxis_transform(), va="center")
    _label_ceiling(axes, plan)
    best = plan.rows[plan.best_lookahead]
    axes.vlines(best.lookahead, 0, best.speedup, color=SPEED, linewidth=1, linestyle=":")
    axes.plot(best.lookahead, best.speedup, "o", color=SPEED, markersize=11, fillstyle="none")
    late = plan.best_lookahead > len(plan.rows) / 2
    text = f"best: lookahead {best.lookahead}, {best.speedup:.2f}x"
    place = ((-5, 6), "right") if late else ((5, 6), "left")
    _label(axes, best.lookahead, 0, text, *place)
    axes.set_ylim(0, 1.12 * max(tokens))
    axes.set_ylabel("times as fast as no drafts")
    rates = ", ".join(f"{float(rate):g}" for rate in plan.acceptance)
    axes.set_title(f"Speculative decoding at acceptance {rates}", loc="left", pad=26)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2, borderpad=0)


def _label_ceiling(axes: Any, plan: SpeedPlan) -> None:
    """Draw 1 / (1 - a), which no number of free drafts reaches."""
    rate, *more = plan.acceptance
    most = plan.rows[-1].expected_tokens
    if more or 1.1 * most * (1 - float(rate)) < 1:
        return
    ceiling = 1 / (1 - float(rate))
    axes.axhline(ceiling, color=TOKENS, linewidth=0.8, linestyle=":")
    _label(axes, 0, ceiling, f"1 / (1 - acceptance) = {ceiling:.2f}", (0, 4), "left")


def _draw_operations(axes: Any, plan: SpeedPlan) -> None:
    operations = [row.operations for row in plan.rows]
    axes.plot(range(len(operations)), operations, "s-", color=OPERATIONS, markersize=3)
    best = plan.rows[plan.best_lookahead]
    axes.plot(best.lookahead, best.operations, "s", color=OPERATIONS, markersize=10, mfc="none")
    if best.lookahead:
        text = f"{best.operations:.2f}x"
        _label(axes, best.lookahead, best.operations, text, (0, 8))
    axes.axhline(1, color=BLACK, linewidth=1)
    axes.set_ylim(0, 1.2 * max(operations))
    axes.set_ylabel("operations,\ntimes as many")


def _label(
    axes: Any, x: float, y: float, text: str, shift: tuple[float, float], align: str = "center"
) -> None:
    axes.annotate(text, (x, y), shift, textcoords="offset points", ha=align, fontsize=9)


LOOKAHEAD_MAX = 16
LARGEST = 200


@click.command(
    "speed",
    short_help="How much faster is decoding with 1, 2, … drafts, and which lookahead is best?",
)
@click.option(
    "--acceptance",
    required=True,
    metavar="A[,A…]",
    help="Of a draft: one number for all, or one for each position given the earlier ones.",
)
@click.option(
    "--cost", required=True, metavar="C", help="The time of a draft over that of a target pass."
)
@click.option(
    "--operations", metavar="C", help="The same for arithmetic operations; by default the cost."
)
@click.option(
    "--lookahead-max", type=int, help=f"By default {LOOKAHEAD_MAX}, or the positions if fewer."
)
@click.option("--plot", metavar="FILE.png", help="Draw it; needs matplotlib.")
@json_option
def plan_speed_command(
    acceptance: str,
    cost: str,
    operations: str | None,
    lookahead_max: int | None,
    plot: str | None,
    json_file: str | None,
) -> NoReturn:
    """How much faster is decoding with 1, 2, … drafts, and which lookahead is best?

    Numbers are decimals or fractions, and the arithmetic is exact. Takes a second.

    \b
    Examples:
      specref plan speed --acceptance 0.7 --cost 0.05
      specref plan speed --acceptance 0.85,0.7,0.5 --cost 1/20 --json -
      specref plan speed --acceptance 0.7 --cost 0.05 --plot speed.png
    """
    if plot:
        load_matplotlib()
        check_destination(plot)
    rates = [_number(text, "acceptance") for text in acceptance.split(",")]
    ratio = _number(cost, "cost")
    plan = speed_plan(
        rates[0] if len(rates) == 1 else rates,
        ratio,
        ratio if operations is None else _number(operations, "operations"),
        _limit(lookahead_max, len(rates)),
    )
    if plot:
        draw_speed_plan(plan, plot)
        click.echo(f"wrote {plot}", err=True)
    show(speed_table(plan), json_file)
    if json_file:
        write_json(json_file, as_json(plan))
    leave(HOLDS)


def _limit(lookahead_max: int | None, positions: int) -> int:
    if lookahead_max is None:
        return LOOKAHEAD_MAX if positions == 1 else min(LOOKAHEAD_MAX, positions)
    if not 0 <= lookahead_max <= LARGEST:
        raise ValueError(
            f"lookahead_max = {lookahead_max}: expected an integer from 0 to {LARGEST}"
        )
    return lookahead_max


def _number(text: str, name: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name} = {text!r}: expected a number such as 0.05 or 1/20") from None
