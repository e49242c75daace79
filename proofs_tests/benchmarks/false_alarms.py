"""How often does a campaign call a lossless sampler LOSSY? Recorded in docs/statistics.md.

Each null campaign draws blocks from the exact law of a lossless rule (in turn: standard, and
controls whose accepted lengths differ), and looks twelve times. The table gives how often its
evidence ever reached 1/alpha, with the exact 99.9 % interval of that rate.

Run: python -m proofs_tests.benchmarks.false_alarms [--campaigns 100000] [--processes 2]
"""

import argparse
import dataclasses
import math
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from proofs_tests.benchmarks.power import block_law, declared
from specref.losslessness.acceptance import binomial_interval
from specref.losslessness.campaign import Campaign
from specref.losslessness.cases import CampaignCase
from specref.zoo import CONTROLS, FIXTURES

ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4)
LOOKS = np.unique(np.geomspace(50, 3000, 12).astype(int))
SHARE = 500


def peaks(fixture_name: str, campaigns: int, seed: int) -> list[float]:
    """The highest log-evidence of each null campaign."""
    fixture = FIXTURES[fixture_name]
    (declared_case,) = declared(fixture).cases
    laws = [block_law(fixture, entry) for name, entry in CONTROLS.items()]
    rng = np.random.default_rng(seed)
    return [_peak(declared_case, *laws[index % len(laws)], rng) for index in range(campaigns)]


def _peak(
    case: CampaignCase, blocks: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> float:
    campaign = Campaign()
    fresh = dataclasses.replace(
        case, counts=case.counts * 0, lengths=case.lengths * 0, last=case.last * 0 - 1, trials=0
    )
    campaign.cases.append(fresh)
    rows = rng.choice(len(blocks), size=LOOKS[-1], p=weights / weights.sum())
    for first, last in zip((0, *LOOKS), LOOKS, strict=False):
        campaign.add(fresh, blocks[rows[first:last]])
    return campaign.peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--fixture", choices=tuple(FIXTURES), default="m")
    options = parser.parse_args()
    started = time.perf_counter()
    shares = -(-options.campaigns // SHARE)
    with ProcessPoolExecutor(options.processes) as pool:
        found = pool.map(peaks, [options.fixture] * shares, [SHARE] * shares, range(shares))
        evidence = np.array([peak for share in found for peak in share])
    print(
        f"{len(evidence):,} null campaigns on {options.fixture}, {len(CONTROLS)} lossless rules, "
        f"{len(LOOKS)} looks to {LOOKS[-1]:,} blocks, {time.perf_counter() - started:.0f} s"
    )
    print(f"{'alpha':>8}{'rate':>12}{'99.9 % interval':>26}")
    for alpha in ALPHAS:
        alarms = int((evidence >= -math.log(alpha)).sum())
        low, high = binomial_interval(alarms, len(evidence), 1e-3)
        print(f"{alpha:>8g}{alarms / len(evidence):>12.2e}{f'{low:.2e} to {high:.2e}':>26}")


if __name__ == "__main__":
    main()
