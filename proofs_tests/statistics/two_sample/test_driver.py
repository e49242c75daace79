"""Running a two-sample test: the same result on any executor, partial results kept."""

import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from specref.statistics import InconclusiveWarning, TwoSample, Verdict
from specref.statistics.two_sample.driver import assert_same_law, run_two_sample

BUDGET = 10_000


def fair(trials: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 3, (trials, 2))


def biased(trials: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(3, (trials, 2), p=[0.4, 0.3, 0.3])


def outcome(executor=None, seed: int = 7) -> tuple:
    test = TwoSample(eps=None)
    report = run_two_sample(test, fair, fair, budget=BUDGET, seed=seed, executor=executor)
    return report.trials, report.log10_evidence, report.estimate, report.suspects


def test_the_result_does_not_depend_on_the_executor() -> None:
    serial = outcome()
    assert serial[0] == BUDGET
    with ThreadPoolExecutor(3) as threads:
        assert outcome(threads) == serial
    with ProcessPoolExecutor(2) as processes:
        assert outcome(processes) == serial
    assert outcome(seed=8) != serial


def test_both_sides_and_all_batches_have_seeds_of_their_own() -> None:
    first: list[tuple] = []

    def recorded(trials: int, rng: np.random.Generator) -> np.ndarray:
        texts = fair(trials, rng)
        first.append(tuple(texts[:20].ravel().tolist()))
        return texts

    run_two_sample(TwoSample(eps=None), recorded, recorded, budget=BUDGET, seed=1)
    assert len(set(first)) == len(first) == 8


def test_a_lossy_sampler_stops_early() -> None:
    told: list[int] = []
    report = run_two_sample(TwoSample(), biased, fair, budget=10**7, seed=1, advance=told.append)
    assert report.verdict == Verdict.LOSSY
    assert report.trials == sum(told) <= 10_000
    assert report.seed == 1
    assert run_two_sample(TwoSample(seed=5), biased, fair, budget=10_000, seed=1).seed == 5


@pytest.mark.parametrize("side", ["speculative", "plain"])
def test_a_sampler_that_raises_keeps_what_both_gave(side: str) -> None:
    def fails_later(trials: int, rng: np.random.Generator) -> np.ndarray:
        if trials > 2_000:
            raise RuntimeError("out of memory")
        return fair(trials, rng)

    samplers = {"speculative": fair, "plain": fair} | {side: fails_later}
    report = run_two_sample(TwoSample(eps=None), **samplers, budget=BUDGET, seed=1)
    assert report.verdict == Verdict.INCONCLUSIVE
    assert report.trials == 3_000
    head, *lines = report.stopped.splitlines()
    assert head == f"the sampler raised RuntimeError on {side}: out of memory"
    assert "in fails_later" in lines[1]


def test_a_failed_sampler_is_never_certified() -> None:
    def fails_at_the_end(trials: int, rng: np.random.Generator) -> np.ndarray:
        if trials < 1_000:
            raise RuntimeError("late")
        return fair(trials, rng)

    report = run_two_sample(TwoSample(eps=0.1), fails_at_the_end, fair, budget=63_999, seed=1)
    assert report.trials == 63_000
    assert report.upper < 0.1
    assert report.verdict == Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        (lambda texts: texts[:500], "the plain sampler gave 500 of 2000 texts"),
        (lambda texts: texts[:0], "the plain sampler gave 0 of 2000 texts"),
        (lambda texts: texts * 1.0, "bad texts: plain[0, 0] ="),
        (lambda texts: texts - 5, "bad texts: plain[0, 0] = -"),
        (lambda texts: None, "a sampler gave bad texts"),
    ],
)
def test_a_sampler_that_gives_too_little_or_nonsense(spoil, part: str) -> None:
    def spoilt(trials: int, rng: np.random.Generator) -> np.ndarray:
        texts = fair(trials, rng)
        return spoil(texts) if trials == 2_000 else texts

    report = run_two_sample(TwoSample(eps=None), fair, spoilt, budget=BUDGET, seed=1)
    assert part in str(report.stopped)
    assert (report.verdict, report.trials) == (Verdict.INCONCLUSIVE, 1_000)


@pytest.mark.parametrize("threads", [False, True])
def test_a_sampler_that_stops_answering(threads: bool) -> None:
    def hangs_later(trials: int, rng: np.random.Generator) -> np.ndarray:
        time.sleep(1.5 if trials > 1_000 else 0)
        return fair(trials, rng)

    with ThreadPoolExecutor(2) as pool:
        report = run_two_sample(
            TwoSample(eps=None), hangs_later, fair, budget=3_000, seed=1,
            executor=pool if threads else None, timeout=0.3,
        )  # fmt: skip
    assert (report.verdict, report.trials) == (Verdict.INCONCLUSIVE, 1_000)
    assert "did not answer within 0.3 s on speculative" in str(report.stopped)


def test_seconds_end_a_run() -> None:
    started = time.perf_counter()
    report = run_two_sample(TwoSample(), fair, fair, budget=10**9, seed=1, seconds=0.2)
    assert 0 < report.trials < 10**9
    assert 0.2 < report.seconds <= time.perf_counter() - started
    assert report.stopped is None


def test_assert_same_law() -> None:
    report = assert_same_law(TwoSample(eps=0.1), fair, fair, budget=20_000, seed=3, strict=True)
    assert report.verdict == Verdict.LOSSLESS_WITHIN_EPS
    with pytest.raises(AssertionError, match="LOSSY"):
        assert_same_law(TwoSample(), biased, fair, budget=20_000, seed=3)
    with pytest.raises(AssertionError, match="stopped early"):
        assert_same_law(TwoSample(eps=None), fair, lambda one: one, budget=1_000, seed=3)
    with pytest.warns(InconclusiveWarning, match="INCONCLUSIVE") as warned:
        assert_same_law(TwoSample(eps=None), fair, fair, budget=1_000, seed=3)
    assert [one.filename for one in warned] == [__file__]
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        assert_same_law(TwoSample(eps=None), fair, fair, budget=1_000, seed=3, strict=True)


def test_one_text_a_side_is_a_budget() -> None:
    assert run_two_sample(TwoSample(eps=None), fair, fair, budget=1, seed=0).trials == 1


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="budget = 0"):
        run_two_sample(TwoSample(), fair, fair, budget=0, seed=0)
    with pytest.raises(ValueError, match=r"eps = 0.001 needs a budget of at least [\d,]+ texts"):
        run_two_sample(TwoSample(eps=0.001), fair, fair, budget=5_000, seed=0)
