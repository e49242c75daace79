"""The suite: what its fixtures have, the account of alpha, power, and what a report says."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from proofs_tests.helpers.bugs.verifiers import BUGS, LOOK_ALIKES, clean, verifying
from specref.arrays import NO_TOKEN
from specref.conformance.checks import CHECKS
from specref.conformance.judge import Judge
from specref.conformance.public import check
from specref.conformance.status import CheckResult, Finding, Stage, Status
from specref.conformance.suite import rare_edges
from specref.conformance.trial import Trial, declared_case
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Contract
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.sampling import Drawn
from specref.contracts.table import DRAFTER, GENERATE, STEP, VERIFY
from specref.contracts.verify import Blocks, Iterations
from specref.statistics.campaign.planning import LOOKS, bound_share, evidence_threshold

# Fixtures: every property is counted in fractions, over the rows that can be reached.


def test_fixtures_for_those_who_take_less() -> None:
    for fixture in CHAIN_FIXTURES.values():
        most = fixture.lookahead
        assert [place.lookahead for place in fixture.places] == [most, most, most - 1, 0]
        assert [place.lookahead for place in fixture.drafted().places] == [most, most, most - 1]
        assert [place.lookahead for place in fixture.even().places] == [most] * 3
        assert (fixture.ragged, fixture.even().ragged) == (True, False)
        assert fixture.only(2).places == (fixture.places[2],)


# The account of alpha, and power.


@pytest.mark.parametrize("name", CHAIN_FIXTURES)
def test_a_trial_spends_at_most_its_alpha(name: str) -> None:
    alpha, places = 0.01, len(CHAIN_FIXTURES[name].places)
    trial = Trial(CHAIN_FIXTURES[name], alpha)
    evidence = 2 * math.exp(-evidence_threshold(alpha / 2))  # of the law, and of dependence
    far = places * bound_share(trial.campaign.alpha, 1, places)
    lengths = trial.campaign.alpha / LOOKS
    assert evidence + far + lengths < alpha
    assert evidence == pytest.approx(alpha / 2)


STATISTICAL = (VERIFY, STEP, GENERATE, DRAFTER)


@pytest.mark.strata
@pytest.mark.parametrize("contract", STATISTICAL)
def test_every_statistical_check_gets_an_equal_share(contract: Contract, monkeypatch: Any) -> None:
    asking = [one for one in CHECKS if one.statistical and contract in one.contracts]
    seen: list[float] = []

    def spied(*arguments: Any, **named: Any) -> Judge:
        judge = Judge(*arguments, **named)
        seen.append(judge.level)
        return judge

    monkeypatch.setattr("specref.conformance.suite.Judge", spied)
    check(lambda *anything: None, contract=contract, only=["replay/permuted"], alpha=0.01)
    assert len(asking) >= 3
    assert seen == [pytest.approx(0.01 / len(asking))]


@pytest.mark.parametrize("name", CHAIN_FIXTURES)
@pytest.mark.parametrize("tokens", [None, 3])
def test_enough_trials_are_drawn_for_what_is_promised(name: str, tokens: int | None) -> None:
    fixture, tv = CHAIN_FIXTURES[name], 0.2
    verifier = Verifier(clean, Capabilities())
    mutants: dict[str, Any] | None = {} if tokens else None
    trial = Trial(fixture, 1e-6, tokens=tokens, mutants=mutants)
    sampler = (
        Blocks(verifier, fixture) if tokens is None else Iterations(verifier, fixture, tokens)
    )
    found = trial.run(sampler, trial.needed(tv), np.random.default_rng(1))
    assert not found.lossy
    assert not found.dependent
    assert found.report.detectable is not None
    assert found.report.detectable <= tv
    counts = [sum(blocks.values()) for blocks in found.blocks.values()]
    assert max(counts) - min(counts) <= 2
    tolerant = replace(found, allowances=(0.05, tv / 2))
    assert tolerant.needed(tv) == replace(found, allowances=(0.0,)).needed(tv / 2) is not None
    assert (tolerant.needed(tv / 2), tolerant.needed(0.05)) == (None, None)


class Mixed:
    """Whole blocks of the target's law, but for a share on the least likely one."""

    def __init__(self, trial: Trial, tv: float) -> None:
        self.laws = []
        for case in trial.cases:
            node, last = np.nonzero(case.tree.leaves)
            blocks = np.full((len(node), case.tree.length), NO_TOKEN)
            for row, (here, token) in enumerate(zip(node, last, strict=True)):
                block = (*case.tree.prefixes[here], token)
                blocks[row, : len(block)] = block
            law, least = case.tree.law, int(case.tree.law.argmin())
            share = tv / (1 - law[least])
            self.laws.append((blocks, (1 - share) * law + share * (np.arange(len(law)) == least)))

    def __call__(self, trials: int, rng: np.random.Generator) -> Drawn:
        place = np.arange(trials) % len(self.laws)
        rows = np.full((trials, max(blocks.shape[1] for blocks, _ in self.laws)), NO_TOKEN)
        for index, (blocks, law) in enumerate(self.laws):
            here = np.flatnonzero(place == index)
            rows[here, : blocks.shape[1]] = blocks[rng.choice(len(law), len(here), p=law)]
        return place, rows, np.full((trials, 1), NO_TOKEN)


def test_the_promised_distance_is_found() -> None:
    # Each run misses with probability at most 1e-3 by proof, so all 12 are found but for 1.2 %
    # of seeds; the seed is fixed. At a fortieth of the distance nearly none is.
    fixture, tv, found = CHAIN_FIXTURES["eos"].drafted(), 0.2, Counter()
    for seed, distance in itertools.product(range(12), (tv, tv / 40)):
        trial = Trial(fixture, 1e-6, mutants={})
        report = trial.run(Mixed(trial, distance), trial.needed(tv), np.random.default_rng(seed))
        found[distance] += report.lossy
    assert found[tv] == 12
    assert found[tv / 40] <= 3


def test_cases_are_declared_once_and_kept_empty() -> None:
    fixture = CHAIN_FIXTURES["eos"]
    first, second = Trial(fixture, 0.1), Trial(fixture, 0.2)
    assert all(a.log_bets is b.log_bets for a, b in zip(first.cases, second.cases, strict=True))
    first.run(Blocks(Verifier(clean, Capabilities()), fixture), 800, np.random.default_rng(1))
    assert all(case.trials == 200 for case in first.cases)
    assert all(case.trials == 0 for case in (*second.cases, *Trial(fixture, 0.3).cases))
    assert declared_case.cache_info().hits >= 2 * len(fixture.places)
    other = Trial(fixture, 0.1, tolerance=0.01)
    assert other.cases[0].log_bets is not first.cases[0].log_bets


# False alarms, at a large alpha and with few trials.


@pytest.mark.deep
def test_false_alarms_are_fewer_than_alpha() -> None:
    # That bets in strata have mean at most 1 is shown exactly, in statistics/test_features.py.
    asked = [
        one.id
        for one in CHECKS
        if VERIFY in one.contracts
        and (one.statistical or one.id.startswith("acceptance/"))
        and not one.id.startswith("strata/")
    ]
    alarms = 0
    for seed, sampler in enumerate([clean, *LOOK_ALIKES.values()] * 2):
        report = check(sampler, only=asked, alpha=0.2, trials=300, seed=seed, timeout=None)
        alarms += any(result.status == Status.FAILED for result in report.results)
    # 10 runs at alpha 0.2: more than 8 alarms have probability below 1e-5.
    assert stats.binom.sf(8, 10, 0.2) < 1e-5
    assert alarms <= 8


# Reports.

ASKED = ["smoke", "boundary/tiny", "joint/wide", "acceptance/wide", "independence/rows-wide"]


def statuses(results: tuple[CheckResult, ...]) -> dict[str, Status]:
    applied = (r for r in results if r.status != Status.NOT_APPLICABLE)
    return {result.id: result.status for result in applied}


def test_a_report_repeats_itself_and_a_check_is_the_same_alone() -> None:
    few = ["smoke/answers", *ASKED[1:]]
    first, second, other = (check(clean, only=few, detect_tv=0.3, seed=seed) for seed in (1, 1, 2))
    evidence = [
        [dict(r.evidence, seconds=0) for r in report.results] for report in (first, second, other)
    ]
    assert evidence[0] == evidence[1] != evidence[2]
    (alone,) = check(clean, only=["joint/wide"], detect_tv=0.3, seed=1).results
    among = {one.id: one for one in first.results}
    assert among["joint/wide"].message == alone.message


@pytest.mark.usefixtures("undiagnosed")
def test_causes_block_what_depends_on_them() -> None:
    report = check(BUGS["bonus of the longest row"](), only=ASKED)
    found = statuses(report.results)
    assert found["smoke/no-drafts"] == Status.FAILED
    assert found["boundary/tiny"] == found["joint/wide"] == Status.NOT_RUN
    assert "blocked by smoke/no-drafts" in {r.message for r in report.results}
    report = check(BUGS["bonus of the longest row"](), only=ASKED, blocking=False, detect_tv=0.3)
    assert statuses(report.results)["joint/wide"] == Status.FAILED


@pytest.mark.deep
def test_expected_failures_do_not_stand_in_the_way() -> None:
    bug, expected = BUGS["lenient"](), {"joint/wide": "known"}
    only = ["smoke", "joint/wide", "independence/rows-wide"]
    report = check(bug, only=only, detect_tv=0.2, expected_failures=expected)
    assert statuses(report.results)["joint/wide"] == Status.EXPECTED_FAILURE
    assert report.exit_code == 0
    assert report.counts["not_run"] == 0
    stale = check(clean, only=["boundary/tiny"], expected_failures={"boundary/tiny": "fixed?"})
    assert statuses(stale.results) == {"boundary/tiny": Status.UNEXPECTED_PASS}
    assert stale.exit_code == 2


@pytest.mark.deep
def test_a_known_failure_that_few_draws_do_not_show_is_not_called_gone() -> None:
    asked = {"only": ["joint/wide"], "expected_failures": {"joint/wide": "known"}}
    stale, short = check(clean, detect_tv=0.3, **asked), check(clean, seconds=2, **asked)
    assert statuses(stale.results) == {"joint/wide": Status.UNEXPECTED_PASS}
    assert statuses(short.results) == {"joint/wide": Status.INCONCLUSIVE}
    assert short.results[0].message == "not seen in what was drawn within the seconds: known"
    assert short.exit_code == 2


def test_only_a_failure_is_expected_and_only_a_pass_unexpected() -> None:
    """A check that does not apply, or has not decided, is as it is."""
    ids = {"boundary/greedy-blocks": "not applicable", "joint/wide": "inconclusive"}
    report = check(clean, only=list(ids), trials=200, expected_failures=ids)
    found = {result.id: result.status for result in report.results}
    assert found == {
        "boundary/greedy-blocks": Status.NOT_APPLICABLE,
        "joint/wide": Status.INCONCLUSIVE,
    }


def test_a_branch_that_was_not_taken_is_a_warning() -> None:
    # Whoever accepts nothing never gets to a bonus token, but for rows without drafts.
    never = verifying(
        accept=lambda u, p, q: u < 0, residual=lambda p, q, x: p, rule=None, ragged=False
    )
    report = check(never, only=["joint/wide"], detect_tv=0.3)
    assert report.failures == ()
    assert len(report.warnings) == 1
    assert "blocks ended in a bonus token" in report.warnings[0]


def test_bugs_are_found_in_the_order_of_causes() -> None:
    stages = [one.stage for one in CHECKS]
    for later in (Stage.REPLAY, Stage.BOUNDARY, Stage.JOINT):
        assert stages.index(Stage.SMOKE) < stages.index(later)
    assert stages.index(Stage.JOINT) < stages.index(Stage.INDEPENDENCE)


def test_torch_has_one_thread_while_checks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specref.conformance.explaining.BLOCKS", 2_000)
    monkeypatch.setattr("specref.conformance.explaining.SECONDS", 0.2)
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    before, seen = torch.get_num_threads(), set()

    def counting(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        seen.add(torch.get_num_threads())
        # All drafts are kept: it is diagnosed, too.
        return clean(target_probs, target_probs[:, :-1], draft_tokens, rng=rng)

    torch.set_num_threads(2)
    try:
        report = check(counting, only=["smoke/answers", "joint/wide"], detect_tv=0.2)
        assert report.diagnosis is not None
        assert (seen, torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(before)


def test_edges_of_one_call_are_one_warning() -> None:
    def rare(id_: str, said: str) -> CheckResult:
        stage = Stage(id_.partition("/")[0])
        return CheckResult(id_, stage, Status.PASSED, said, {}, 0.0, Finding.EDGE)

    noise = "torch.Tensor.exponential_, shape (1, 4), at a.py:8 = 0.0: token {} at position 0"
    found = rare_edges(
        [
            rare("boundary/zero-coin", noise.format(0)),
            rare("boundary/empty-residual", f"where rows are rounded: {noise.format(3)}"),
            rare("boundary/tiny", "torch.rand, shape (1,), at a.py:9 = 0.0: token 1"),
        ]
    )
    assert [one.partition(": ")[0] for one in found] == [
        "boundary/zero-coin, boundary/empty-residual",
        "boundary/tiny",
    ]
