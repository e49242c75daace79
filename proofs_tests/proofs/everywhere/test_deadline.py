"""Long computations end with the budget; what is left is open."""

import time
from fractions import Fraction
from typing import Any

import pytest

from specref.algorithms import standard
from specref.chance import Chance
from specref.models import Model
from specref.proofs.everywhere import is_lossless_everywhere, polynomials
from specref.proofs.everywhere.deadline import OutOfTimeError, left, look, until
from specref.proofs.everywhere.proof import scouted
from specref.proofs.everywhere.signs import contradiction, homogeneous
from specref.vocabulary import Tokens, Vocabulary


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
    def step(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
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

    def slow(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
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
