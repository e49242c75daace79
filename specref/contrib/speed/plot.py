"""Plots of a lookahead plan. Needs matplotlib: the optional extra `report`."""

import importlib
from typing import Any

from specref.contrib.speed.report import SpeedPlan
from specref.optional import PARTS
from specref.report.palette import BLACK, BLUE, GREY, GRID, VERMILLION

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
