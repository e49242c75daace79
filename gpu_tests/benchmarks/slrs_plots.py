"""The figures of docs/slrs.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from gpu_tests.benchmarks.slrs_acceptance import SLEM, SLRS, STANDARD, TLI, UNION, WARM
from gpu_tests.benchmarks.slrs_generation import by_bounds
from gpu_tests.benchmarks.slrs_growth import BYTES
from gpu_tests.benchmarks.slrs_tables import middle
from specref.report.palette import BLACK, BLUE, GREEN, GREY, GRID, PALE, PURPLE, SKY, VERMILLION
from specref.report.speed_plot import load_matplotlib

Row: TypeAlias = dict[str, Any]
LINES: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        SLRS: ("SLRS", BLUE, "-", "o"),
        TLI: ("TLI", VERMILLION, "-", "s"),
        UNION: ("union", PURPLE, "--", "^"),
        SLEM: ("SLEM", GREEN, "-", "D"),
        STANDARD: ("standard", GREY, ":", "x"),
    }
)
LONGEST, FEWEST = 32, 30


def plot_growth(rows: Sequence[Row], file: Path) -> None:
    """Decompositions by length: medians by drafter; quartiles and maxima of the target's own."""
    targets = [*dict.fromkeys(row["target"] for row in rows)]
    figure = load_matplotlib().Figure(figsize=(3.4 * len(targets), 3.9), layout="constrained")
    panels = figure.subplots(1, len(targets), sharex=True, sharey=True, squeeze=False)
    for axes, target in zip(panels[0], targets, strict=True):
        of_target = [row for row in rows if row["target"] == target and row["length"] <= LONGEST]
        _draw_growth(axes, of_target, target)
        _frame(axes)
        axes.set(title=f"tokens of {target}", xlabel="length, bytes", xlim=(0, LONGEST + 1))
    panels[0][0].set_ylabel("decompositions of a token")
    _legend(figure, panels, 4)
    figure.savefig(file, dpi=150)


def _draw_growth(axes: Any, rows: Sequence[Row], target: str) -> None:
    drafters = [*dict.fromkeys(row["drafter"] for row in rows)]
    colours = dict(zip(drafters, (BLUE, VERMILLION, GREEN), strict=False)) | {BYTES: GREY}
    styles = dict(zip(drafters, ("-", (0, (5, 3)), (0, (1.5, 1.5))), strict=False)) | {BYTES: "-"}
    for drafter in drafters:
        of = [row for row in rows if row["drafter"] == drafter and row["tokens"] >= FEWEST]
        looks = {"color": colours[drafter], "ls": styles[drafter], "label": f"by {drafter}"}
        axes.plot(*_figures(of, "median"), lw=1.8, **looks)
    lengths = [row["length"] for row in of]
    axes.plot(lengths, lengths, "--", color=GREY, lw=1.2, label="forwards by bytes")
    own = [row for row in rows if row["drafter"] == target]
    usual = [row for row in own if row["tokens"] >= FEWEST]
    low, high = (_figures(usual, name)[1] for name in ("q25", "q75"))
    looks = {"color": PALE, "alpha": 0.35, "lw": 0, "label": "quartiles, by itself"}
    axes.fill_between([row["length"] for row in usual], low, high, **looks)
    axes.plot(*_figures(own, "max"), ":", color=BLACK, lw=1, label="most, by itself")
    axes.set_yscale("log", base=10)


def _figures(rows: Sequence[Row], name: str) -> tuple[list[int], list[int]]:
    """Lengths, and a quantile of decompositions."""
    return [row["length"] for row in rows], [row["decompositions"][name] for row in rows]


def plot_bounds(rows: Sequence[Row], generation: Sequence[Row], file: Path) -> None:
    """What bounds save: toy pairs by lookahead, words by their length, trained pairs."""
    figure = load_matplotlib().Figure(figsize=(12, 3.6), layout="constrained")
    left, middle_axes, right = figure.subplots(1, 3)
    _draw_toys(left, [row for row in rows if row["pairs"] == "toys"])
    _draw_words(middle_axes, [row for row in rows if row["pairs"] == "words"])
    _draw_trained(right, by_bounds(generation))
    figure.savefig(file, dpi=150)


def _draw_trained(axes: Any, found: Sequence[Sequence[Row]]) -> None:
    places = range(len(found))
    whole = [lazy[0]["whole_contexts_per_token"] for lazy in found]
    axes.plot(whole, places, "s", color=BLUE, fillstyle="none", label="in full")
    each = [(row["contexts_per_token"], place) for place in places for row in found[place]]
    axes.plot(*zip(*each, strict=True), "o", color=BLUE, label="by bounds, all widths")
    axes.set_xscale("log", base=10)
    axes.set_yticks(places, [lazy[0]["pair"].replace(" ", "\n", 1) for lazy in found])
    axes.set(xlim=1, ylim=(len(found) - 0.5, -0.5), xlabel="paths read for each token")
    axes.set_title("trained pairs, temperature 1")
    _frame(axes)
    axes.legend(frameon=False, fontsize=8)


def _draw_toys(axes: Any, rows: Sequence[Row]) -> None:
    for rule, colour in (("fixed", BLUE), ("until_determined", VERMILLION)):
        of = [row for row in rows if (row["rule"], row["verified"]) == (rule, "all tokens")]
        lookaheads = [row["lookahead"] for row in of]
        for style, name, label in (("s--", "full", "in full"), ("o-", "lazy", "by bounds")):
            values, named = [row[name] for row in of], f"{rule.replace('_', ' ')}, {label}"
            axes.plot(lookaheads, values, style, color=colour, label=named)
    axes.set(
        xlabel="lookahead", ylabel="expected forwards, sum of pairs", title="toy pairs, exact"
    )
    axes.set_xticks(sorted({row["lookahead"] for row in rows}))
    axes.set_ylim(0)
    _frame(axes)
    axes.legend(frameon=False, fontsize=8)


def _draw_words(axes: Any, rows: Sequence[Row]) -> None:
    lengths = [row["lookahead"] for row in rows]
    axes.plot(lengths, [row["full"] for row in rows], "s--", color=BLUE, label="in full")
    lazy, errors = ([row[name] for row in rows] for name in ("lazy", "error"))
    axes.errorbar(lengths, lazy, yerr=errors, fmt="o-", color=BLUE, label="by bounds")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="letters of the longest word", ylabel="forwards of a draft")
    axes.set_title("targets with all words, sampled")
    _frame(axes)
    axes.legend(frameon=False, fontsize=8)


def plot_temperature(rows: Sequence[Row], file: Path) -> None:
    """Acceptance over temperature, a panel for each pair; errors of two standard errors."""
    columns = 3
    lines = -(-len(rows) // columns)
    figure = load_matplotlib().Figure(figsize=(10, 3.1 * lines + 0.4), layout="constrained")
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axes, row in zip(panels.flat, rows, strict=False):
        _draw_temperature(axes, row["acceptance"])
        axes.set_title(f"{row['target']} + {row['drafter']}", fontsize=10)
        axes.text(
            0.02,
            0.97,
            f"{row['shared']} of {row['target_tokens']} tokens shared",
            transform=axes.transAxes,
            fontsize=8,
            color=GREY,
            va="top",
        )
        _frame(axes)
    for axes in panels[-1]:
        axes.set_xlabel("temperature")
    for axes in panels[:, 0]:
        axes.set_ylabel("acceptance of a draft")
    _legend(figure, panels, len(LINES) + 1)
    figure.savefig(file, dpi=150)


def _draw_temperature(axes: Any, rows: Sequence[Row]) -> None:
    for method, (name, colour, style, marker) in LINES.items():
        of = [row for row in rows if row["method"] == method and _same(row)]
        if of:
            looks = {"color": colour, "linestyle": style, "marker": marker, "markersize": 4}
            errors = [2 * row["error"] + (row["high"] - row["low"]) / 2 for row in of]
            axes.errorbar(*_middles(of), yerr=errors, label=name, elinewidth=0.8, **looks)
    warm = [r for r in rows if r["method"] == SLRS and r["drafter_temperature"] == WARM]
    axes.plot(*_middles(warm), "--", color=SKY, lw=1.4, label="SLRS, drafter at 1")
    axes.set(ylim=(0, 0.9), xticks=[0, 0.5, 1, 1.5], yticks=[0, 0.2, 0.4, 0.6, 0.8])


def _middles(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Temperatures, and acceptance."""
    return [row["temperature"] for row in rows], [middle(row) for row in rows]


def _same(row: Row) -> bool:
    return bool(row["temperature"] == row["drafter_temperature"])


def _legend(figure: Any, panels: Any, columns: int) -> None:
    """One for all panels; what is said of a line comes last."""
    found: dict[str, Any] = {}
    for axes in panels.flat:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    names = sorted(found, key=lambda name: ("drafter at" in name, "by itself" in name))
    handles = [found[name] for name in names]
    figure.legend(handles, names, loc="outside upper center", ncols=columns, frameon=False)


def _frame(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
