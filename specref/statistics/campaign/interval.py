"""Provable bounds on the total variation of the completed block, from observed blocks."""

import math
from collections.abc import Callable

import numpy as np

from specref.arrays import Floats
from specref.statistics.campaign.levels import BETA, expected_total_variation
from specref.statistics.campaign.prefix_tree import PrefixTree
from specref.statistics.campaign.verdict import Interval

MOST_TRIALS, LEAST, STEPS = 10**30, 1e-18, 4


def interval(
    case: str,
    tree: PrefixTree,
    counts: Floats,
    trials: int,
    alpha: float,
    *,
    impossible: int = 0,
    allowance: float = 0.0,
) -> Interval:
    """Bounds that fail with probability at most 2 alpha, for independent blocks of any one law.

    Each block is completed by p itself rather than by a draw, so the estimate averages over
    completions. It changes by at most 1/n with a block (McDiarmid); its mean is at least the
    truth (Jensen), and at most the truth plus sqrt((k - 1) / n) / 2 over k cells. Blocks that
    do the impossible (`impossible` of them, not in `counts`) make one cell more, of law 0.
    What is below `allowance` is neither held against the sampler nor called detectable.
    """
    law = tree.law
    observed = tree.completed(counts, trials - impossible) / trials
    estimate = float(np.abs(observed - law).sum() + impossible / trials) / 2
    deviation = math.sqrt(math.log(1 / alpha) / (2 * trials))
    bias = math.sqrt(len(law) / trials) / 2
    noise = expected_total_variation(law, trials)
    threshold = allowance + noise + deviation
    detectable = min(1.0, threshold + math.sqrt(math.log(1 / BETA) / (2 * trials)))
    lower, upper = max(0.0, estimate - bias - deviation), min(1.0, estimate + deviation)
    return Interval(case, trials, estimate, lower, upper, threshold, detectable, noise)


def needed_trials(tree: PrefixTree, eps: float, alpha: float, power: float = 0.9) -> int:
    """Trials after which a lossless sampler is certified within `eps`, with this power."""
    # A sampler at distance `eps` is found, and one at 0 certified, at the same number of trials.
    return trials_to_detect(tree.law, eps, alpha, 1 - power)


def trials_to_detect(law: Floats, tv: float, alpha: float, beta: float = BETA) -> int:
    """Trials after which any sampler at distance `tv` is found by the total-variation test."""
    slack = math.sqrt(math.log(1 / alpha)) + math.sqrt(math.log(1 / beta))

    def distance(trials: int) -> float:
        return expected_total_variation(law, trials) + slack / math.sqrt(2 * trials)

    # It falls nearly as 1 / sqrt(trials), so that a few steps lead close to the answer.
    near, goal = 1, max(tv, LEAST)
    for _ in range(STEPS):
        near = max(1, min(MOST_TRIALS, math.ceil(near * (distance(near) / goal) ** 2)))
    return smallest(lambda trials: distance(trials) <= tv, near)


def smallest(holds: Callable[[int], bool], near: int = 1) -> int:
    """The smallest number of trials at which a monotone condition holds; `near` is a guess."""
    low, high, step = near - 1, near, 2
    if holds(near):
        while low and holds(low):
            low, high, step = max(0, low - step), low, 2 * step
    else:
        low, high = near, near + 1
        while not holds(high):
            low, high, step = high, high + step, 2 * step
            if high > MOST_TRIALS:
                raise ValueError(f"more than {MOST_TRIALS:.0e} trials would be needed")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
