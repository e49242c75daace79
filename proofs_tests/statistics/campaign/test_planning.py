"""Plans are consistent with each other and with what campaigns then find."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner

from proofs_tests.benchmarks.power import declared, iterations_needed
from specref.algorithms import standard
from specref.cli import main
from specref.distributions import Probability
from specref.statistics.campaign.bets import STRENGTHS
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.cases import CampaignCase
from specref.statistics.campaign.interval import needed_trials
from specref.statistics.campaign.levels import expected_total_variation
from specref.statistics.campaign.planning import (
    FAMILIES,
    bound_share,
    evidence_threshold,
    min_detectable_tv,
    min_trials,
    plan_distance,
    plan_eps,
    plan_trials,
    typical_trials,
    typical_tv,
)
from specref.statistics.campaign.prefix_tree import prefix_tree
from specref.zoo import FIXTURES, MUTANTS, planning, total_variation_on
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
    found = iterations_needed(declared(fixture), fixture, MUTANTS[name], seed=17)
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
