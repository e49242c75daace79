"""The interval covers the truth, detects what it says it detects, and certifies nothing worse.

Samples are counts of whole blocks, drawn from the exact law of a block. Rates are judged by
binomial bounds that a correct bound breaks with probability below 1e-6.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest

from proofs_tests.helpers.campaigns import drawn as blocks_drawn
from proofs_tests.helpers.campaigns import surely_at_most, tree_of
from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import exact_distribution
from specref.models import as_float, iid_model
from specref.proofs.exact import completed
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.interval import (
    interval,
    needed_trials,
    smallest,
    trials_to_detect,
)
from specref.statistics.campaign.levels import BETA, expected_total_variation
from specref.statistics.campaign.prefix_tree import PrefixTree, prefix_tree, starts
from specref.statistics.campaign.verdict import Interval, Verdict
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import CONTROLS, FIXTURES, MUTANTS, ExactFixture, total_variation_on

ALPHA = 0.05
COIN = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
Law = Mapping[Tokens, float]
EVERY = {**MUTANTS, **CONTROLS}
ON_FIXTURES = [(name, fixture) for fixture in FIXTURES for name in EVERY][::3]


def block_law(step: Step, fixture: ExactFixture) -> Law:
    target, drafter = as_float(fixture.target), as_float(fixture.drafter)
    law = exact_distribution(lambda c: step(target, drafter, (), fixture.lookahead, c))
    return {block: float(weight) for block, weight in law.items()}


@cache
def law_of(name: str, fixture: str) -> Law | None:
    """None where the entry crashes."""
    try:
        return block_law(EVERY[name].step, FIXTURES[fixture])
    except ValueError:
        return None


@cache
def distance(name: str, fixture: str) -> float:
    return float(total_variation_on(EVERY[name], FIXTURES[fixture]))


def possible(tree: PrefixTree, law: Law) -> bool:
    """Whether every block is one that the target can produce."""
    index = {prefix: node for node, prefix in enumerate(tree.prefixes)}
    places = [(block[:j], token) for block in law for j, token in enumerate(block)]
    return all(prefix in index and tree.p[index[prefix], x] > 0 for prefix, x in places)


def drawn(tree: PrefixTree, law: Law, trials: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of each token at each node, of so many blocks."""
    weights = np.array(list(law.values()))
    times = rng.multinomial(trials, weights / weights.sum())
    return starts(tree, dict(zip(law, times.tolist(), strict=True)))


def measured(fixture: str, law: Law, trials: int, seed: int, alpha: float = ALPHA / 2) -> Interval:
    tree = tree_of(fixture)
    counts = drawn(tree, law, trials, np.random.default_rng(seed))
    return interval(fixture, tree, counts, trials, alpha)


@pytest.mark.parametrize("name", FIXTURES)
def test_cells_without_counts_are_the_target_law(name: str) -> None:
    tree, fixture = tree_of(name), FIXTURES[name]
    law = completed({(): 1}, fixture.target, (), fixture.lookahead + 1)
    found = tree.law
    assert sorted(found) == pytest.approx(sorted(map(float, law.values())))


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("fixture", FIXTURES)
def test_the_estimate_of_exact_frequencies_is_the_exact_distance(fixture: str) -> None:
    tree, checked = tree_of(fixture), 0
    for name in EVERY:
        law = law_of(name, fixture)
        if law is None or not possible(tree, law):
            continue
        found = interval("", tree, starts(tree, law) * 10**9, 10**9, ALPHA)
        assert found.estimate == pytest.approx(distance(name, fixture), abs=1e-9), name
        checked += 1
    assert checked >= 30


@pytest.mark.parametrize("trials", [50, 2_000])
def test_the_interval_covers_the_exact_distance(trials: int) -> None:
    outside, runs = 0, 0
    for seed, (name, fixture) in enumerate(ON_FIXTURES):
        law = law_of(name, fixture)
        if law is None or not possible(tree_of(fixture), law):
            continue
        found = measured(fixture, law, trials, seed)
        outside += not found.lower - 1e-9 <= distance(name, fixture) <= found.upper + 1e-9
        runs += 1
    assert runs >= 60
    assert surely_at_most(outside, ALPHA, runs)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("fixture", FIXTURES)
def test_the_interval_covers_the_distance_of_samplers_that_do_the_impossible(fixture: str) -> None:
    rng = np.random.default_rng(3)
    tree, missed = tree_of(fixture), []
    for name in MUTANTS:
        law = law_of(name, fixture)
        if law is None or possible(tree, law):
            continue
        found = reported(FIXTURES[fixture], law, 20_000, rng)
        if not found.lower <= distance(name, fixture) <= found.upper:
            missed.append((name, distance(name, fixture), found))
    assert not missed


def reported(fixture: ExactFixture, law: Law, trials: int, rng: np.random.Generator) -> Interval:
    campaign = Campaign(eps=None)
    case = campaign.case(fixture.target, fixture.drafter, (), fixture.lookahead, mutants={})
    campaign.add(case, blocks_drawn(law, trials, rng))
    return campaign.report().intervals[0]


def test_a_token_that_is_always_impossible_is_at_distance_one() -> None:
    never = iid_model(Vocabulary("abc"), ["1/2", "1/2", 0])
    campaign = Campaign(eps=None)
    case = campaign.case(never, never, (), 0, mutants={})
    campaign.add(case, np.full((100_000, 1), 2))
    assert campaign.report().intervals[0].upper == 1


@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_correct_sampler_rarely_exceeds_the_threshold(fixture: str) -> None:
    law = block_law(standard.step, FIXTURES[fixture])
    found = [measured(fixture, law, 300, seed, ALPHA) for seed in range(200)]
    assert surely_at_most(sum(i.estimate > i.threshold for i in found), ALPHA, len(found))


def towards_one_block(law: Law, distance: float) -> Law:
    """A mixture with the least likely block, at this distance."""
    rarest = min(law, key=lambda block: law[block])
    weight = distance / (1 - law[rarest])
    shifted = {block: (1 - weight) * mass for block, mass in law.items()}
    return shifted | {rarest: shifted[rarest] + weight}


def spread_evenly(law: Law, distance: float) -> Law:
    """Every other block gains, the rest loses, in proportion to its mass."""
    winners = list(law)[::2]
    share = sum(law[block] for block in winners)
    up, down = 1 + distance / share, 1 - distance / (1 - share)
    return {block: mass * (up if block in winners else down) for block, mass in law.items()}


@pytest.mark.parametrize("bias", [towards_one_block, spread_evenly])
@pytest.mark.parametrize("fixture", ["m", "c", "eos"])
def test_a_sampler_at_the_detectable_distance_is_found(
    fixture: str, bias: Callable[[Law, float], Law]
) -> None:
    trials, entry = 3_000, FIXTURES[fixture]
    fair = {block: float(mass) for block, mass in entry.continued().items()}
    detectable = measured(fixture, fair, trials, seed=0).detectable
    assert 0.05 < detectable < 0.3
    biased = bias(fair, detectable)
    found = [measured(fixture, biased, trials, seed) for seed in range(300)]
    assert surely_at_most(sum(i.estimate <= i.threshold for i in found), BETA, len(found))


def test_a_sampler_beyond_eps_is_never_certified() -> None:
    # At alpha 0.5 the upper bound has little slack: 1.1 standard deviations for a fair coin.
    rng, eps, certified = np.random.default_rng(4), 0.1, 0
    for _ in range(300):
        campaign = Campaign(alpha=0.5, eps=eps)
        case = campaign.case(COIN, COIN, (), 0, mutants={})
        campaign.add(case, (rng.random((2_000, 1)) < 0.5 - eps - 1e-9).astype(int))
        certified += campaign.report().verdict == Verdict.LOSSLESS_WITHIN_EPS
    assert surely_at_most(certified, 0.25, 300)


@pytest.mark.parametrize("fixture", ["m", "c"])
def test_needed_trials_certify_a_lossless_sampler_and_a_quarter_does_not(fixture: str) -> None:
    law, eps = block_law(standard.step, FIXTURES[fixture]), 0.05
    first = certify(fixture, law, 100, eps, seed=0)
    assert first.verdict == Verdict.INCONCLUSIVE
    assert first.needed is not None
    enough = [certify(fixture, law, first.needed, eps, seed) for seed in range(20)]
    few = [certify(fixture, law, first.needed // 4, eps, seed) for seed in range(20)]
    certified = Verdict.LOSSLESS_WITHIN_EPS
    assert sum(report.verdict == certified for report in enough) >= 16
    assert sum(report.verdict == certified for report in few) <= 4


def certify(fixture: str, law: Law, trials: int, eps: float, seed: int):
    entry = FIXTURES[fixture]
    campaign = Campaign(eps=eps, seed=seed)
    case = campaign.case(entry.target, entry.drafter, (), entry.lookahead, mutants={})
    campaign.add(case, blocks_drawn(law, trials, np.random.default_rng(seed)))
    return campaign.report()


@pytest.mark.parametrize("fixture", FIXTURES)
def test_planned_trials_detect_what_was_planned(fixture: str) -> None:
    tree = tree_of(fixture)
    law = tree.law
    trials = trials_to_detect(law, 0.05, 1e-9)
    found = interval("", tree, np.zeros_like(tree.p), trials, 1e-9)
    assert found.detectable <= 0.05 < found.detectable * 1.001


def test_smallest_is_the_smallest() -> None:
    for least in (1, 2, 3, 1000, 1001, 123_457):
        assert smallest(lambda n, least=least: n >= least) == least
    with pytest.raises(ValueError, match="trials would be needed"):
        smallest(lambda n: False)


@pytest.mark.parametrize("view", ["boundary", "stream", "trace"])
def test_a_report_is_possible_at_any_eps(view) -> None:
    campaign = Campaign(eps=1e-8, view=view)
    case = campaign.case(COIN, COIN, (), 0, mutants={})
    campaign.add(case, [(0,), (1,)], np.zeros((2, 0), dtype=int))
    assert campaign.report().verdict == Verdict.INCONCLUSIVE


def test_nothing_within_the_tolerance_is_said_to_be_detectable() -> None:
    campaign = Campaign(eps=None, tolerance=0.02)
    case = campaign.case(COIN, COIN, (), 0, mutants={})
    tolerated = np.random.default_rng(5).random((200_000, 1)) < 0.48
    campaign.add(case, tolerated.astype(int))
    report = campaign.report()
    assert report.verdict == Verdict.INCONCLUSIVE
    assert report.detectable is not None
    assert report.detectable > 0.02


def test_an_interval_by_its_formula() -> None:
    coin = iid_model(Vocabulary("ab"), [0.25, 0.75])
    tree = prefix_tree(coin, coin, (), 0)
    found = interval(
        "coin", tree, np.array([[60.0, 20.0]]), 100, 1e-4, impossible=20, allowance=0.01
    )
    assert found.estimate == pytest.approx((0.35 + 0.55 + 0.2) / 2)
    deviation = math.sqrt(math.log(1e4) / 200)
    assert found.lower == pytest.approx(found.estimate - math.sqrt(2 / 100) / 2 - deviation)
    assert found.upper == pytest.approx(found.estimate + deviation)
    mean = expected_total_variation(np.array([0.25, 0.75]), 100)
    assert found.threshold == pytest.approx(0.01 + mean + deviation)
    assert found.detectable == pytest.approx(found.threshold + math.sqrt(math.log(1e3) / 200))
    few = interval("coin", tree, np.array([[1.0, 0.0]]), 1, 1e-4)
    assert (few.lower, few.upper, few.detectable) == (0, 1, 1)


def test_needed_trials_by_their_formula() -> None:
    coin = iid_model(Vocabulary("ab"), [0.25, 0.75])
    tree = prefix_tree(coin, coin, (), 0)
    needed = needed_trials(tree, 0.05, 1e-4)
    root = math.sqrt(math.log(1e4)) + math.sqrt(math.log(10))
    reach = [
        expected_total_variation(tree.law, trials) + root / math.sqrt(2 * trials)
        for trials in (needed - 1, needed)
    ]
    assert reach[0] > 0.05 >= reach[1]


def test_so_many_trials_that_nobody_draws_them_are_refused() -> None:
    assert smallest(lambda trials: trials >= 2**99) == 2**99  # below 1e30 < 2^100
    with pytest.raises(ValueError, match=r"more than 1e\+30 trials would be needed"):
        smallest(lambda trials: trials > 2**100)
