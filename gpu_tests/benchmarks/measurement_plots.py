"""The figures of measurements on trained models."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_tests.benchmarks.companion_speed import (
    BATCHES,
    FREE,
    PREDICTABLE,
    PUBLISHED,
    REJECTING,
    SHOWN,
    by_scheduler,
    fixed_lookaheads,
)
from gpu_tests.benchmarks.companion_traces import Traces
from specref.report.palette import BLACK, BLUE, GREEN, VERMILLION
from specref.report.speed_plot import load_matplotlib

if TYPE_CHECKING:
    from gpu_tests.benchmarks.companions import Measured

LINES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        PUBLISHED: ("--", VERMILLION),
        REJECTING: ("-", GREEN),
        PREDICTABLE: ("-", BLUE),
    }
)


def plot_tokens_per_call(rates: Mapping[str, Mapping[tuple[int, int], float]], file: Path) -> None:
    """Heat maps over k and w, one for each way to draw texts, on one scale."""
    figure = load_matplotlib().Figure(figsize=(8, 3.6), layout="constrained")
    panels = figure.subplots(1, len(rates), squeeze=False)[0]
    most = max(max(values.values()) for values in rates.values())
    for axes, (name, values) in zip(panels, rates.items(), strict=True):
        image = _heat_map(axes, values, most)
        axes.set_title(f"{name} text")
    figure.colorbar(image, ax=panels, label="tokens per call, mixed strategy")
    figure.savefig(file, dpi=150)


def _heat_map(axes: Any, rates: Mapping[tuple[int, int], float], most: float) -> Any:
    drafts, lookaheads = (sorted({at[axis] for at in rates}) for axis in (0, 1))
    values = np.array([[rates[k, w] for w in lookaheads] for k in drafts])
    image = axes.imshow(values, cmap="viridis", vmin=1, vmax=most, origin="lower")
    axes.set_xticks(range(len(lookaheads)), lookaheads)
    axes.set_yticks(range(len(drafts)), drafts)
    axes.set(xlabel="w, tokens of a draft", ylabel="k, drafts")
    for (row, column), value in np.ndenumerate(values):
        colour = BLACK if value > (1 + most) / 2 else "white"
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
    return image


def plot_companions(found: "Measured", file: Path) -> None:
    """Acceptance against similarity over places; goodput over the best fixed lookahead."""
    figure = load_matplotlib().Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_places(left, found.traces)
    _draw_goodput(right, found)
    figure.savefig(file, dpi=150)


def _draw_places(axes: Any, traces: Traces) -> None:
    similarity, overlap = traces.similarity[:, 0], traces.overlap[:, 0]
    axes.plot(similarity, overlap, ".", markersize=2, alpha=0.4, color=BLUE)
    parts = np.array_split(np.argsort(similarity), min(10, len(similarity)))
    means = np.array([[values[part].mean() for values in (similarity, overlap)] for part in parts])
    axes.plot(*means.T, "o-", color=VERMILLION, label="means of tenths")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="S = sum min(q, c)", ylabel="sum min(p, q)")
    axes.legend(frameon=False, loc="upper left")


def _draw_goodput(axes: Any, found: "Measured") -> None:
    runs = by_scheduler(found.runs, FREE)
    fixed = [[run.report.goodput for run in runs[label]] for label in fixed_lookaheads(runs)]
    best = np.max(fixed, axis=0)
    for label in SHOWN:
        style, colour = LINES[label]
        ratio = np.array([run.report.goodput for run in runs[label]]) / best
        lossy = " (lossy)" if label == PUBLISHED else ""
        axes.plot(BATCHES, ratio, style, marker="o", color=colour, label=label + lossy)
    axes.axhline(1, color=BLACK, linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(BATCHES, BATCHES)
    axes.set(xlabel="batch", ylabel="goodput over the best fixed lookahead", title=FREE)
    axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
    axes.legend(frameon=False, fontsize=8, loc="lower left")
