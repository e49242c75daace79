"""How many iterations a campaign needs to find each bug, against the information floor.

The floor is ln(1/alpha) / KL per iteration: no test can do better on average. Blocks are drawn
from the exact law of each mutant. Run: python -m proofs_tests.benchmarks.power [--runs N]
     [--fixture wide] [--plot FILE.png]
"""

import argparse
import contextlib
import math
import statistics
from dataclasses import dataclass

import numpy as np

from proofs_tests.helpers.campaigns import drawn, law_of, template, without
from specref.report.palette import BLUE, GREEN, GREY, VERMILLION
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.evidence import CampaignCase
from specref.zoo import FIXTURES, MUTANTS, Entry, ExactFixture, total_variation_on
from specref.zoo.planning import information

ALPHA = 1e-9
GROWTH = 1.15
HORIZON = 3_000_000
LIBRARIES = ("library", "left out", "blind")


def iterations_needed(
    declared: CampaignCase, fixture: ExactFixture, entry: Entry, seed: int
) -> int:
    """Iterations until LOSSY, on a geometric grid; the horizon if it is not found."""
    rng, law = np.random.default_rng(seed), law_of(entry.step, fixture.name)
    campaign = Campaign(alpha=ALPHA)
    case = campaign.adopt(declared)
    done, goal = 0, 20.0
    while done < HORIZON:
        campaign.add(case, drawn(law, int(goal) - done, rng))
        done, goal = int(goal), goal * GROWTH
        if campaign.decided_lossy:
            return done
    return HORIZON


@dataclass(frozen=True)
class Found:
    """How many iterations find one bug: at best, and with each library."""

    mutant: str
    tv: float
    floor: float
    needed: tuple[float, ...]

    def __str__(self) -> str:
        cells = "".join(f"{n:>9,.0f}" for n in (self.floor, *self.needed))
        return f"{self.mutant:<36}{self.tv:>8.4f}{cells}{self.blind_cost:>8.1f}"

    @property
    def blind_cost(self) -> float:
        return self.needed[-1] * self.tv**2


def exact_laws(fixture: ExactFixture) -> dict[str, object]:
    """The completed law of every mutant that has one here."""
    laws: dict[str, object] = {}
    for name, entry in MUTANTS.items():
        with contextlib.suppress(ValueError):
            laws[name] = fixture.output(entry.step)
    return laws


def measured(fixture: ExactFixture, runs: int) -> list[Found]:
    """Every bug that is lossy on the fixture, and not decided by what the target excludes."""
    known, laws, found = template(fixture.name), exact_laws(fixture), []
    for name, law in laws.items():
        entry = MUTANTS[name]
        tv = float(total_variation_on(entry, fixture))
        kl = information(fixture, entry) if tv else 0.0
        if not tv or math.isinf(kl):
            continue
        twins = {other for other, same in laws.items() if same == law}
        needed = tuple(
            statistics.median(iterations_needed(case, fixture, entry, s) for s in range(runs))
            for case in (known, without(known, twins), without(known, set(MUTANTS)))
        )
        found.append(Found(name, tv, -math.log(ALPHA) / kl, needed))
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--plot", metavar="FILE.png", help="needs matplotlib")
    parser.add_argument("--fixture", choices=tuple(FIXTURES), default="wide")
    options = parser.parse_args()
    print(f"fixture {options.fixture}, alpha {ALPHA:g}, median of {options.runs} runs")
    titles = "".join(f"{title:>9}" for title in ("floor", *LIBRARIES))
    print(f"{'mutant':<36}{'TV':>8}{titles}{'n TV^2':>8}")
    found = measured(FIXTURES[options.fixture], options.runs)
    for column, library in enumerate(LIBRARIES):
        ratios = [bug.needed[column] / bug.floor for bug in found]
        mean, worst = statistics.geometric_mean(ratios), max(ratios)
        print(f"{library}: {mean:.2f} x the floor, worst {worst:.1f}")
    print(f"geometric mean over {len(found)} bugs")
    costs = [bug.blind_cost for bug in found]
    middle = statistics.median(costs)
    print(f"blind n TV^2: median {middle:.1f}, {min(costs):.1f} to {max(costs):.1f}")
    if options.plot:
        draw([(bug.floor, *bug.needed) for bug in found], options.fixture, options.plot)


def draw(points: list[tuple[float, ...]], fixture: str, file: str) -> None:
    """Blocks until LOSSY against the floor, one dot for each bug."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    floor, *needed = zip(*points, strict=True)
    labels = ("bug in the library", "bug left out", "no library")
    looks = zip(needed, labels, "o^s", (BLUE, VERMILLION, GREEN), strict=True)
    for blocks, label, marker, colour in looks:
        axes.loglog(floor, blocks, marker, color=colour, alpha=0.7, markersize=5, label=label)
    ends = np.array([min(floor), max(floor)])
    axes.set_xlim(right=1.8 * max(floor))  # room for what the lines are called
    for factor, style in ((1, "-"), (2, ":"), (4, ":")):
        axes.loglog(ends, factor * ends, style, color=GREY, linewidth=1)
        end = (ends[1], factor * ends[1])
        axes.annotate(f"{factor} x", end, (6, -3), textcoords="offset points", color=GREY)
    axes.set_xlabel("information floor: ln(1/alpha) / KL per block")
    axes.set_ylabel("blocks until LOSSY")
    axes.set_title(f"Detection on fixture {fixture}, alpha {ALPHA:g}", fontsize=11)
    axes.legend(frameon=False)
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
