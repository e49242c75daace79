"""How many iterations a campaign needs to find each bug, against the information floor.

The floor is ln(1/alpha) / KL per iteration: no test can do better on average. Blocks are drawn
from the exact law of each mutant. Run: python -m proofs_tests.benchmarks.power [--runs N]
"""

import argparse
import math
import statistics
from collections.abc import Mapping

import numpy as np

from specref.chance import exact_distribution
from specref.losslessness.campaign import Campaign
from specref.losslessness.tree import as_blocks, prefix_tree, starts
from specref.losslessness.verdict import Verdict
from specref.models import as_float
from specref.zoo import FIXTURES, MUTANTS, Entry, Fixture, total_variation_on

ALPHA = 1e-9
GROWTH = 1.15
HORIZON = 3_000_000


def block_law(fixture: Fixture, entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    target, drafter = as_float(fixture.target), as_float(fixture.drafter)
    law = exact_distribution(lambda c: entry.step(target, drafter, (), fixture.lookahead, c))
    return as_blocks(list(law)), np.array([float(p) for p in law.values()])


def information(fixture: Fixture, entry: Entry) -> float:
    """KL per iteration of the bets a boundary-aware gambler who knows the bug can make."""
    tree = prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
    blocks, weights = block_law(fixture, entry)
    law = {tuple(b[b >= 0].tolist()): w for b, w in zip(blocks, weights, strict=True)}
    mass = starts(tree, law)
    seen = mass > 0
    ratio = mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)
    if (tree.p[seen] <= 0).any():
        return math.inf
    return float((mass[seen] * np.log(ratio[seen] / tree.p[seen])).sum())


def iterations_needed(
    fixture: Fixture, entry: Entry, library: Mapping[str, Entry], seed: int
) -> int:
    """Iterations until LOSSY, on a geometric grid; the horizon if it is not found."""
    rng = np.random.default_rng(seed)
    blocks, weights = block_law(fixture, entry)
    campaign = Campaign(alpha=ALPHA, seed=seed)
    case = campaign.case(fixture.target, fixture.drafter, (), fixture.lookahead, mutants=library)
    done, goal = 0, 20.0
    while done < HORIZON:
        trials = int(goal) - done
        campaign.add(case, blocks[rng.choice(len(blocks), size=trials, p=weights / weights.sum())])
        done, goal = int(goal), goal * GROWTH
        if campaign.impossible or campaign.peak >= -math.log(ALPHA / 2):
            return done
    return HORIZON


def twins(entry: Entry, fixture: Fixture) -> set[str]:
    """The mutants with the same law here, which leaving one out must leave out as well."""
    law = fixture.output(entry.step)
    return {
        name for name, other in MUTANTS.items() if name != "algorithm-5" and same(fixture, other, law)
    }


def same(fixture: Fixture, other: Entry, law: object) -> bool:
    try:
        return fixture.output(other.step) == law
    except ValueError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--fixture", choices=tuple(FIXTURES), default="wide")
    options = parser.parse_args()
    fixture = FIXTURES[options.fixture]
    print(f"fixture {fixture.name}, alpha {ALPHA:g}, median of {options.runs} runs")
    print(f"{'mutant':<36}{'TV':>8}{'floor':>9}{'library':>9}{'left out':>9}{'blind':>9}{'n TV^2':>8}")
    ratios: dict[str, list[float]] = {"library": [], "left out": [], "blind": []}
    for name, entry in MUTANTS.items():
        tv = float(total_variation_on(entry, fixture))
        kl = information(fixture, entry) if tv else 0.0
        if not tv or math.isinf(kl):
            continue
        floor = -math.log(ALPHA) / kl
        left_out = {k: v for k, v in MUTANTS.items() if k not in twins(entry, fixture)}
        needed = [
            statistics.median(
                iterations_needed(fixture, entry, library, seed) for seed in range(options.runs)
            )
            for library in (MUTANTS, left_out, {})
        ]
        for key, n in zip(ratios, needed, strict=True):
            ratios[key].append(n / floor)
        cells = "".join(f"{n:>9,.0f}" for n in (floor, *needed))
        print(f"{name:<36}{tv:>8.4f}{cells}{needed[2] * tv**2:>8.1f}")
    for key, values in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, values)))
        print(f"{key}: {mean:.2f} x the floor (geometric mean of {len(values)}), worst {max(values):.1f}")


if __name__ == "__main__":
    main()
