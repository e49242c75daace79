"""Runs that do not end or leave the program, and computations that end with the budget."""

import sys
import threading
import time
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from specref.algorithms import standard
from specref.cli.proving import frames_of_rule
from specref.proofs.everywhere import (
    NotForAllError,
    compare_everywhere,
    is_lossless_everywhere,
    polynomials,
)
from specref.proofs.everywhere import watch as module
from specref.proofs.everywhere.deadline import OutOfTimeError, left, look, until
from specref.proofs.everywhere.number import EXPECTED
from specref.proofs.everywhere.proof import scouted
from specref.proofs.everywhere.signs import contradiction, homogeneous
from specref.proofs.everywhere.watch import Watch
from specref.vocabulary import Vocabulary

NEAR = Fraction(9999, 10000)


def endless(target, drafter, context, lookahead, chance):
    if target.next_token(context)[0] > NEAR:
        while True:
            pass
    return standard.step(target, drafter, context, lookahead, chance)


def leaving(target, drafter, context, lookahead, chance):
    if target.next_token(context)[0] > NEAR:
        sys.exit(0)
    return standard.step(target, drafter, context, lookahead, chance)


LINE = endless.__code__.co_firstlineno + 2


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> float:
    """A second, where users have five."""
    monkeypatch.setattr(module, "GRACE", 1.0)
    return 1.0


@pytest.mark.deep(one_in=2)
@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize(
    "ask", [is_lossless_everywhere, partial(compare_everywhere, standard.step)]
)
def test_a_rule_that_does_not_end_in_one_region_is_refused_with_its_line(ask: Any) -> None:
    before = time.process_time()
    with pytest.raises(NotForAllError, match=r"did not return within \d+ s") as raised:
        ask(endless, "ab", budget=1)
    assert time.process_time() - before < 10
    assert frames_of_rule(raised.value)[-1].lineno in (LINE, LINE + 1)


def test_what_leaves_the_program_is_an_error() -> None:
    with pytest.raises(NotForAllError, match="raises SystemExit") as raised:
        is_lossless_everywhere(leaving, "ab")
    assert frames_of_rule(raised.value)[-1].name == "leaving"


@pytest.mark.deep
def test_a_rule_that_waits_is_given_up_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no processor time; the budget is not spent."""
    monkeypatch.setattr(module, "LONGEST", 0.5)
    watch, goes_on = Watch(1e6), threading.Event()
    with pytest.raises(NotForAllError, match="did not return"):
        watch.run(watch.of(lambda: goes_on.wait(60)))
    goes_on.set()
    assert watch.run(watch.of(lambda: "ended")) == "ended"


@pytest.mark.usefixtures("short_grace")
def test_the_thread_of_a_run_that_does_not_end_is_stopped() -> None:
    ended: list[str] = []

    def rule() -> None:
        try:
            while True:
                pass
        finally:
            ended.append("now")

    watch = Watch(1e-9)
    with pytest.raises(NotForAllError, match="did not return"):
        watch.run(watch.of(rule))
    until = time.monotonic() + 20
    while not ended and time.monotonic() < until:
        time.sleep(0.01)
    assert ended


def test_results_and_errors_are_passed_on() -> None:
    watch = Watch(1)
    assert watch.run(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        watch.run(watch.of(lambda: 1 / 0))
    with pytest.raises(KeyboardInterrupt):
        watch.run(watch.of(interrupting))


def interrupting() -> None:
    raise KeyboardInterrupt


def test_errors_of_types_say_what_to_write() -> None:
    with pytest.raises(TypeError) as raised:
        Watch(1).of(lambda: [1][Fraction(1, 2)])()  # type: ignore[call-overload]
    assert raised.value.__notes__ == [EXPECTED]


def test_other_errors_of_types_do_not() -> None:
    def rule(one: int) -> int:
        return one

    with pytest.raises(TypeError) as raised:
        Watch(1).of(rule)()
    assert not hasattr(raised.value, "__notes__")


@pytest.mark.deep
def test_processor_time_of_other_threads_does_not_count(short_grace: float) -> None:
    watch = Watch(1e-9)
    burnt = time.process_time() + 1.5 * short_grace

    def burn() -> None:
        while time.process_time() < burnt:
            pass

    def wait() -> str:
        beside = threading.Thread(target=burn)
        beside.start()
        beside.join()
        return "ended"

    assert watch.run(watch.of(wait)) == "ended"


@pytest.mark.deep
@pytest.mark.usefixtures("short_grace")
def test_a_thread_that_was_given_up_is_not_taken_for_the_next_one() -> None:
    """It catches what is to end it, and returns while another run is watched."""
    watch, goes_on = Watch(1e-9), threading.Event()

    def stubborn() -> None:
        while not goes_on.is_set():
            try:
                sum(range(1000))
            except BaseException:
                continue

    with pytest.raises(NotForAllError, match="did not return"):
        watch.run(watch.of(stubborn))

    def next_one() -> None:
        goes_on.set()
        while True:
            pass

    with pytest.raises(NotForAllError, match="did not return"):
        watch.run(watch.of(next_one))


def test_the_nearer_moment_counts() -> None:
    look()
    with until(time.process_time() + 100):
        look()
        with until(0), pytest.raises(OutOfTimeError):
            look()
        with until(time.process_time() + 1_000):
            assert left() <= 100
        look()
    look()


def test_factoring_elimination_and_homogeneous_forms_give_up() -> None:
    x, y = polynomials.variable(0), polynomials.variable(1)
    (both,) = polynomials.plus(x, polynomials.times(y, y)).powers
    for work in (
        lambda: polynomials.plus(polynomials.times(x, x), y),
        lambda: contradiction([(both, 4)]),
        lambda: homogeneous(both, lambda v: v),
    ):
        work()
        with until(0), pytest.raises(OutOfTimeError):
            work()


@pytest.mark.deep
def test_a_rule_of_high_degree_is_decided_within_its_budget() -> None:
    def step(target, drafter, context, lookahead, chance):
        p, q = target.next_token(context), drafter.next_token(context)
        if (p[0] * q[1]) ** 6 > Fraction(99, 100) ** 12:
            return (chance.draw(q, "x"),)
        return standard.step(target, drafter, context, lookahead, chance)

    started = time.process_time()
    found = is_lossless_everywhere(step, "abcd", budget=2)
    assert time.process_time() - started < 10
    assert found.verdict in ("lossy", "open")


@pytest.mark.deep
def test_a_rule_that_is_slow_at_each_call_keeps_the_budget_of_its_first_runs() -> None:
    """Each call takes 20 ms of the processor: all paths at three rows would be a second."""
    calls = 0

    def slow(target, drafter, context, lookahead, chance):
        nonlocal calls
        calls += 1
        ends = time.process_time() + 0.02
        while time.process_time() < ends:
            pass
        return standard.step(target, drafter, context, lookahead, chance)

    two = Vocabulary("ab")
    assert len(scouted(slow, two, two, 2, 0)) > 3
    every, calls = calls, 0
    assert scouted(slow, two, two, 2, 0, seconds=0.1)
    assert calls < every / 2
