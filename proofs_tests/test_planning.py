"""Plans are consistent with each other and with what campaigns then find."""

import math

import pytest
from click.testing import CliRunner

from proofs_tests.benchmarks.power import declared, iterations_needed
from specref.cli import main
from specref.losslessness.planning import (
    min_detectable_tv,
    min_trials,
    plan_eps,
    plan_mutant,
    typical_trials,
    typical_tv,
)
from specref.losslessness.tree import prefix_tree
from specref.zoo import FIXTURES, MUTANTS

FIXTURE = FIXTURES["eos"]
TREE = prefix_tree(FIXTURE.target, FIXTURE.drafter, (), FIXTURE.lookahead)


@pytest.mark.parametrize("tv", [0.2, 0.05, 0.01])
def test_trials_and_distance_are_inverse(tv: float) -> None:
    trials = min_trials(tv, TREE)
    assert min_detectable_tv(trials, TREE) <= tv < min_detectable_tv(trials - 1, TREE)
    assert typical_tv(typical_trials(tv)) == pytest.approx(tv, rel=1e-3)


def test_smaller_alpha_and_beta_cost_more() -> None:
    assert min_trials(0.05, TREE, alpha=1e-3) < min_trials(0.05, TREE, alpha=1e-9)
    assert min_trials(0.05, TREE, beta=0.1) < min_trials(0.05, TREE, beta=1e-6)


def test_certifying_needs_the_same_order_as_detecting() -> None:
    (plan,) = [plan for plan in plan_eps(0.05) if plan.fixture == "eos"]
    assert 0.1 < plan.trials / min_trials(0.05, TREE) < 1


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


def test_impossible_bugs_have_infinite_information() -> None:
    plans = {plan.fixture: plan for plan in plan_mutant("eos-ignored")}
    assert math.isinf(plans["eos"].information)


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
