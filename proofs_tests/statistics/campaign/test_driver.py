"""Running a campaign: the same result on any executor, partial results kept, errors named."""

import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from specref.arrays import Floats, Ints
from specref.models import Model
from specref.statistics import Campaign, InconclusiveWarning, Verdict, assert_lossless, run
from specref.statistics.campaign.acceptance import measure_acceptance
from specref.statistics.campaign.drawing import batches
from specref.tables import tabulate
from specref.tracebacks import PACKAGE
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


def test_the_result_does_not_depend_on_the_executor() -> None:
    serial = outcome()
    assert serial[0] == BUDGET
    with ThreadPoolExecutor(3) as threads:
        assert outcome(threads) == serial
    for workers in (1, 2):
        with ProcessPoolExecutor(workers) as processes:
            assert outcome(processes) == serial


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


def test_another_seed_gives_other_samples() -> None:
    first, second = (
        run(campaign(), twin(), budget=BUDGET, seed=seed).intervals for seed in (1, 2)
    )
    assert first != second


def test_a_lossy_sampler_stops_early() -> None:
    drafter = (FIXTURE.drafter, FIXTURE.drafter, (), FIXTURE.lookahead)
    wrong = BlockSampler({"c": tabulate("standard", *drafter)})
    report = run(campaign(), wrong, budget=10_000_000, seed=1)
    assert report.verdict == Verdict.LOSSY
    assert report.trials <= 10_000


def test_a_sampler_that_raises_keeps_what_it_gave() -> None:
    right = twin()

    def fails_later(name: str, trials: int, rng: np.random.Generator) -> np.ndarray:
        if trials > 2_000:
            raise RuntimeError("out of memory")
        return right(name, trials, rng)

    report = run(campaign(), fails_later, budget=BUDGET, seed=1)
    assert report.verdict == Verdict.INCONCLUSIVE
    assert report.trials == 3_000
    head, *lines = report.stopped.splitlines()
    assert head == "the sampler raised RuntimeError on c: out of memory"
    assert lines[-1] == "RuntimeError: out of memory"
    assert "in fails_later" in lines[1]
    assert str(PACKAGE) not in report.stopped
    assert "stopped early" in str(report)


def test_a_failed_sampler_is_never_certified() -> None:
    right, calls = twin(), []

    def fails_at_the_end(name: str, trials: int, rng: np.random.Generator) -> np.ndarray:
        calls.append(trials)
        if sum(calls) == 200_000:
            raise RuntimeError("late")
        return right(name, trials, rng)

    report = run(campaign(eps=0.03), fails_at_the_end, budget=200_000, seed=1)
    assert report.trials > 100_000
    assert report.intervals[0].upper < 0.03
    assert report.verdict == Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        (lambda blocks: blocks[:500], "gave 500 of 2000 blocks on c"),
        (lambda blocks: blocks[:0], "gave 0 of 2000 blocks on c"),
        (lambda blocks: blocks + 99, "bad blocks on c: blocks[0, 0]"),
        (lambda blocks: blocks * 1.0, "expected integers"),
    ],
)
def test_a_sampler_that_gives_too_little_or_nonsense(spoil, part: str) -> None:
    right = twin()

    def spoilt(name: str, trials: int, rng: np.random.Generator) -> np.ndarray:
        blocks = right(name, trials, rng)
        return spoil(blocks) if trials == 2_000 else blocks

    report = run(campaign(), spoilt, budget=BUDGET, seed=1)
    assert part in str(report.stopped)
    assert report.verdict == Verdict.INCONCLUSIVE
    assert 1_000 <= report.trials <= 1_500


def test_a_sampler_with_a_timeout_of_its_own() -> None:
    def times_out(name: str, trials: int, rng: np.random.Generator) -> np.ndarray:
        raise TimeoutError("socket")

    report = run(campaign(), times_out, budget=BUDGET, seed=1)
    assert report.stopped.startswith("the sampler raised TimeoutError on c: socket\n")


@pytest.mark.parametrize("threads", [False, True])
def test_a_sampler_that_stops_answering(threads: bool) -> None:
    right = twin()

    def hangs_later(name: str, trials: int, rng: np.random.Generator) -> np.ndarray:
        time.sleep(1.5 if trials > 1_000 else 0)
        return right(name, trials, rng)

    with ThreadPoolExecutor(1) as pool:
        executor = pool if threads else None
        report = run(campaign(), hangs_later, budget=3_000, seed=1, executor=executor, timeout=0.3)
    assert report.verdict == Verdict.INCONCLUSIVE
    assert report.trials == 1_000
    assert "did not answer within 0.3 s" in str(report.stopped)


def test_seconds_end_a_run() -> None:
    started = time.perf_counter()
    report = run(campaign(), twin(), budget=10**9, seed=1, seconds=0.2)
    assert 0 < report.trials < 10**9
    assert 0.2 < report.seconds <= time.perf_counter() - started


def test_assert_lossless() -> None:
    report = assert_lossless(campaign(eps=0.02), twin(), budget=100_000, seed=3)
    assert report.verdict == Verdict.LOSSLESS_WITHIN_EPS
    drafter = (FIXTURE.drafter, FIXTURE.drafter, (), FIXTURE.lookahead)
    wrong = BlockSampler({"c": tabulate("standard", *drafter)})
    with pytest.raises(AssertionError, match="LOSSY"):
        assert_lossless(campaign(), wrong, budget=10_000, seed=3)
    with pytest.raises(AssertionError, match="stopped early"):
        assert_lossless(campaign(), lambda wrong: wrong, budget=1_000, seed=3)
    with pytest.warns(InconclusiveWarning, match="INCONCLUSIVE") as warned:
        assert_lossless(campaign(), twin(), budget=1_000, seed=3)
    assert [one.filename for one in warned] == [__file__]
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        assert_lossless(campaign(), twin(), budget=1_000, seed=3, strict=True)


def test_assert_lossless_takes_an_executor() -> None:
    serial = assert_lossless(campaign(eps=0.05), twin(), budget=30_000, seed=3)
    with ThreadPoolExecutor(2) as threads:
        report = assert_lossless(
            campaign(eps=0.05), twin(), budget=30_000, seed=3, executor=threads
        )
    assert report.intervals == serial.intervals


def test_assert_lossless_stops_after_so_many_seconds() -> None:
    with pytest.warns(InconclusiveWarning):
        report = assert_lossless(campaign(), twin(), budget=10**9, seed=3, seconds=0.1)
    assert report.trials < 10**9


def test_assert_lossless_does_not_wait_for_ever() -> None:
    def hangs(name: str, trials: int, rng: np.random.Generator) -> np.ndarray:
        time.sleep(1)
        return twin()(name, trials, rng)

    with pytest.raises(AssertionError, match=r"did not answer within 0\.1 s"):
        assert_lossless(campaign(), hangs, budget=1_000, seed=3, timeout=0.1)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="campaign is empty"):
        run(Campaign(), twin(), budget=10, seed=0)
    with pytest.raises(ValueError, match="budget = 0"):
        run(campaign(), twin(), budget=0, seed=0)
    with pytest.raises(ValueError, match=r"eps = 0.001 needs a budget of [\d,]+ on c, not 5,000"):
        run(campaign(eps=0.001), twin(), budget=5_000, seed=0)


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


def test_one_block_a_case_is_a_budget():
    assert run(campaign(), twin(), budget=1, seed=1).trials == len(campaign().cases)


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
    for in_flight, most in ((1, 1), (3, 3), (100, 5)):
        waiting = Waiting()
        report = run(
            campaign(), twin(), budget=BUDGET, seed=7, executor=waiting, in_flight=in_flight
        )
        assert waiting.most == most
        assert report.log10_evidence == outcome()[1]
    with pytest.raises(ValueError, match="in_flight = 0: expected at least 1"):
        run(campaign(), twin(), budget=BUDGET, seed=7, in_flight=0)
