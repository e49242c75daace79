"""Running a campaign of blocks, or two samples of texts, until it is decided: one set of promises.

The result is the same on any executor; what was drawn before a failure is kept and never
certified; whoever fails is named.
"""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import get_ident
from typing import Any, cast

import numpy as np
import pytest

from specref.arrays import Floats, Ints
from specref.models import Model
from specref.statistics import Campaign, InconclusiveWarning, TwoSample, Verdict
from specref.statistics.campaign.driver import assert_lossless, batches, run
from specref.statistics.two_sample.driver import assert_same_law, run_two_sample
from specref.tables import tabulate
from specref.tracebacks import PACKAGE
from specref.verification import BlockSampler
from specref.vocabulary import Tokens
from specref.zoo import FIXTURES, MUTANTS

FIXTURE = FIXTURES["c"]
TARGET, DRAFTER = (
    BlockSampler({"c": tabulate("standard", model, FIXTURE.drafter, (), FIXTURE.lookahead)})
    for model in (FIXTURE.target, FIXTURE.drafter)
)
Sampler = Callable[[int, np.random.Generator], Any]
BUDGET = 20_000


def blocks(trials: int, rng: np.random.Generator) -> Ints:
    return TARGET("c", trials, rng)


def drafted_blocks(trials: int, rng: np.random.Generator) -> Ints:
    return DRAFTER("c", trials, rng)


def fair(trials: int, rng: np.random.Generator) -> Ints:
    return rng.integers(0, 3, (trials, 2))


def biased(trials: int, rng: np.random.Generator) -> Ints:
    return rng.choice(3, (trials, 2), p=[0.4, 0.3, 0.3])


def named(sampler: Sampler, name: str, trials: int, rng: np.random.Generator) -> Any:
    assert name == "c"
    return sampler(trials, rng)


def campaign(eps: float | None) -> Campaign:
    started = Campaign(eps=eps, seed=7)
    started.case(FIXTURE.target, FIXTURE.drafter, (), FIXTURE.lookahead, name="c", mutants=MUTANTS)
    return started


def of_blocks(sampler: Sampler, *, eps: float | None = None, asserting: Any = run, **how: Any):
    return asserting(
        campaign(eps), partial(named, sampler), **{"budget": BUDGET, "seed": 7, **how}
    )


def of_texts(
    sampler: Sampler, *, eps: float | None = None, asserting: Any = run_two_sample, **how: Any
):
    test = TwoSample(eps=eps)
    return asserting(test, sampler, fair, **{"budget": BUDGET, "seed": 7, **how})


@dataclass(frozen=True)
class Kind:
    """What is run and how pytest is told; a right sampler, its name, and a wrong one."""

    ask: Callable[..., Any]
    asserts: Callable[..., Any]
    right: Sampler
    wrong: Sampler
    name: str


BLOCKS = Kind(of_blocks, assert_lossless, blocks, drafted_blocks, "c")
SAMPLES = Kind(of_texts, assert_same_law, fair, biased, "speculative")
every_kind = pytest.mark.parametrize("kind", [BLOCKS, SAMPLES], ids=["blocks", "texts"])


@pytest.mark.deep(one_in=2)
@every_kind
def test_the_result_does_not_depend_on_the_executor(kind: Kind) -> None:
    def outcome(executor: Any = None, seed: int = 7) -> Any:
        return replace(kind.ask(kind.right, executor=executor, seed=seed), seconds=0.0)

    serial = outcome()
    assert serial.trials == BUDGET
    with ThreadPoolExecutor(3) as threads:
        assert outcome(threads) == serial
    for workers in (1, 2):
        with ProcessPoolExecutor(workers) as processes:
            assert outcome(processes) == serial
    assert replace(outcome(seed=8), seed=7) != serial


@every_kind
def test_a_lossy_sampler_stops_early(kind: Kind) -> None:
    told: list[int] = []
    report = kind.ask(kind.wrong, budget=10_000_000, advance=told.append)
    assert report.verdict == Verdict.LOSSY
    assert report.trials == sum(told) <= 10_000
    assert report.seed == 7


@every_kind
def test_a_sampler_that_raises_keeps_what_it_gave(kind: Kind) -> None:
    def fails_later(trials: int, rng: np.random.Generator) -> Any:
        if trials > 2_000:
            raise RuntimeError("out of memory")
        return kind.right(trials, rng)

    report = kind.ask(fails_later)
    assert (report.verdict, report.trials) == (Verdict.INCONCLUSIVE, 3_000)
    head, *lines = report.stopped.splitlines()
    assert head == f"the sampler raised RuntimeError on {kind.name}: out of memory"
    assert lines[-1] == "RuntimeError: out of memory"
    assert any("in fails_later" in line for line in lines)
    assert str(PACKAGE) not in report.stopped
    assert "stopped early" in str(report)
    assert "\n      File" in str(report)


@pytest.mark.deep(one_in=2)
@every_kind
def test_a_failed_sampler_is_never_certified(kind: Kind) -> None:
    calls: list[int] = []

    def fails_at_the_end(trials: int, rng: np.random.Generator) -> Any:
        calls.append(trials)
        if sum(calls) == 200_000:
            raise RuntimeError("late")
        return kind.right(trials, rng)

    report = kind.ask(fails_at_the_end, eps=0.05, budget=200_000)
    assert report.trials > 100_000
    upper = report.upper if kind is SAMPLES else report.intervals[0].upper
    assert upper < 0.05
    assert report.verdict == Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("kind", "spoil", "part"),
    [
        (BLOCKS, lambda given: given[:500], "gave 500 of 2000 blocks on c"),
        (BLOCKS, lambda given: given[:0], "gave 0 of 2000 blocks on c"),
        (BLOCKS, lambda given: given + 99, "bad blocks on c: blocks[0, 0]"),
        (BLOCKS, lambda given: given * 1.0, "expected integers"),
        (SAMPLES, lambda given: given[:500], "the speculative sampler gave 500 of 2000 texts"),
        (SAMPLES, lambda given: given[:0], "the speculative sampler gave 0 of 2000 texts"),
        (SAMPLES, lambda given: given * 1.0, "bad texts: speculative[0, 0] ="),
        (SAMPLES, lambda given: given - 5, "bad texts: speculative[0, 0] = -"),
        (SAMPLES, lambda given: None, "a sampler gave bad texts"),
    ],
)
def test_a_sampler_that_gives_too_little_or_nonsense(kind: Kind, spoil: Any, part: str) -> None:
    def spoilt(trials: int, rng: np.random.Generator) -> Any:
        given = kind.right(trials, rng)
        return spoil(given) if trials == 2_000 else given

    report = kind.ask(spoilt)
    assert part in str(report.stopped)
    assert report.verdict == Verdict.INCONCLUSIVE
    assert 1_000 <= report.trials <= 1_500


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("threads", [False, True])
@every_kind
def test_a_sampler_that_stops_answering(kind: Kind, threads: bool) -> None:
    def hangs_later(trials: int, rng: np.random.Generator) -> Any:
        time.sleep(1.5 if trials > 1_000 else 0)
        return kind.right(trials, rng)

    with ThreadPoolExecutor(2) as pool:
        executor = pool if threads else None
        report = kind.ask(hangs_later, budget=3_000, executor=executor, timeout=0.3)
    assert (report.verdict, report.trials) == (Verdict.INCONCLUSIVE, 1_000)
    assert f"did not answer within 0.3 s on {kind.name}" in str(report.stopped)


@every_kind
def test_a_sampler_with_a_timeout_of_its_own(kind: Kind) -> None:
    def times_out(trials: int, rng: np.random.Generator) -> Any:
        if trials > 1_000:
            raise TimeoutError("socket")
        return kind.right(trials, rng)

    stopped = kind.ask(times_out).stopped
    assert stopped.startswith(f"the sampler raised TimeoutError on {kind.name}: socket\n")


@pytest.mark.deep(one_in=2)
@every_kind
def test_seconds_end_a_run(kind: Kind) -> None:
    started = time.perf_counter()
    report = kind.ask(kind.right, budget=10**9, seconds=0.2)
    assert 0 < report.trials < 10**9
    assert 0.2 < report.seconds <= time.perf_counter() - started
    assert report.stopped is None


@pytest.mark.deep(one_in=2)
@every_kind
def test_for_pytest_lossy_and_stopped_fail_and_open_warns(kind: Kind) -> None:
    asked = partial(kind.ask, asserting=kind.asserts)
    report = asked(kind.right, eps=0.05, budget=60_000)
    assert report.verdict == Verdict.LOSSLESS_WITHIN_EPS
    with pytest.raises(AssertionError, match="LOSSY"):
        asked(kind.wrong)
    with pytest.raises(AssertionError, match="stopped early"):
        asked(lambda trials: trials, budget=1_000)
    with pytest.warns(InconclusiveWarning, match="INCONCLUSIVE"):
        asked(kind.right, budget=1_000)
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        asked(kind.right, budget=1_000, strict=True)


@pytest.mark.parametrize(
    "asserts",
    [
        lambda: assert_lossless(campaign(None), partial(named, blocks), budget=1_000, seed=3),
        lambda: assert_same_law(TwoSample(eps=None), fair, fair, budget=1_000, seed=3),
    ],
)
def test_a_warning_is_of_the_line_that_asserts(asserts: Callable[[], Any]) -> None:
    with pytest.warns(InconclusiveWarning) as warned:
        asserts()
    assert [one.filename for one in warned] == [__file__]


@pytest.mark.deep(one_in=2)
@every_kind
def test_for_pytest_executor_seconds_and_timeout_are_passed_on(kind: Kind) -> None:
    threads: set[int] = set()

    def noted(trials: int, rng: np.random.Generator) -> Any:
        threads.add(get_ident())
        return kind.right(trials, rng)

    asked = partial(kind.ask, asserting=kind.asserts)
    with ThreadPoolExecutor(1) as pool, pytest.warns(InconclusiveWarning):
        report = asked(noted, budget=10**9, seconds=0.1, executor=pool)
    assert report.trials < 10**9
    assert get_ident() not in threads

    def hangs(trials: int, rng: np.random.Generator) -> Any:
        time.sleep(1)
        return kind.right(trials, rng)

    with pytest.raises(AssertionError, match=r"did not answer within 0\.1 s"):
        asked(hangs, budget=1_000, timeout=0.1)


@every_kind
def test_budgets(kind: Kind) -> None:
    assert kind.ask(kind.right, budget=1).trials == 1
    with pytest.raises(ValueError, match="budget = 0"):
        kind.ask(kind.right, budget=0)
    with pytest.raises(ValueError, match=r"eps = 0.001 needs a budget of .*[\d,]+ .*, not 5,000"):
        kind.ask(kind.right, eps=0.001, budget=5_000)


def test_both_sides_and_all_batches_of_texts_have_seeds_of_their_own() -> None:
    first: list[tuple[int, ...]] = []

    def recorded(trials: int, rng: np.random.Generator) -> Ints:
        texts = fair(trials, rng)
        first.append(tuple(texts[:20].ravel().tolist()))
        return texts

    run_two_sample(TwoSample(eps=None), recorded, recorded, budget=10_000, seed=1)
    assert len(set(first)) == len(first) == 8


def test_a_plain_sampler_that_raises_is_named_and_a_seed_of_the_test_stays() -> None:
    def fails(trials: int, rng: np.random.Generator) -> Ints:
        raise RuntimeError("no")

    report = run_two_sample(TwoSample(seed=5), fair, fails, budget=10_000, seed=1)
    assert report.stopped.startswith("the sampler raised RuntimeError on plain: no")
    assert report.seed == 5


def judged(executor: Any = None, **how: Any) -> Any:
    return replace(of_blocks(blocks, executor=executor, **how), seconds=0.0)


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
        assert judged(client.get_executor()) == judged()


def test_ray_needs_ten_lines_to_be_an_executor() -> None:
    ray = pytest.importorskip("ray", reason="not_run (ray is not installed)")

    class RayExecutor(Executor):
        def submit(self, function, /, *arguments, **options) -> Future:
            task = ray.remote(num_cpus=1)(lambda: function(*arguments, **options))
            return task.remote().future()

    ray.init(num_cpus=2, include_dashboard=False)
    try:
        assert judged(RayExecutor()) == judged()
    finally:
        ray.shutdown()


def test_a_campaign_without_cases_is_refused() -> None:
    with pytest.raises(ValueError, match="campaign is empty"):
        run(Campaign(), TARGET, budget=10, seed=0)


@pytest.mark.deep
def test_needed_budget_certifies() -> None:
    planned = campaign(eps=0.03)
    budget = planned.needed(planned.cases[0])
    assert budget is not None
    with pytest.raises(ValueError, match=f"needs a budget of {budget:,}"):
        of_blocks(blocks, eps=0.03, budget=budget - 1)
    verdicts = [
        of_blocks(blocks, eps=0.03, budget=budget, seed=seed).verdict for seed in range(20)
    ]
    # Planned for 9 in 10; at least 13 of 20 with probability 0.998.
    assert verdicts.count(Verdict.LOSSLESS_WITHIN_EPS) >= 13
    assert Verdict.LOSSY not in verdicts


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
        assert judged(waiting, in_flight=in_flight) == judged()
        assert waiting.most == most
    with pytest.raises(ValueError, match="in_flight = 0: expected at least 1"):
        of_blocks(blocks, in_flight=0)
