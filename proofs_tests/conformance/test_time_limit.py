"""A run with a time limit ends in time, says what it did not try, and passes nothing else."""

import logging
import threading
import time
from typing import Any

import pytest

from specref.conformance.checks import CHECKS
from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.scheduling import in_order
from specref.conformance.status import FIRST, Outcome, Status
from specref.conformance.suite import prepare
from specref.conformance.time_limit import LateError, TimeLimit, at_most
from specref.contracts.table import STEP
from specref.examples.correct import verify as correct
from specref.examples.lossy import verify as lossy

ANSWERS = next(one for one in CHECKS if one.id == "smoke/answers")
WIDE = next(one for one in CHECKS if one.id == "joint/wide")


def slow(seconds: float) -> Any:
    def verify(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        time.sleep(seconds)
        return correct(p, q, drafts, rng=rng)

    return verify


@pytest.mark.deep
def test_a_run_takes_as_long_as_it_may() -> None:
    """What it did not try is listed, and all is told in 25 lines of 80 columns."""
    report = check(correct, time_limit=5.0)
    left = [one for one in report.results if one.status == Status.NOT_RUN]
    assert left
    assert all(one.not_tried for one in left)
    assert report.exit_code == 0
    assert any(one.exact for one in report.results if one.status == Status.PASSED)
    assert "no time left" in report.verdict
    lines = str(report).splitlines()
    assert any(line.startswith("NOT TRIED") for line in lines)
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert len(repr(report)) <= 600


def test_a_run_that_compared_nothing_is_undecided() -> None:
    report = check(slow(0.05), time_limit=0.02)
    assert report.exit_code == 2
    assert "no distribution was compared within 0.02 s" in report.verdict
    asked = check(correct, only=["smoke/answers"], time_limit=20.0)
    assert asked.exit_code == 0


def test_what_strict_asks_for_has_to_be_tried() -> None:
    assert check(slow(0.002), time_limit=0.3, strict=True).exit_code == 2


def test_a_lossy_sampler_is_told_in_time() -> None:
    report = check(lossy, one_hot=False, only=["smoke/answers", "joint/probed"], time_limit=60.0)
    assert report.exit_code == 1
    assert report.diagnosis is not None
    assert "residual-is-p" in report.diagnosis.candidates[0].ids


def test_a_late_check_is_not_tried() -> None:
    def sleeps(one: Any) -> Any:
        time.sleep(5)
        raise AssertionError

    limit = TimeLimit(0.5, time.perf_counter())
    found = limit.run(ANSWERS, sleeps, None)
    assert (found.status, found.not_tried) == (
        Status.NOT_RUN,
        ("smoke/answers (over its part of the time)",),
    )
    assert found.seconds < 5
    over = TimeLimit(0.5, time.perf_counter() - 1)
    assert over.run(ANSWERS, sleeps, None).status == Status.NOT_RUN


def test_the_first_exact_law_comes_before_all_that_draws() -> None:
    """However busy the machine, a run within its limit has compared a distribution."""
    limited, free = (
        [one.id for one in in_order(*prepare(correct, CheckOptions(time_limit=limit))[::-1])[0]]
        for limit in (20.0, None)
    )
    drawing = [one.id for one in CHECKS if one.id in limited and one.law]
    laws = [id_ for id_ in limited if id_ in drawing]
    assert tuple(laws[:2]) == FIRST
    assert free.index("smoke/calls-vary") < free.index(FIRST[0])
    assert set(free) == set(limited)


@pytest.mark.parametrize(
    ("id_", "status"), [(FIRST[0], Status.PASSED), (FIRST[1], Status.NOT_RUN)]
)
def test_the_first_exact_law_may_end_late(id_: str, status: Status) -> None:
    limit = TimeLimit(100.0, time.perf_counter() - 101)
    (one,) = (check for check in CHECKS if check.id == id_)
    assert limit.run(one, lambda one: one.result(Outcome(Status.PASSED)), None).status == status
    over = TimeLimit(100.0, time.perf_counter() - 120)
    assert over.run(one, lambda one: one.result(Outcome(Status.PASSED)), None).not_tried


def test_too_few_samples_are_not_tried_and_a_failure_counts() -> None:
    limit = TimeLimit(60.0, time.perf_counter())

    def ended(status: Status) -> Status:
        return limit.run(WIDE, lambda one: one.result(Outcome(status, "")), 1.0).status

    assert ended(Status.INCONCLUSIVE) == Status.NOT_RUN
    assert [ended(one) for one in (Status.FAILED, Status.PASSED)] == [Status.FAILED, Status.PASSED]


def test_checks_of_other_contracts_do_not_apply_however_late() -> None:
    over = TimeLimit(0.5, time.perf_counter() - 1, STEP)
    found = over.run(ANSWERS, lambda one: one.result(Outcome(Status.NOT_APPLICABLE)), None)
    applies = ANSWERS.is_for(STEP)
    assert found.status == (Status.NOT_RUN if applies else Status.NOT_APPLICABLE)


def test_code_that_swallows_an_alarm_meets_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specref.conformance.time_limit.AGAIN", 0.05)
    caught: list[BaseException] = []

    def deaf() -> None:
        while len(caught) < 3:
            try:
                time.sleep(5)
            except BaseException as error:
                caught.append(error)
        raise caught[0]

    with at_most(0.05), pytest.raises(LateError):
        deaf()
    assert len(caught) == 3


def test_a_lock_is_released_before_an_alarm_ends_anything() -> None:
    """Of logging, in whose functions an error would leave its lock taken, and of classes."""
    released: list[str] = []

    class Lock:
        def release(self) -> None:
            time.sleep(0.05)
            released.append("lock")

    logger = logging.Logger("of a test")
    logger.addFilter(lambda record: not time.sleep(0.05) and not released.append("log"))
    for hold in (Lock().release, lambda: logger.error("late")):
        with pytest.raises(LateError), at_most(0.01):
            (hold(), time.sleep(5))
    assert released == ["lock", "log"]


def test_nothing_is_set_in_another_thread() -> None:
    found: list[str] = []

    def work() -> None:
        with at_most(0.01):
            time.sleep(0.1)
        found.append("went on")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["went on"]
