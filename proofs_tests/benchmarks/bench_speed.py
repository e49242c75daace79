"""Schedulers compared on goodput, fairness and starvation; and how fast they are simulated.

Run: python -m proofs_tests.benchmarks.bench_speed [--trials N] [--plot FILE.png]
"""

import argparse
import time
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from specref.contrib.speed.budgets import FirstDecline, Priced, Scan, TopDrafts
from specref.contrib.speed.latency import staircase
from specref.contrib.speed.schedulers import Fixed, Oracle, Profile, Scheduler, StopAtConfidence
from specref.contrib.speed.simulation import SpeedReport, compare_schedulers
from specref.contrib.speed.traces import Classes, Source, Traces, constant
from specref.report.palette import BLUE, GREEN, PALE, VERMILLION
from specref.theory.goodput import allocation, best, first_decline, goodputs

BATCH, LOOKAHEAD, STEPS, WAVE, BASE = 8, 6, 100, 16, 2
EASY, HARD = 0.9, 0.5
CLASSES = Classes([0.5, 0.5], [[EASY] * LOOKAHEAD, [HARD] * LOOKAHEAD], persistence=0.95)
UNSEEN = Classes([0.5, 0.5], CLASSES.rates, 0.95, believed=[[(EASY + HARD) / 2] * LOOKAHEAD] * 2)
STAIRS = [float(t) for t in staircase(BATCH * (LOOKAHEAD + 1), WAVE, base=BASE)]
LINE = [BASE + n / WAVE for n in range(len(STAIRS))]
RATED = 4_000_000


def schedulers(price: float) -> dict[str, Scheduler]:
    return {
        "no drafts": Fixed(0),
        **{f"fixed {g}": Fixed(g) for g in (1, 3, 5)},
        "stop below 0.6": StopAtConfidence(0.6),
        "first decline": FirstDecline(),
        "first decline, in turns": FirstDecline(rotate=True),
        "24 likeliest": TopDrafts(drafts=24),
        "scan": Scan(),
        "priced": Priced(price=price),
        "oracle": Oracle(),
    }


def compared(source: Source, profile: Profile, trials: int) -> dict[str, SpeedReport]:
    """All schedulers, the priced one at the price that three short runs settle on."""
    options = {"batch": BATCH, "steps": STEPS}
    price = 0.0
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        priced = {"priced": Priced(price=price)}
        found = compare_schedulers(source, priced, profile, trials=200, rng=rng, **options)
        price = found["priced"].goodput
    rng = np.random.default_rng(4)
    return compare_schedulers(
        source, schedulers(price), profile, trials=trials, rng=rng, **options
    )


def print_schedulers(title: str, reports: Mapping[str, SpeedReport]) -> None:
    base = reports["no drafts"].goodput
    print(f"\n{title}")
    titles = ("goodput", "+-", "speedup", "tokens", "verified", "wasted", "Jain", "wait")
    print(f"{'scheduler':<24}" + "".join(f"{name:>10}" for name in titles))
    for name, report in reports.items():
        cells = (
            f"{report.goodput:.4f}",
            f"{report.standard_error:.4f}",
            f"{report.goodput / base:.3f}x",
            f"{report.tokens_per_iteration:.3f}",
            f"{report.verified_per_iteration:.3f}",
            f"{report.wasted:.0%}",
            f"{report.jain:.3f}",
            f"{report.longest_wait}",
        )
        print(f"{name:<24}" + "".join(f"{cell:>10}" for cell in cells))


def print_rates() -> None:
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, LOOKAHEAD + 1, 5000)
    sources = {
        "one class": constant(*[EASY] * LOOKAHEAD),
        "two classes": CLASSES,
        "trace, own beliefs": Traces(lengths, LOOKAHEAD, rng.random((5000, LOOKAHEAD))),
    }
    kinds = {
        "fixed": Fixed(3),
        "first decline": FirstDecline(),
        "scan": Scan(),
        "oracle": Oracle(),
    }
    print(f"\nmillion iterations per second of processor time, one core, lookahead {LOOKAHEAD}")
    print(f"{'source':<20}{'batch':>6}" + "".join(f"{name:>15}" for name in kinds))
    for name, source in sources.items():
        for batch in (1, BATCH):
            rates = [rate(source, scheduler, batch) for scheduler in kinds.values()]
            print(f"{name:<20}{batch:>6}" + "".join(f"{r / 1e6:>15.1f}" for r in rates))


def rate(source: Source, scheduler: Scheduler, batch: int) -> float:
    """Iterations per second, the best of two runs: others on this machine count less."""
    trials, times = RATED // (batch * STEPS), []
    for seed in (1, 2):
        rng, start = np.random.default_rng(seed), time.process_time()
        sizes = {"batch": batch, "steps": STEPS, "trials": trials}
        compare_schedulers(source, {"": scheduler}, Profile(STAIRS), rng=rng, **sizes)
        times.append(time.process_time() - start)
    return trials * batch * STEPS / min(times)


def exact_goodputs() -> tuple[list[list[Fraction]], tuple[float, ...]]:
    """Half the requests easy, half hard: the best goodput for each total number of drafts."""
    rates = [[Fraction(str(a))] * LOOKAHEAD for a in (EASY, HARD) for _ in range(BATCH // 2)]
    latencies = staircase(BATCH * (LOOKAHEAD + 1), WAVE, base=BASE)
    return rates, tuple(map(float, goodputs(rates, latencies)))


def draw(file: str) -> None:
    """Expected goodput of a pass against its drafts: where the first decline stops."""
    from matplotlib.figure import Figure

    rates, values = exact_goodputs()
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(values, "o-", color=BLUE, markersize=3, label="expected goodput of a pass")
    places = (
        (first_decline(values), "first decline", VERMILLION),
        (best(values), "best", GREEN),
    )
    for drafts, name, color in places:
        lengths = allocation(rates, drafts)
        text = f"{name}: {drafts} drafts, {values[drafts]:.2f}\n"
        text += f"easy {lengths[0]}, hard {lengths[-1]} each"
        axes.vlines(drafts, 0, values[drafts], color=color, linewidth=1, linestyle=":")
        axes.plot(drafts, values[drafts], "o", color=color, markersize=10, fillstyle="none")
        axes.annotate(text, (drafts, 0), (9, 6), textcoords="offset points")
    for edge in range(WAVE - BATCH, len(values), WAVE):
        axes.axvline(edge + 0.5, color=PALE, linewidth=1, zorder=0)
    axes.plot([], [], color=PALE, linewidth=1, label=f"a new wave of {WAVE} tokens")
    axes.set_xlabel(f"drafts verified in one pass over {BATCH} requests")
    axes.set_ylabel("tokens per unit of time")
    axes.set_ylim(0, 1.1 * max(values))
    axes.margins(x=0.02)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("Goodput on a staircase", loc="left", pad=24)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2, borderpad=0)
    figure.savefig(file, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--plot", metavar="FILE.png", help="needs matplotlib")
    options = parser.parse_args()
    print(
        f"batches of {BATCH}, {options.trials} trials of {STEPS} passes, lookahead <= {LOOKAHEAD}"
    )
    print(
        f"acceptance {EASY} or {HARD}, a request changes in 5 % of its steps; drafts cost nothing"
    )
    situations = {
        f"staircase: {BASE} + 1 for each {WAVE} tokens": (CLASSES, STAIRS),
        f"line: {BASE} + 1 / {WAVE} for each token": (CLASSES, LINE),
        "staircase, and the scheduler does not see which requests are easy": (UNSEEN, STAIRS),
    }
    for title, (source, latencies) in situations.items():
        print_schedulers(title, compared(source, Profile(latencies), options.trials))
    print_rates()
    if options.plot:
        draw(options.plot)


if __name__ == "__main__":
    main()
