"""Running a campaign: models that a sampler changes, executors of others, batches in flight."""

from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from specref.arrays import Floats, Ints
from specref.models import Model
from specref.statistics import Campaign, Verdict, run
from specref.statistics.campaign.acceptance import measure_acceptance
from specref.statistics.campaign.driver import batches
from specref.tables import tabulate
from specref.verification import BlockSampler
from specref.vocabulary import Tokens
from specref.zoo import FIXTURES, MUTANTS

FIXTURE = FIXTURES["c"]
ARGUMENTS = (FIXTURE.target, FIXTURE.drafter, (), FIXTURE.lookahead)
BUDGET = 20_000


def campaign(eps: float | None = None) -> Campaign:
    started = Campaign(eps=eps, seed=7)
    started.case(*ARGUMENTS, name="c", mutants=MUTANTS)
    return started


def twin(algorithm: str = "standard") -> BlockSampler:
    return BlockSampler({"c": tabulate(algorithm, *ARGUMENTS)})


def outcome(executor=None) -> tuple:
    report = run(campaign(), twin(), budget=BUDGET, seed=7, executor=executor)
    return report.trials, report.log10_evidence, report.intervals, report.acceptance


class Table:
    """A model of one's own, whose row is its own array."""

    def __init__(self, model: Model) -> None:
        self.vocabulary, self.row = model.vocabulary, model.next_token(()).astype(np.float64)

    def next_token(self, context: Tokens) -> Floats:
        return self.row


def test_a_model_that_a_sampler_changes_is_judged_as_it_was() -> None:
    """The case is declared, with all its laws, before the sampler runs."""
    table = Table(FIXTURE.target)
    started = Campaign(eps=None, seed=7)
    started.case(cast(Model, table), FIXTURE.drafter, name="c", mutants=MUTANTS)

    def in_place(name: str, trials: int, rng: np.random.Generator) -> Ints:
        table.row[:] = np.eye(len(table.row))[table.row.argmax()]
        return np.full((trials, 2), table.row.argmax())

    assert run(started, in_place, budget=BUDGET, seed=7).verdict == Verdict.LOSSY


def test_batches_add_up() -> None:
    for budget in (1, 999, 1_000, 1_001, 500_000):
        assert sum(batches(budget)) == budget


@pytest.mark.deep
def test_a_dask_client_is_an_executor_too() -> None:
    distributed = pytest.importorskip("distributed", reason="not_run (dask is not installed)")
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None) as client:
        assert outcome(client.get_executor()) == outcome()


def test_ray_needs_ten_lines_to_be_an_executor() -> None:
    ray = pytest.importorskip("ray", reason="not_run (ray is not installed)")

    class RayExecutor(Executor):
        def submit(self, function, /, *arguments, **options) -> Future:
            task = ray.remote(num_cpus=1)(lambda: function(*arguments, **options))
            return task.remote().future()

    ray.init(num_cpus=2, include_dashboard=False)
    try:
        assert outcome(RayExecutor()) == outcome()
    finally:
        ray.shutdown()


def test_a_campaign_without_cases_is_refused() -> None:
    with pytest.raises(ValueError, match="campaign is empty"):
        run(Campaign(), twin(), budget=10, seed=0)


@pytest.mark.deep
def test_needed_budget_certifies() -> None:
    planned = campaign(eps=0.03)
    budget = planned.needed(planned.cases[0])
    assert budget is not None
    with pytest.raises(ValueError, match=f"needs a budget of {budget:,}"):
        run(campaign(eps=0.03), twin(), budget=budget - 1, seed=0)
    verdicts = [
        run(campaign(eps=0.03), twin(), budget=budget, seed=seed).verdict for seed in range(20)
    ]
    # Planned for 9 in 10; at least 13 of 20 with probability 0.998.
    assert verdicts.count(Verdict.LOSSLESS_WITHIN_EPS) >= 13
    assert Verdict.LOSSY not in verdicts


def test_an_interval_contains_its_ends():
    """No draft of 100 was accepted, nor may one be: the interval begins at the closed form."""
    measured = measure_acceptance("none", np.array([100, 0]), [1.0, 0.0], 1e-9)
    assert measured.rate_interval[0] == measured.rate_formula == 0
    assert measured.agrees
    assert not replace(measured, rate_formula=-1e-9).agrees


class Waiting(Executor):
    """Counts the jobs that were submitted and not waited for."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def submit(self, function, /, *arguments, **options) -> Future:
        self.now += 1
        self.most = max(self.most, self.now)
        future: Future = Future()
        future.set_result(function(*arguments, **options))
        result = future.result

        def waited(timeout=None):
            self.now -= 1
            return result(timeout)

        future.result = waited
        return future


def test_as_many_batches_are_in_flight_as_are_asked_for() -> None:
    """Of a budget in 5 batches: 1,000, doubling."""
    for in_flight, most in ((3, 3), (100, 5)):
        waiting = Waiting()
        report = run(
            campaign(), twin(), budget=BUDGET, seed=7, executor=waiting, in_flight=in_flight
        )
        assert waiting.most == most
        assert report.log10_evidence == outcome()[1]
    with pytest.raises(ValueError, match="in_flight = 0: expected at least 1"):
        run(campaign(), twin(), budget=BUDGET, seed=7, in_flight=0)
