"""Planning: how many blocks a verdict needs, before any is drawn.

With `assert_lossless` these are the three sides of one design: assert, the smallest distance
that a number of trials detects, the number of trials that detects a distance. Two answers are
given. *Proved* holds for every sampler at that distance, by the total-variation test. *Typical*
is what the bets of a campaign need: measured, not proved. How many blocks find a known bug
says `zoo.planning`.

The test's bounds on the total variation of the completed block hold for observed blocks, too.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from specref.arrays import Floats
from specref.models import Model
from specref.statistics.campaign.levels import ALPHA, BETA, expected_total_variation
from specref.statistics.campaign.prefix_tree import PrefixTree, prefix_tree
from specref.statistics.campaign.verdict import Interval
from specref.vocabulary import Tokens

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


FAMILIES = ("library", "tilt", "lag", "pointwise", "dirichlet")
LOOKS = math.pi**2 / 6
ENDS = 2


def evidence_threshold(alpha: float) -> float:
    """The log-evidence from which on a campaign is LOSSY."""
    return -math.log(alpha / 2)


def bound_share(alpha: float, look: int = 1, cases: int = 1) -> float:
    """The chance that one end of one case's bound may fail at a look."""
    return alpha / 2 / (LOOKS * look**2) / cases / ENDS


Pair: TypeAlias = tuple[Model, Model, Tokens, int]
Pairs: TypeAlias = Pair | Mapping[str, Pair]
OWN = "own pair"

# Median of n TV^2 over the bugs of the zoo, blind, alpha 1e-9: 11.7 and 11.1 on the fixtures
# wide and eos, and 17.4 at most (python -m proofs_tests.benchmarks.power --runs 9).
TYPICAL = 12.0


@dataclass(frozen=True)
class Plan:
    """The trials that find or certify a distance on a fixture with so many completed blocks.

    Attributes
    ----------
    cells : int
        Completed blocks of the fixture.
    tv : float
        The distance.
    """

    fixture: str
    cells: int
    tv: float
    trials: int


def min_trials(tv: float, tree: PrefixTree, alpha: float = ALPHA, beta: float = BETA) -> int:
    """Blocks after which *any* sampler at distance `tv` is LOSSY with probability 1 - beta.

    Raises
    ------
    ValueError
        `tv` is not in (0, 1), or more than 1e15 blocks are needed.

    Examples
    --------
    >>> from specref.zoo.planning import FIXTURE_PAIRS
    >>> tree = prefix_tree(*FIXTURE_PAIRS["c"])
    >>> min_trials(0.05, tree)
    18357
    """
    _check(tv=tv, alpha=alpha, beta=beta)
    return trials_to_detect(tree.law, tv, bound_share(alpha), beta)


def min_detectable_tv(
    trials: int, tree: PrefixTree, alpha: float = ALPHA, beta: float = BETA
) -> float:
    """The distance from which *any* sampler is LOSSY with probability 1 - beta.

    Raises
    ------
    ValueError
        `trials` < 1.

    Examples
    --------
    >>> from specref.zoo.planning import FIXTURE_PAIRS
    >>> tree = prefix_tree(*FIXTURE_PAIRS["c"])
    >>> round(min_detectable_tv(18_357, tree), 4)
    0.05
    """
    _check(alpha=alpha, beta=beta)
    _check_trials(trials)
    slack = math.sqrt(-math.log(bound_share(alpha))) + math.sqrt(-math.log(beta))
    return min(1.0, expected_total_variation(tree.law, trials) + slack / math.sqrt(2 * trials))


def typical_trials(tv: float) -> int:
    """Blocks after which a campaign has typically found a bug at distance `tv`: 12 / tv^2.

    Examples
    --------
    >>> typical_trials(0.01)
    120000
    """
    _check(tv=tv)
    return math.ceil(TYPICAL / tv**2)


def typical_tv(trials: int) -> float:
    """The distance that a campaign typically finds with so many blocks: sqrt(12 / trials)."""
    _check_trials(trials)
    return min(1.0, math.sqrt(TYPICAL / trials))


def plan_distance(tv: float, alpha: float = ALPHA, *, pair: Pairs) -> tuple[Plan, ...]:
    """The trials that find any sampler at a distance (proved), by pair.

    Parameters
    ----------
    tv, alpha : float
    pair : (target, drafter, context, lookahead), or {name: such a pair}
        As in `Campaign.case`, for a campaign with one of these cases alone. `zoo.planning` has
        the fixtures of known bugs.

    Raises
    ------
    TypeError
        `pair` is no such tuple.
    ValueError
        `tv` or `alpha` is not in (0, 1).

    Examples
    --------
    >>> from specref.models import hashed_model
    >>> from specref.vocabulary import Vocabulary
    >>> abc = Vocabulary("abc")
    >>> yours = hashed_model(abc, "p"), hashed_model(abc, "q"), (), 2
    >>> plan_distance(0.05, pair=yours)
    (Plan(fixture='own pair', cells=21, tv=0.05, trials=19003),)
    """
    return _plans(lambda tree: (tv, min_trials(tv, tree, alpha)), pair)


def plan_trials(trials: int, alpha: float = ALPHA, *, pair: Pairs) -> tuple[Plan, ...]:
    """The distance at which any sampler is found (proved); see `plan_distance`.

    Examples
    --------
    >>> from specref.zoo.planning import FIXTURE_PAIRS
    >>> plan_trials(100_000, pair=FIXTURE_PAIRS)[0].fixture
    'm'
    """
    return _plans(lambda tree: (min_detectable_tv(trials, tree, alpha), trials), pair)


def plan_eps(eps: float, alpha: float = ALPHA, *, pair: Pairs) -> tuple[Plan, ...]:
    """The trials that certify a lossless sampler, 9 times in 10 (proved); see `plan_distance`.

    Examples
    --------
    >>> from specref.zoo.planning import FIXTURE_PAIRS
    >>> plan_eps(0.02, pair=FIXTURE_PAIRS["m"])[0].trials
    85333
    """
    _check(eps=eps, alpha=alpha)
    return _plans(lambda tree: (eps, needed_trials(tree, eps, bound_share(alpha))), pair)


def _plans(design: Callable[[PrefixTree], tuple[float, int]], pair: Pairs) -> tuple[Plan, ...]:
    pairs = pair if isinstance(pair, Mapping) else {OWN: pair}
    trees = {name: prefix_tree(*_checked(one)) for name, one in pairs.items()}
    return tuple(Plan(name, int(tree.leaves.sum()), *design(tree)) for name, tree in trees.items())


def _checked(pair: Pair) -> Pair:
    if not isinstance(pair, tuple) or len(pair) != 4:
        raise TypeError(f"pair = {pair!r}: expected (target, drafter, context, lookahead)")
    for name, model in zip(("target", "drafter"), pair, strict=False):
        if not isinstance(model, Model):
            raise TypeError(f"pair: {name} = {model!r}: expected a Model")
    return pair


def _check(**rates: float) -> None:
    for name, value in rates.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} = {value}: expected a number in (0, 1)")


def _check_trials(trials: int) -> None:
    if trials < 1:
        raise ValueError(f"trials = {trials}: expected at least 1")
