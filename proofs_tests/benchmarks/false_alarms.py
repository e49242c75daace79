"""How often does a campaign call a lossless sampler LOSSY? Recorded in docs/how-verdicts-work.md.

Each null campaign draws 3,000 blocks from the exact law of a lossless rule (in turn: standard,
and controls whose accepted lengths differ), and reports twelve times. Two rates are counted for
each alpha: how often the evidence ever reached 1/alpha, and how often a campaign at that alpha
ever says LOSSY, by its evidence or by its total-variation test. Intervals are exact, 99.9 %.

Run: python -m proofs_tests.benchmarks.false_alarms [--fixtures m wide eos] [--campaigns 40000]
     [--processes 1] [--seed 0]
"""

import argparse
import copy
import math
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import numpy as np

from proofs_tests.benchmarks.power import block_law, declared
from specref.statistics.campaign.acceptance import binomial_interval
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.evidence import CampaignCase
from specref.statistics.campaign.verdict import Verdict
from specref.zoo import CONTROLS, FIXTURES

ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4)
LOOKS = np.unique(np.geomspace(50, 3000, 12).astype(int))
SHARE = 500
DEFAULT = ["m", "wide", "eos"]


@cache
def template(fixture: str) -> CampaignCase:
    return declared(FIXTURES[fixture])


@cache
def null_laws(fixture: str) -> list[tuple[np.ndarray, np.ndarray]]:
    laws = [block_law(FIXTURES[fixture], entry) for entry in CONTROLS.values()]
    return [(blocks, weights / weights.sum()) for blocks, weights in laws]


def alarms(fixture: str, campaigns: int, seeds: tuple[int, ...]) -> np.ndarray:
    """How many null campaigns crossed 1/alpha, and how many said LOSSY; shape (2, alphas)."""
    rng, laws = np.random.default_rng(seeds), null_laws(fixture)
    found = np.zeros((2, len(ALPHAS)), dtype=int)
    for index in range(campaigns):
        blocks, weights = laws[index % len(laws)]
        rows = rng.choice(len(blocks), size=LOOKS[-1], p=weights)
        found += watched(template(fixture), blocks[rows])
    return found


def watched(case: CampaignCase, blocks: np.ndarray) -> np.ndarray:
    """Whether one campaign ever crosses 1/alpha, and says LOSSY; shape (2, alphas)."""
    campaign = Campaign(alpha=max(ALPHAS), eps=None)
    own = campaign.adopt(case)
    lossy = np.zeros(len(ALPHAS), dtype=bool)
    for batch in np.split(blocks, LOOKS[:-1]):
        campaign.add(own, batch)
        # What is not LOSSY at the largest alpha is not LOSSY at a smaller one.
        if campaign.report().verdict == Verdict.LOSSY:
            lossy |= [verdict_at(campaign, alpha) == Verdict.LOSSY for alpha in ALPHAS]
    crossed = [campaign.peak >= -math.log(alpha) for alpha in ALPHAS]
    return np.array([crossed, lossy])


def verdict_at(campaign: Campaign, alpha: float) -> Verdict:
    """The verdict of this very look, had the campaign another alpha."""
    other = copy.copy(campaign)
    other.alpha, other._too_far = alpha, False
    other._looks -= 1
    return other.report().verdict


def table(counts: dict[str, tuple[int, np.ndarray]]) -> Iterator[str]:
    """Rows of a Markdown table: fixture, alpha, and both rates with their intervals."""
    yield "| fixture | campaigns | alpha | E ever >= 1/alpha | LOSSY |"
    yield "|---|---|---|---|---|"
    for fixture, (campaigns, found) in counts.items():
        for column, alpha in enumerate(ALPHAS):
            cells = [rate(int(times), campaigns) for times in found[:, column]]
            yield f"| {fixture} | {campaigns:,} | {alpha:g} | {' | '.join(cells)} |"


def rate(times: int, campaigns: int) -> str:
    low, high = binomial_interval(times, campaigns, 1e-3)
    return f"{times / campaigns:.1e} ({low:.1e} to {high:.1e})"


def counted(
    fixtures: list[str], campaigns: int, processes: int, seed: int
) -> dict[str, tuple[int, np.ndarray]]:
    """Alarms by fixture; the same for every number of processes."""
    shares = -(-campaigns // SHARE)
    jobs = [
        (f, SHARE, (seed, list(FIXTURES).index(f), i)) for f in fixtures for i in range(shares)
    ]
    if processes == 1:
        found = [alarms(*job) for job in jobs]
    else:
        with ProcessPoolExecutor(processes) as pool:
            found = list(pool.map(alarms, *zip(*jobs, strict=True)))
    totals = np.array(found).reshape(len(fixtures), shares, 2, len(ALPHAS)).sum(axis=1)
    return {name: (shares * SHARE, total) for name, total in zip(fixtures, totals, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixtures", nargs="+", choices=tuple(FIXTURES), default=DEFAULT)
    parser.add_argument("--campaigns", type=int, default=40_000, help="on each fixture")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    counts = counted(options.fixtures, options.campaigns, options.processes, options.seed)
    if len(counts) > 1:
        totals = [sum(column) for column in zip(*counts.values(), strict=True)]
        counts["all"] = (totals[0], totals[1])
    print("\n".join(table(counts)))
    print(
        f"{len(CONTROLS)} lossless rules in turn, {len(LOOKS)} looks to {LOOKS[-1]:,} blocks, "
        f"seed {options.seed}, {time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
