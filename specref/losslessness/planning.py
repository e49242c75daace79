"""Planning: how many blocks a verdict needs, before any is drawn.

With `assert_lossless` these are the three sides of one design: assert, the smallest distance
that a number of trials detects, the number of trials that detects a distance. Two answers are
given. *Proved* holds for every sampler at that distance, by the total-variation test. *Typical*
is what the bets of a campaign need: measured, not proved.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specref.chance import exact_distribution
from specref.distributions import Probability
from specref.losslessness.bets import STRENGTHS
from specref.losslessness.interval import cells, needed_trials, trials_to_detect
from specref.losslessness.statistics import ALPHA, BETA, expected_total_variation
from specref.losslessness.tree import PrefixTree, as_blocks, prefix_tree, starts, walk
from specref.models import as_float
from specref.vocabulary import Tokens
from specref.zoo import FIXTURES, MUTANTS, Entry, Fixture, total_variation_on

# Median of n TV^2 over the bugs of the zoo, blind, alpha 1e-9: 10.8 to 11.3 on the fixtures
# wide and eos, and 20.0 at most (python -m proofs_tests.benchmarks.power).
TYPICAL = 12.0
FAMILIES = 5
TV_SHARE = math.pi**2 / 6 * 4


@dataclass(frozen=True)
class Plan:
    """On a fixture with so many completed blocks, these trials find or certify this distance."""

    fixture: str
    cells: int
    tv: float
    trials: int


@dataclass(frozen=True)
class MutantPlan:
    """What finding one known bug on a fixture needs.

    Attributes
    ----------
    tv : float
        Its exact distance from lossless.
    information : float
        Nats per block that the best possible bets win; infinite if it does the impossible.
    floor : float
        Blocks below which no test at this alpha finds it on average.
    expected_trials : int
        Blocks after which the library's bet on it should have won; if it does the impossible,
        blocks after which that has been seen 999 times in 1,000.
    """

    fixture: str
    mutant: str
    tv: float
    information: float
    floor: float
    expected_trials: int


def min_trials(tv: float, tree: PrefixTree, alpha: float = ALPHA, beta: float = BETA) -> int:
    """Blocks after which *any* sampler at distance `tv` is LOSSY with probability 1 - beta.

    Raises
    ------
    ValueError
        `tv` is not in (0, 1), or more than 1e15 blocks are needed.

    Examples
    --------
    >>> fixture = FIXTURES["c"]
    >>> tree = prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
    >>> min_trials(0.05, tree)
    18357
    """
    _check(tv=tv, alpha=alpha, beta=beta)
    return trials_to_detect(cells(tree, np.zeros_like(tree.p), 1), tv, alpha / TV_SHARE, beta)


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
    >>> fixture = FIXTURES["c"]
    >>> tree = prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
    >>> round(min_detectable_tv(18_357, tree), 4)
    0.05
    """
    _check(alpha=alpha, beta=beta)
    _check_trials(trials)
    law = cells(tree, np.zeros_like(tree.p), 1)
    slack = math.sqrt(math.log(TV_SHARE / alpha)) + math.sqrt(math.log(1 / beta))
    return min(1.0, expected_total_variation(law, trials) + slack / math.sqrt(2 * trials))


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
    """The distance that a campaign typically finds with so many blocks: sqrt(12 / trials).

    Examples
    --------
    >>> typical_tv(120_000)
    0.01
    """
    _check_trials(trials)
    return min(1.0, math.sqrt(TYPICAL / trials))


def plan_distance(tv: float, alpha: float = ALPHA) -> tuple[Plan, ...]:
    """For each fixture, the trials that find any sampler at a distance (proved)."""
    return _plans(lambda tree: (tv, min_trials(tv, tree, alpha)))


def plan_trials(trials: int, alpha: float = ALPHA) -> tuple[Plan, ...]:
    """For each fixture, the distance at which any sampler is found (proved)."""
    return _plans(lambda tree: (min_detectable_tv(trials, tree, alpha), trials))


def plan_eps(eps: float, alpha: float = ALPHA) -> tuple[Plan, ...]:
    """For each fixture, the trials that certify a lossless sampler, 9 times in 10 (proved)."""
    _check(eps=eps, alpha=alpha)
    return _plans(lambda tree: (eps, needed_trials(tree, eps, alpha / TV_SHARE)))


def plan_mutant(name: str, alpha: float = ALPHA) -> tuple[MutantPlan, ...]:
    """For each fixture on which a known bug shows, what finding it needs.

    Raises
    ------
    ValueError
        No such mutant.

    Examples
    --------
    >>> [(plan.fixture, round(plan.tv, 3)) for plan in plan_mutant("residual-is-p")][:2]
    [('m', 0.16), ('c', 0.111)]
    """
    _check(alpha=alpha)
    if name not in MUTANTS:
        raise ValueError(f"mutant = {name!r}: expected one of {', '.join(MUTANTS)}")
    plans = [_mutant_plan(fixture, MUTANTS[name], alpha) for fixture in FIXTURES.values()]
    return tuple(plan for plan in plans if plan is not None)


def information(fixture: Fixture, entry: Entry) -> float:
    """Nats per block won by betting on the mutant's own law given the past and an open block.

    That is the most that any bets can win on average; infinite if it does the impossible.
    """
    tree, law = _tree(fixture), _law(fixture, entry)
    if impossible_chance(fixture, entry):
        return math.inf
    mass = starts(tree, law)
    seen = mass > 0
    conditional = mass / np.where(seen.any(axis=1), mass.sum(axis=1), 1)[:, None]
    return float((mass[seen] * np.log(conditional[seen] / tree.p[seen])).sum())


def impossible_chance(fixture: Fixture, entry: Entry) -> float:
    """The probability that a block of the mutant does what the target excludes."""
    tree, law = _tree(fixture), _law(fixture, entry)
    blocks, weights = as_blocks(list(law)), np.array([float(p) for p in law.values()])
    too_long = (blocks[:, tree.length :] >= 0).any(axis=1)
    _, bad = walk(tree, blocks[~too_long, : tree.length])
    return float(weights[too_long].sum() + weights[~too_long][bad].sum())


def _law(fixture: Fixture, entry: Entry) -> dict[Tokens, Probability]:
    target, drafter = as_float(fixture.target), as_float(fixture.drafter)
    return exact_distribution(lambda c: entry.step(target, drafter, (), fixture.lookahead, c))


def _mutant_plan(fixture: Fixture, entry: Entry, alpha: float) -> MutantPlan | None:
    try:
        tv = float(total_variation_on(entry, fixture))
        nats = information(fixture, entry)
    except ValueError:
        return None  # it crashes here
    if not tv:
        return None
    if math.isinf(nats):
        seen = math.log(BETA) / math.log1p(-min(impossible_chance(fixture, entry), 1 - 1e-12))
        return MutantPlan(fixture.name, entry.id, tv, nats, 0.0, math.ceil(seen))
    price = math.log(2 * FAMILIES * len(MUTANTS) * len(STRENGTHS) / alpha)
    floor = math.log(1 / alpha) / nats
    return MutantPlan(fixture.name, entry.id, tv, nats, floor, math.ceil(price / nats))


def _plans(design: Callable[[PrefixTree], tuple[float, int]]) -> tuple[Plan, ...]:
    trees = {name: _tree(fixture) for name, fixture in FIXTURES.items()}
    sizes = {name: int(((tree.child < 0) & (tree.p > 0)).sum()) for name, tree in trees.items()}
    return tuple(Plan(name, sizes[name], *design(tree)) for name, tree in trees.items())


def _check(**rates: float) -> None:
    for name, value in rates.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} = {value}: expected a number in (0, 1)")


def _check_trials(trials: int) -> None:
    if trials < 1:
        raise ValueError(f"trials = {trials}: expected at least 1")


def _tree(fixture: Fixture) -> PrefixTree:
    return prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
