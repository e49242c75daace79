"""Acceptance figures on logs that can be counted by hand, and on logs of the exact sampler."""

import operator
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref.algorithms import standard
from specref.chance import Chance, Traced, enumerate_paths
from specref.rules import RULES
from specref.theory.metrics import (
    METRICS,
    Iteration,
    acceptance_at_positions,
    acceptance_rate,
    mean_accepted_length,
    tokens_per_iteration,
)
from specref.zoo import FIXTURES

F = Fraction
LOG = [
    Iteration((True, True, False), 3),
    Iteration((False, True, True), 1),
    Iteration((True, True), 3),
    Iteration((), 1),
    Iteration((True, True, True), 2),  # the second was EOS
]


def test_a_log_counted_by_hand() -> None:
    assert [i.accepted for i in LOG] == [2, 0, 2, 0, 2]
    assert acceptance_rate(LOG) == F(6, 11)
    assert mean_accepted_length(LOG) == F(6, 5)
    assert tokens_per_iteration(LOG) == F(10, 5)
    assert acceptance_at_positions(LOG) == (F(3, 4), F(3, 4), F(0, 3))
    assert set(METRICS) == {
        "acceptance_rate",
        "mean_accepted_length",
        "tokens_per_iteration",
        "acceptance_at_positions",
    }


@pytest.mark.parametrize(
    ("metric", "log", "missing"),
    [
        (acceptance_rate, [], "drafts"),
        (acceptance_rate, [Iteration((), 1)], "drafts"),
        (mean_accepted_length, [], "iterations"),
        (tokens_per_iteration, [], "iterations"),
    ],
)
def test_nothing_to_divide_by(metric: object, log: list[Iteration], missing: str) -> None:
    with pytest.raises(ValueError, match=f"log has no {missing}: expected at least one"):
        metric(log)  # type: ignore[operator]
    assert acceptance_at_positions([]) == ()


@pytest.mark.parametrize("emitted", [-1, 3])
def test_more_tokens_than_an_iteration_can_emit(emitted: int) -> None:
    with pytest.raises(ValueError, match=f"emitted = {emitted}: expected 0 to 2 tokens"):
        Iteration((True, False), emitted)


ITERATIONS = st.builds(
    lambda verdicts, ended: Iteration(verdicts, max(Iteration(verdicts, 0).prefix + 1 - ended, 0)),
    st.lists(st.booleans(), max_size=4).map(tuple),
    st.integers(0, 2),
)


@given(st.lists(ITERATIONS, min_size=1))
def test_figures_fit_each_other(log: list[Iteration]) -> None:
    drafted = sum(i.drafted for i in log)
    accepted = mean_accepted_length(log) * len(log)
    assert accepted <= tokens_per_iteration(log) * len(log) <= accepted + len(log)
    if drafted:
        assert acceptance_rate(log) * drafted == accepted
        assert 0 <= acceptance_rate(log) <= 1
    submitted = [sum(i.drafted > k for i in log) for k in range(4)]
    shares = acceptance_at_positions(log)
    assert sum(map(np.multiply, shares, submitted)) == accepted


@given(st.lists(ITERATIONS, min_size=1), st.integers(1, 4))
def test_verdicts_after_the_first_no_mean_nothing(log: list[Iteration], extra: int) -> None:
    longer = [
        Iteration((*i.verdicts[: i.prefix], *[False] * (i.drafted - i.prefix)), i.emitted)
        for i in log
    ]
    assert mean_accepted_length(longer) == mean_accepted_length(log)
    assert acceptance_at_positions(longer) == acceptance_at_positions(log)
    assert acceptance_at_positions(log * extra) == acceptance_at_positions(log)


@pytest.mark.parametrize("name", ["m", "c"])
def test_on_a_log_with_every_path_as_often_as_it_is_likely(name: str) -> None:
    """Pooled figures of the whole law are the closed forms of `theory.acceptance`."""
    f = FIXTURES[name]
    log: list[Iteration] = []
    weights: list[Fraction] = []

    def run(chance: Chance) -> Iteration:
        traced = Traced(chance)
        block = standard.step(f.target, f.drafter, (), f.lookahead, traced)
        said = [bool(s.choice) for s in traced.steps if s.site.startswith("accept")]
        verdicts = (*said, *[False] * (f.lookahead - len(said)))
        return Iteration(verdicts, len(block))

    for path in enumerate_paths(run):
        log.append(path.outcome)
        weights.append(path.weight)
    smallest = np.lcm.reduce([w.denominator for w in weights], dtype=object)
    whole = [i for i, w in zip(log, weights, strict=True) for _ in range(int(w * smallest))]
    arguments = (f.target, f.drafter, (), f.lookahead)
    lengths = RULES["standard"].accepted_lengths(*arguments)
    assert mean_accepted_length(whole) == sum(k * w for k, w in enumerate(lengths))
    assert tokens_per_iteration(whole) == mean_accepted_length(whole) + 1
    assert acceptance_rate(whole) == mean_accepted_length(whole) / f.lookahead
    given = RULES["standard"].acceptance_by_position(*arguments)
    assert acceptance_at_positions(whole) == tuple(accumulate(given, operator.mul))


def test_a_log_of_one_text_and_one_process_need_not_number_them() -> None:
    assert Iteration((True,), 2) == Iteration((True,), 2, request=0, rank=0)
