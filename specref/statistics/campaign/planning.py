"""Planning: how many blocks a verdict needs, before any is drawn.

With `assert_lossless` these are the three sides of one design: assert, the smallest distance
that a number of trials detects, the number of trials that detects a distance. Two answers are
given. *Proved* holds for every sampler at that distance, by the total-variation test. *Typical*
is what the bets of a campaign need: measured, not proved. For one known bug its exact law says how
many blocks find it (`plan_mutant`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from specref.laws import Law
from specref.models import Model
from specref.proofs.lazy import Enumerator, ReadableModel
from specref.statistics.campaign.bets import STRENGTHS
from specref.statistics.campaign.blocks import as_blocks, fitted
from specref.statistics.campaign.error_budget import FAMILIES, bound_share, evidence_threshold
from specref.statistics.campaign.interval import needed_trials, trials_to_detect
from specref.statistics.campaign.levels import ALPHA, BETA, expected_total_variation
from specref.statistics.campaign.prefix_tree import PrefixTree, prefix_tree, starts, walk
from specref.vocabulary import Tokens
from specref.zoo import FIXTURES, MUTANTS, Entry, ExactFixture, total_variation_on

Pair: TypeAlias = tuple[Model, Model, Tokens, int]
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
    >>> fixture = FIXTURES["c"]
    >>> tree = prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
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
    >>> fixture = FIXTURES["c"]
    >>> tree = prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
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
    """The distance that a campaign typically finds with so many blocks: sqrt(12 / trials).

    Examples
    --------
    >>> typical_tv(120_000)
    0.01
    """
    _check_trials(trials)
    return min(1.0, math.sqrt(TYPICAL / trials))


def plan_distance(tv: float, alpha: float = ALPHA, pair: Pair | None = None) -> tuple[Plan, ...]:
    """The trials that find any sampler at a distance (proved), by fixture or for one's own pair.

    Parameters
    ----------
    tv, alpha : float
    pair : (target, drafter, context, lookahead), optional
        As in `Campaign.case`, for a campaign with this case alone. By default each fixture.

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


def plan_trials(trials: int, alpha: float = ALPHA, pair: Pair | None = None) -> tuple[Plan, ...]:
    """The distance at which any sampler is found (proved); see `plan_distance`.

    Examples
    --------
    >>> plan_trials(100_000)[0].fixture
    'm'
    """
    return _plans(lambda tree: (min_detectable_tv(trials, tree, alpha), trials), pair)


def plan_eps(eps: float, alpha: float = ALPHA, pair: Pair | None = None) -> tuple[Plan, ...]:
    """The trials that certify a lossless sampler, 9 times in 10 (proved); see `plan_distance`.

    Examples
    --------
    >>> fixture = FIXTURES["m"]
    >>> yours = fixture.target, fixture.drafter, (), fixture.lookahead
    >>> plan_eps(0.02, pair=yours)[0].trials == plan_eps(0.02)[0].trials
    True
    """
    _check(eps=eps, alpha=alpha)
    return _plans(lambda tree: (eps, needed_trials(tree, eps, bound_share(alpha))), pair)


def _plans(
    design: Callable[[PrefixTree], tuple[float, int]], pair: Pair | None
) -> tuple[Plan, ...]:
    if pair is None:
        pairs = {f.name: (f.target, f.drafter, (), f.lookahead) for f in FIXTURES.values()}
        trees = {name: prefix_tree(*arguments) for name, arguments in pairs.items()}
    else:
        trees = {OWN: prefix_tree(*_checked(pair))}
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


MOST_PATHS = 1_000_000


@dataclass(frozen=True)
class MutantPlan:
    """How many blocks it takes to find one known bug on a fixture.

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


def plan_mutant(name: str, alpha: float = ALPHA) -> tuple[MutantPlan, ...]:
    """The blocks needed to find a known bug, for each fixture on which it shows.

    Raises
    ------
    ValueError
        No such mutant.

    Examples
    --------
    >>> [(plan.fixture, round(plan.tv, 3)) for plan in plan_mutant("residual-is-p")][:2]
    [('m', 0.16), ('c', 0.111)]
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha = {alpha}: expected a number in (0, 1)")
    if name not in MUTANTS:
        raise ValueError(f"mutant = {name!r}: expected one of {', '.join(MUTANTS)}")
    plans = [_mutant_plan(fixture, MUTANTS[name], alpha) for fixture in FIXTURES.values()]
    return tuple(plan for plan in plans if plan is not None)


def information(fixture: ExactFixture, entry: Entry) -> float:
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


def impossible_chance(fixture: ExactFixture, entry: Entry) -> float:
    """The probability that a block of the mutant does what the target excludes."""
    tree, law = _tree(fixture), _law(fixture, entry)
    blocks, weights = as_blocks(list(law)), np.array([float(p) for p in law.values()])
    too_long = (blocks[:, tree.length :] >= 0).any(axis=1)
    _, bad = walk(tree, fitted(blocks[~too_long], tree.length))
    return float(weights[too_long].sum() + weights[~too_long][bad].sum())


def _law(fixture: ExactFixture, entry: Entry) -> Law:
    target, drafter = ReadableModel(fixture.target), ReadableModel(fixture.drafter)
    return Enumerator(MOST_PATHS).law(entry.step, target, drafter, (), fixture.lookahead)


def _mutant_plan(fixture: ExactFixture, entry: Entry, alpha: float) -> MutantPlan | None:
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
    members = len(FAMILIES) * len(MUTANTS) * len(STRENGTHS)
    price = math.log(members) + evidence_threshold(alpha)
    floor = math.log(1 / alpha) / nats
    return MutantPlan(fixture.name, entry.id, tv, nats, floor, math.ceil(price / nats))


def _tree(fixture: ExactFixture) -> PrefixTree:
    return prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
