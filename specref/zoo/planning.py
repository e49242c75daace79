"""How many blocks find a known bug, by its exact law on the fixtures of the zoo."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from specref.laws import Law
from specref.proofs.lazy import Enumerator, ReadableModel
from specref.statistics.campaign.bets import STRENGTHS
from specref.statistics.campaign.levels import ALPHA, BETA
from specref.statistics.campaign.planning import FAMILIES, Pair, evidence_threshold
from specref.statistics.campaign.prefix_tree import (
    PrefixTree,
    as_blocks,
    fitted,
    prefix_tree,
    starts,
    walk,
)
from specref.suggestions import did_you_mean
from specref.zoo import FIXTURES, MUTANTS, Entry, ExactFixture, total_variation_on

MOST_PATHS = 1_000_000
FIXTURE_PAIRS: Mapping[str, Pair] = {
    fixture.name: (fixture.target, fixture.drafter, (), fixture.lookahead)
    for fixture in FIXTURES.values()
}
"""The fixtures of the zoo, as plans take pairs."""


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
    """The blocks needed to find a known bug, for each fixture on which it shows."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha = {alpha}: expected a number in (0, 1)")
    if name not in MUTANTS:
        near = did_you_mean(name, MUTANTS)
        expected = "a known bug (specref list bugs)" if near else f"one of {', '.join(MUTANTS)}"
        raise ValueError(f"mutant = {name!r}: expected {expected}{near}")
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
