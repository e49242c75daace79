"""How many iterations a campaign needs to find each bug, against the information floor.

The floor is ln(1/alpha) / KL per iteration: no test can do better on average. Blocks are drawn
from the exact law of each mutant. Run: python -m proofs_tests.benchmarks.power [--runs N]
"""

import argparse
import contextlib
import copy
import math
import statistics

import numpy as np

from specref.chance import exact_distribution
from specref.losslessness.campaign import Campaign
from specref.losslessness.planning import information
from specref.losslessness.tree import as_blocks
from specref.models import as_float
from specref.zoo import FIXTURES, MUTANTS, Entry, Fixture, total_variation_on

ALPHA = 1e-9
GROWTH = 1.15
HORIZON = 3_000_000


def block_law(fixture: Fixture, entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    target, drafter = as_float(fixture.target), as_float(fixture.drafter)
    law = exact_distribution(lambda c: entry.step(target, drafter, (), fixture.lookahead, c))
    return as_blocks(list(law)), np.array([float(p) for p in law.values()])


def iterations_needed(campaign: Campaign, fixture: Fixture, entry: Entry, seed: int) -> int:
    """Iterations until LOSSY, on a geometric grid; the horizon if it is not found."""
    rng = np.random.default_rng(seed)
    blocks, weights = block_law(fixture, entry)
    campaign = copy.deepcopy(campaign)
    done, goal = 0, 20.0
    while done < HORIZON:
        rows = rng.choice(len(blocks), size=int(goal) - done, p=weights / weights.sum())
        campaign.add(campaign.cases[0], blocks[rows])
        done, goal = int(goal), goal * GROWTH
        if campaign.decided_lossy:
            return done
    return HORIZON


def declared(fixture: Fixture) -> Campaign:
    campaign = Campaign(alpha=ALPHA)
    campaign.case(fixture.target, fixture.drafter, (), fixture.lookahead)
    return campaign


def without(campaign: Campaign, names: set[str]) -> Campaign:
    """The campaign with some bugs taken out of its library."""
    smaller = copy.deepcopy(campaign)
    (case,) = smaller.cases
    kept = [row for row, (name, _) in enumerate(case.library) if name not in names]
    case.library = tuple(case.library[row] for row in kept)
    case.log_bets = case.log_bets[kept]
    return smaller


def exact_laws(fixture: Fixture) -> dict[str, object]:
    """The completed law of every mutant that has one here."""
    laws: dict[str, object] = {}
    for name, entry in MUTANTS.items():
        with contextlib.suppress(ValueError):
            laws[name] = fixture.output(entry.step)
    return laws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--plot", metavar="FILE.png", help="needs specref[report]")
    parser.add_argument("--fixture", choices=tuple(FIXTURES), default="wide")
    options = parser.parse_args()
    fixture = FIXTURES[options.fixture]
    print(f"fixture {fixture.name}, alpha {ALPHA:g}, median of {options.runs} runs")
    titles = ("floor", "library", "left out", "blind")
    print(f"{'mutant':<36}{'TV':>8}" + "".join(f"{t:>9}" for t in titles) + f"{'n TV^2':>8}")
    ratios: dict[str, list[float]] = {"library": [], "left out": [], "blind": []}
    costs: list[float] = []
    points: list[tuple[float, ...]] = []
    known, laws = declared(fixture), exact_laws(fixture)
    for name, entry in MUTANTS.items():
        tv = float(total_variation_on(entry, fixture)) if name in laws else 0.0
        kl = information(fixture, entry) if tv else 0.0
        if not tv or math.isinf(kl):
            continue
        floor = -math.log(ALPHA) / kl
        twins = {other for other, law in laws.items() if law == laws[name]}
        needed = [
            statistics.median(
                iterations_needed(campaign, fixture, entry, seed) for seed in range(options.runs)
            )
            for campaign in (known, without(known, twins), without(known, set(MUTANTS)))
        ]
        for key, n in zip(ratios, needed, strict=True):
            ratios[key].append(n / floor)
        costs.append(needed[2] * tv**2)
        points.append((floor, *needed))
        cells = "".join(f"{n:>9,.0f}" for n in (floor, *needed))
        print(f"{name:<36}{tv:>8.4f}{cells}{costs[-1]:>8.1f}")
    for key, values in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, values)))
        print(f"{key}: {mean:.2f} x the floor (mean of {len(values)}), worst {max(values):.1f}")
    middle = statistics.median(costs)
    if options.plot:
        draw(points, fixture.name, options.plot)
    print(f"blind n TV^2: median {middle:.1f}, {min(costs):.1f} to {max(costs):.1f}")


def draw(points: list[tuple[float, ...]], fixture: str, file: str) -> None:
    """Blocks until LOSSY against the floor, one dot for each bug."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    floor, *needed = zip(*points, strict=True)
    labels = ("bug in the library", "bug left out", "no library")
    for blocks, label, marker in zip(needed, labels, "o^s", strict=True):
        axes.loglog(floor, blocks, marker, alpha=0.7, markersize=5, label=label)
    ends = np.array([min(floor), max(floor)])
    for factor, style in ((1, "-"), (2, ":"), (4, ":")):
        axes.loglog(ends, factor * ends, style, color="grey", linewidth=1)
        axes.annotate(f"{factor} x", (ends[1], factor * ends[1]), fontsize=8, color="grey")
    axes.set_xlabel("information floor: ln(1/alpha) / KL per block")
    axes.set_ylabel("blocks until LOSSY")
    axes.set_title(f"Detection on fixture {fixture}, alpha {ALPHA:g}", fontsize=11)
    axes.legend(frameon=False)
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
