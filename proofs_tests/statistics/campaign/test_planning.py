"""Plans are consistent with each other and with what campaigns then find."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner

from proofs_tests.benchmarks.power import iterations_needed
from proofs_tests.helpers.campaigns import Law, block_law, surely_at_most, template, tree_of
from proofs_tests.helpers.campaigns import drawn as blocks_drawn
from proofs_tests.helpers.campaigns import law_of as law_of_step
from specref.algorithms import standard
from specref.cli import main
from specref.distributions import Probability
from specref.models import iid_model
from specref.proofs.exact import completed
from specref.statistics.campaign.bets import STRENGTHS
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.evidence import CampaignCase
from specref.statistics.campaign.levels import BETA, expected_total_variation
from specref.statistics.campaign.planning import (
    FAMILIES,
    bound_share,
    evidence_threshold,
    interval,
    min_detectable_tv,
    min_trials,
    needed_trials,
    plan_distance,
    plan_eps,
    plan_trials,
    smallest,
    trials_to_detect,
    typical_trials,
    typical_tv,
)
from specref.statistics.campaign.prefix_tree import PrefixTree, prefix_tree, starts
from specref.statistics.campaign.verdict import Interval, Verdict
from specref.vocabulary import Vocabulary
from specref.zoo import CONTROLS, FIXTURES, MUTANTS, ExactFixture, planning, total_variation_on
from specref.zoo.planning import FIXTURE_PAIRS, plan_mutant

FIXTURE = FIXTURES["eos"]
TREE = prefix_tree(FIXTURE.target, FIXTURE.drafter, (), FIXTURE.lookahead)


@pytest.mark.parametrize("tv", [0.2, 0.05, 0.01])
def test_trials_and_distance_are_inverse(tv: float) -> None:
    for levels in ((1e-9, 1e-2), (1e-3, 1e-6)):
        trials = min_trials(tv, TREE, *levels)
        more, fewer = (min_detectable_tv(n, TREE, *levels) for n in (trials - 1, trials))
        assert fewer <= tv < more
    assert typical_tv(typical_trials(tv)) == pytest.approx(tv, rel=1e-3)


def test_certifying_needs_the_same_order_as_detecting() -> None:
    (plan,) = [plan for plan in plan_eps(0.05, pair=FIXTURE_PAIRS) if plan.fixture == "eos"]
    assert 0.1 < plan.trials / min_trials(0.05, TREE) < 1


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_found_within_three_times_its_plan(name: str) -> None:
    plans = [plan for plan in plan_mutant(name) if plan.tv > 0]
    assert plans, "blind on every fixture"
    plan = min(plans, key=lambda plan: plan.expected_trials)
    fixture = FIXTURES[plan.fixture]
    found = iterations_needed(template(fixture.name), fixture, MUTANTS[name], seed=17)
    first_look = 20
    assert found <= 3 * plan.expected_trials + first_look


def test_the_floor_is_below_the_plan() -> None:
    for plan in plan_mutant("residual-is-p"):
        assert plan.floor < plan.expected_trials < 2 * plan.floor


def eos_campaign(alpha: float, eps: float | None = None) -> tuple[Campaign, CampaignCase]:
    """A campaign with a few blocks on one case."""
    campaign = Campaign(alpha=alpha, eps=eps)
    case = campaign.case(FIXTURE.target, FIXTURE.drafter, (), FIXTURE.lookahead, mutants={})
    campaign.add(case, [(int(TREE.p[0].argmax()),)] * 5_000)
    return campaign, case


@pytest.mark.parametrize("alpha", [1e-2, 1e-9])
def test_campaigns_detect_what_is_planned(alpha: float) -> None:
    campaign, _ = eos_campaign(alpha)
    found = campaign.report().intervals[0].detectable
    assert found == pytest.approx(min_detectable_tv(5_000, TREE, alpha))
    assert campaign.report().intervals[0].detectable > found  # the second look has less alpha


@pytest.mark.parametrize("alpha", [1e-2, 1e-9])
def test_campaigns_need_at_the_next_look_what_is_planned_there(alpha: float) -> None:
    campaign, case = eos_campaign(alpha, eps=0.05)
    (plan,) = plan_eps(0.05, alpha, pair=PAIR)
    assert campaign.needed(case) == plan.trials
    for look in (2, 3, 4):
        campaign.report()
        share = bound_share(alpha, look)
        assert campaign.needed(case) == needed_trials(TREE, 0.05, share) > plan.trials


def test_needed_trials_are_split_over_the_cases() -> None:
    campaign, case = eos_campaign(1e-6, eps=0.05)
    campaign.case(FIXTURE.target, FIXTURE.drafter, (), 1, mutants={})
    assert campaign.needed(case) == needed_trials(TREE, 0.05, bound_share(1e-6, cases=2))


def test_campaigns_have_the_families_and_the_threshold_that_plans_count() -> None:
    campaign = Campaign(alpha=1e-6, eps=None)
    case = campaign.case(FIXTURE.target, FIXTURE.drafter, (), FIXTURE.lookahead, mutants=MUTANTS)
    assert tuple(campaign.wealth()) == FAMILIES
    members = len(campaign.wealth()["library"])
    assert members == len(case.library) <= len(MUTANTS) * len(STRENGTHS)
    for peak, lossy in ((-1e-6, False), (0.0, True)):
        campaign.evidence.peak = evidence_threshold(1e-6) + peak
        assert campaign.decided_lossy == lossy


def test_all_looks_together_spend_half_of_alpha_on_bounds() -> None:
    for cases in (1, 4):
        spent = sum(2 * cases * bound_share(0.01, look, cases) for look in range(1, 200_000))
        assert 0.005 - 1e-7 < spent < 0.005


PAIR = (FIXTURE.target, FIXTURE.drafter, (), FIXTURE.lookahead)


@pytest.mark.parametrize(
    ("plan", "argument"), [(plan_distance, 0.05), (plan_trials, 10_000), (plan_eps, 0.05)]
)
def test_ones_own_pair_is_planned_like_the_fixture_that_it_is(plan, argument) -> None:
    for alpha in (1e-3, 1e-9):
        (own,) = plan(argument, alpha, pair=PAIR)
        (same,) = [
            found for found in plan(argument, alpha, pair=FIXTURE_PAIRS) if found.fixture == "eos"
        ]
        assert own.fixture == "own pair"
        assert (own.cells, own.tv, own.trials) == (same.cells, same.tv, same.trials)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (PAIR[:2], "expected .target, drafter, context, lookahead."),
        (FIXTURE.target, "pair = "),
        (("abc", *PAIR[1:]), "target = 'abc': expected a Model"),
        ((PAIR[0], None, (), 1), "drafter = None: expected a Model"),
    ],
)
def test_what_is_no_pair_is_refused_by_name(pair, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        plan_eps(0.05, pair=pair)
    with pytest.raises(ValueError, match="lookahead = -1"):
        plan_eps(0.05, pair=(*PAIR[:3], -1))


def test_impossible_bugs_have_infinite_information() -> None:
    plans = {plan.fixture: plan for plan in plan_mutant("eos-ignored")}
    assert math.isinf(plans["eos"].information)


@pytest.mark.parametrize(("share", "trials"), [(Fraction(1, 2), 10), (1, 1)])
def test_an_impossible_bug_is_planned_until_it_is_seen(
    monkeypatch: pytest.MonkeyPatch, share: Probability, trials: int
) -> None:
    """It is missed 10 times with a probability of 2^-10, below beta; never if it is certain."""

    def goes_on_after_eos(target, drafter, context, lookahead, chance):
        eos = target.vocabulary.eos
        if eos is None or not chance.accept(share, "wrong"):
            return standard.step(target, drafter, context, lookahead, chance)
        return (target.vocabulary.ids[eos], 0)

    entry = replace(MUTANTS["eos-ignored"], id="planted", step=goes_on_after_eos)
    monkeypatch.setattr(planning, "MUTANTS", {"planted": entry})
    (plan,) = plan_mutant("planted")
    assert (plan.fixture, plan.information, plan.floor) == ("eos", math.inf, 0)
    assert plan.expected_trials == trials


@pytest.mark.parametrize(
    ("option", "part"),
    [
        (("--tv", "0.01"), "120,000"),
        (("--n", "120000"), "0.01"),
        (("--eps", "0.02"), "certified"),
        (("--mutant", "shared-u"), "expected"),
    ],
)
def test_plan_prints(option: tuple[str, str], part: str) -> None:
    result = CliRunner().invoke(main, ["plan", *option])
    assert result.exit_code == 0, result.output
    assert part in result.output


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ((), "exactly one"),
        (("--tv", "0.1", "--n", "5"), "exactly one"),
        (("--tv", "2"), "tv = 2.0"),
        (("--n", "0"), "trials = 0"),
        (("--mutant", "no-such"), "mutant = 'no-such'"),
        (("--tv", "0.1", "--alpha", "1"), "alpha = 1.0"),
    ],
)
def test_plan_misuse(options: tuple[str, ...], part: str) -> None:
    result = CliRunner().invoke(main, ["plan", *options])
    assert result.exit_code == 2
    assert part in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_plans_of_known_bugs_by_their_formulas() -> None:
    for plan in plan_mutant("residual-is-p", alpha=1e-4):
        bets = 5 * len(MUTANTS) * 4  # families, bugs, strengths
        assert plan.floor == pytest.approx(math.log(1e4) / plan.information)
        price = math.log(bets) + math.log(2 / 1e-4)
        assert plan.expected_trials == math.ceil(price / plan.information)
        fixture = FIXTURES[plan.fixture]
        assert plan.tv == float(total_variation_on(MUTANTS["residual-is-p"], fixture))


def test_what_is_detectable_by_its_formula() -> None:
    fixture = FIXTURES["c"]
    tree = prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
    root = math.sqrt(-math.log(1e-4 / 4 / (math.pi**2 / 6))) + math.sqrt(-math.log(1e-2))
    expected = expected_total_variation(tree.law, 5_000) + root / math.sqrt(10_000)
    assert min_detectable_tv(5_000, tree, 1e-4, 1e-2) == pytest.approx(expected)
    assert typical_trials(0.013) == math.ceil(12 / 0.013**2)
    assert typical_tv(5_000) == pytest.approx(math.sqrt(12 / 5_000))
    assert typical_tv(3) == 1


ALPHA = 0.05
COIN = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
EVERY = {**MUTANTS, **CONTROLS}
ON_FIXTURES = [(name, fixture) for fixture in FIXTURES for name in EVERY][::3]


def law_of(name: str, fixture: str) -> Law | None:
    """None where the entry crashes."""
    return block_law(EVERY[name].step, fixture)


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


@pytest.mark.deep
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
    law = law_of_step(standard.step, fixture)
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


@pytest.mark.deep
def test_a_sampler_beyond_eps_is_never_certified() -> None:
    # At alpha 0.5 the upper bound has little slack: 1.1 standard deviations for a fair coin.
    rng, eps, certified = np.random.default_rng(4), 0.1, 0
    for _ in range(300):
        campaign = Campaign(alpha=0.5, eps=eps)
        case = campaign.case(COIN, COIN, (), 0, mutants={})
        campaign.add(case, (rng.random((2_000, 1)) < 0.5 - eps - 1e-9).astype(int))
        certified += campaign.report().verdict == Verdict.LOSSLESS_WITHIN_EPS
    assert surely_at_most(certified, 0.25, 300)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("fixture", ["m", "c"])
def test_needed_trials_certify_a_lossless_sampler_and_a_quarter_does_not(fixture: str) -> None:
    law, eps = law_of_step(standard.step, fixture), 0.05
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
