"""Campaigns on the fixtures of the zoo, and blocks to put into them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
from scipy import stats

from specref.algorithms.decoding import Step
from specref.chance import exact_distribution
from specref.models import as_float
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.evidence import CampaignCase
from specref.statistics.campaign.prefix_tree import PrefixTree, as_blocks, prefix_tree
from specref.vocabulary import Tokens
from specref.zoo import FIXTURES, MUTANTS

Law = Mapping[Tokens, float]


Array = np.ndarray


@cache
def block_law(step: Step, fixture: str) -> Law | None:
    """None where the step crashes."""
    pair = FIXTURES[fixture]
    target, drafter = as_float(pair.target), as_float(pair.drafter)
    try:
        law = exact_distribution(lambda c: step(target, drafter, (), pair.lookahead, c))
    except ValueError:
        return None
    return {block: float(weight) for block, weight in law.items()}


def law_of(step: Step, fixture: str) -> Law:
    law = block_law(step, fixture)
    assert law is not None
    return law


@cache
def tree_of(fixture: str) -> PrefixTree:
    pair = FIXTURES[fixture]
    return prefix_tree(pair.target, pair.drafter, (), pair.lookahead)


def surely_at_most(count: int, rate: float, trials: int) -> bool:
    """Whether a count is one that happens with probability 1e-6 or more."""
    return count <= stats.binom.isf(1e-6, trials, rate)


def drawn(law: Law, trials: int, rng: np.random.Generator) -> Array:
    weights = np.array(list(law.values()))
    return as_blocks(list(law))[rng.choice(len(law), size=trials, p=weights / weights.sum())]


@cache
def template(fixture: str, tolerance: float = 0.0) -> CampaignCase:
    pair = FIXTURES[fixture]
    campaign = Campaign(tolerance=tolerance)
    return campaign.case(pair.target, pair.drafter, (), pair.lookahead, mutants=MUTANTS)


def without(case: CampaignCase, left_out: set[str]) -> CampaignCase:
    """The case with some mutants taken out of its library."""
    kept = [i for i, (mutant, _) in enumerate(case.library) if mutant not in left_out]
    library = tuple(case.library[i] for i in kept)
    return replace(case, library=library, log_bets=case.log_bets[kept])


def fresh(
    fixture: str, *, left_out: set[str] = frozenset(), **options
) -> tuple[Campaign, CampaignCase]:
    """An empty campaign with one case; the library is computed once for each fixture."""
    campaign = Campaign(**{"eps": None, **options})
    case = template(fixture, campaign.tolerance)
    return campaign, campaign.adopt(without(case, left_out))
