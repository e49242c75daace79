"""What a campaign costs: checking against sampling, certification, and a small bug.

Run: python -m proofs_tests.benchmarks.campaign
"""

import time
from collections.abc import Callable

import numpy as np

from proofs_tests.benchmarks.power import block_law, declared
from specref.algorithms import standard
from specref.chance import Sampled
from specref.models import Model, as_float, hashed_model
from specref.simulate import tabulate
from specref.statistics import Campaign, run
from specref.verification import TwinSampler
from specref.vocabulary import Vocabulary
from specref.zoo import FIXTURES, MUTANTS

BLOCKS = 500_000


def dense(key: str) -> Model:
    """Eight tokens, no zeros."""
    vocabulary = Vocabulary("abcdefgh")
    sparse = as_float(hashed_model(vocabulary, key))
    return Model(vocabulary, lambda context: sparse.next_token(context) / 2 + 1 / 16)


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    target, drafter = dense("p"), dense("q")
    arguments = (target, drafter, (), 2)
    sampler = TwinSampler({"V=8": tabulate("standard", *arguments)})
    campaign = Campaign(eps=0.02)
    library = seconds(lambda: campaign.case(*arguments, name="V=8", mutants=MUTANTS))
    report = None

    def certify() -> None:
        nonlocal report
        report = run(campaign, sampler, budget=BLOCKS, seed=1)

    certified = seconds(certify)
    print(f"V=8, lookahead 2: library of {len(MUTANTS)} bugs {library:.2f} s CPU")
    print(f"  {report.verdict} (eps 0.02) after {report.trials:,} blocks: {certified:.2f} s CPU")
    blocks = sampler("V=8", BLOCKS, np.random.default_rng(2))
    twin = seconds(lambda: sampler("V=8", BLOCKS, np.random.default_rng(3)))
    checking = seconds(lambda: campaign.add(campaign.cases[0], blocks))
    chance = Sampled(np.random.default_rng(4))
    some = BLOCKS // 100
    reference = 100 * seconds(lambda: [standard.step(*arguments, chance) for _ in range(some)])
    print(f"  checking {BLOCKS:,} blocks: {checking:.2f} s CPU = {checking / reference:.2%} of ")
    print(f"  sampling them with the reference, {checking / twin:.1f} x that of the batched twin")
    find_lenience()


def find_lenience() -> None:
    """Accepting with 10/9 p / q, until LOSSY."""
    fixture, entry = FIXTURES["wide"], MUTANTS["lenience-10-9"]
    blocks, weights = block_law(fixture, entry)
    weights = weights / weights.sum()
    campaign = Campaign(eps=None)
    campaign.adopt(declared(fixture))

    def sampler(name: str, trials: int, rng: np.random.Generator) -> np.ndarray:
        return blocks[rng.choice(len(blocks), size=trials, p=weights)]

    report = None

    def search() -> None:
        nonlocal report
        report = run(campaign, sampler, budget=10**6, seed=5)

    taken = seconds(search)
    print(f"lenience 10/9 on wide: {report.verdict} after {report.trials:,} blocks, {taken:.2f} s")
    print(f"  first suspect: {report.suspects[0].component}")


if __name__ == "__main__":
    main()
