"""How many texts a two-sample test needs to find a bug, against a campaign that knows the target.

Texts are drawn from the exact laws of completed blocks. The campaign sees blocks, and bets
without its library. Run: python -m proofs_tests.benchmarks.two_sample [--runs N]
"""

import argparse
import statistics
from collections.abc import Callable, Mapping

import numpy as np

from proofs_tests.benchmarks.power import (
    GROWTH,
    HORIZON,
    declared,
    iterations_needed,
    without,
)
from specref.distributions import Probability
from specref.statistics import TwoSample
from specref.statistics.campaign.prefix_tree import as_blocks
from specref.vocabulary import Tokens
from specref.zoo import FIXTURES, MUTANTS, Entry, ExactFixture, total_variation_on

Texts = Callable[[int, np.random.Generator], np.ndarray]
NAMES = ("residual-is-p", "bonus-argmax", "lenience-5-4", "exact-match-resample", "shared-u")


def texts_of(law: Mapping[Tokens, Probability]) -> Texts:
    texts = as_blocks(list(law))
    weights = np.array([float(p) for p in law.values()])

    def draw(trials: int, rng: np.random.Generator) -> np.ndarray:
        return texts[rng.choice(len(texts), size=trials, p=weights / weights.sum())]

    return draw


def completed_law(fixture: ExactFixture, entry: Entry) -> Texts:
    return texts_of(fixture.output(entry.step))


def target_law(fixture: ExactFixture) -> Texts:
    return texts_of(fixture.continued())


def trials_needed(fixture: ExactFixture, entry: Entry, seed: int) -> int:
    """Texts on each side until LOSSY at alpha 1e-9, on a geometric grid."""
    rng = np.random.default_rng(seed)
    left, right = completed_law(fixture, entry), target_law(fixture)
    test = TwoSample(eps=None)
    done, goal = 0, 20.0
    while done < HORIZON and not test.decided_lossy:
        size = int(goal) - done
        test.add(left(size, rng), right(size, rng))
        done, goal = int(goal), goal * GROWTH
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--fixture", choices=tuple(FIXTURES), default="wide")
    options = parser.parse_args()
    fixture = FIXTURES[options.fixture]
    blind = without(declared(fixture), set(MUTANTS))
    print(f"fixture {fixture.name}, alpha 1e-09, median of {options.runs} runs")
    print(f"{'mutant':<24}{'TV':>8}{'known':>9}{'unknown':>9}{'ratio':>7}{'n TV^2':>8}")
    for name in NAMES:
        entry, seeds = MUTANTS[name], range(options.runs)
        tv = float(total_variation_on(entry, fixture))
        known = statistics.median(iterations_needed(blind, fixture, entry, s) for s in seeds)
        unknown = statistics.median(trials_needed(fixture, entry, s) for s in seeds)
        print(
            f"{name:<24}{tv:>8.4f}{known:>9,.0f}{unknown:>9,.0f}{unknown / known:>7.1f}"
            f"{unknown * tv**2:>8.1f}"
        )


if __name__ == "__main__":
    main()
