"""Figures that are not what their names say: each on a log that can be counted by hand."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref.theory.metrics import METRICS, Iteration
from specref.zoo import ALL, Entry

F = Fraction
FIGURES = {id_: entry for id_, entry in ALL.items() if entry.figure}
# Rank 0 holds request 0, rank 1 request 1, whose last iteration accepts EOS in second place.
LOG = [
    Iteration((True, True, False), 3, request=0, rank=0),
    Iteration((False, True, True), 1, request=0, rank=0),
    Iteration((True, True), 3, request=1, rank=1),
    Iteration((), 1, request=1, rank=1),
    Iteration((True, True, True), 2, request=1, rank=1),
]
RIGHT = {
    "acceptance_rate": F(6, 11),
    "mean_accepted_length": F(6, 5),
    "tokens_per_iteration": F(2),
    "acceptance_at_positions": (F(3, 4), F(3, 4), F(0)),
}
WRONG: dict[str, Any] = {
    "counts-accepts-after-rejection": F(9, 11),
    "counts-bonus-as-accepted": F(2),
    "length-without-last-token": F(6, 5),
    "rate-of-emitted-tokens": F(10, 11),
    "counts-tokens-after-eos": F(7, 11),
    "mean-of-request-rates": (F(2, 6) + F(4, 5)) / 2,
    "counts-drafted-as-accepted": F(8, 11),
    "denominator-is-lookahead": F(6, 15),
    "drafted-one-too-many": F(6, 16),
    "only-rank-0": F(2, 6),
    "accepted-is-emitted-minus-one": F(1),
    "only-drafting-iterations": F(9, 4),
    "positions-given-earlier": (F(3, 4), F(1), F(0)),
    "positions-swallowed": (),
}
# Logs on which a figure is right all the same: what it gets wrong does not happen there.
FULL = [Iteration((True, True), 3), Iteration((True, True), 3)]
NONE = [Iteration((False,), 1), Iteration((False,), 1)]
HARMLESS: dict[str, list[Iteration]] = {
    "counts-accepts-after-rejection": FULL,
    "rate-of-emitted-tokens": [Iteration((True, True), 2)],
    "counts-tokens-after-eos": FULL,
    "mean-of-request-rates": LOG[:2],
    "counts-drafted-as-accepted": FULL,
    "denominator-is-lookahead": FULL,
    "drafted-one-too-many": NONE,
    "only-rank-0": LOG[:2],
    "accepted-is-emitted-minus-one": FULL,
    "only-drafting-iterations": FULL,
    "positions-given-earlier": FULL,
    "positions-swallowed": FULL,
    "counts-bonus-as-accepted": [Iteration((True,), 1)],
    "length-without-last-token": [Iteration((True,), 1)],
}


def test_every_figure_is_here() -> None:
    assert FIGURES.keys() == WRONG.keys() == HARMLESS.keys()
    assert {entry.rule for entry in FIGURES.values()} == METRICS.keys() == RIGHT.keys()


@pytest.mark.parametrize("metric", METRICS)
def test_right_figures_on_the_log(metric: str) -> None:
    assert METRICS[metric](LOG) == RIGHT[metric]


@pytest.mark.parametrize("entry", FIGURES.values(), ids=lambda entry: entry.id)
def test_wrong_figures_on_the_log(entry: Entry) -> None:
    assert entry.figure(LOG) == WRONG[entry.id] != RIGHT[entry.rule]
    harmless = HARMLESS[entry.id]
    assert entry.figure(harmless) == METRICS[entry.rule](harmless)


def test_figures_no_sampler_can_have() -> None:
    perfect = [Iteration((True,), 2)]
    assert FIGURES["rate-of-emitted-tokens"].figure(perfect) == 2 > RIGHT["acceptance_rate"]
    nothing = [Iteration((False,), 0)]
    assert FIGURES["accepted-is-emitted-minus-one"].figure(nothing) == -1


def test_the_mean_of_rates_can_change_the_sign_of_a_comparison() -> None:
    """Two engines on the same two requests: pooled, the first is better; by means, the second."""
    yes, no = Iteration((True,), 2), Iteration((False,), 1)

    def log(long: int, short: int) -> list[Iteration]:
        def request(accepted: int, drafted: int, name: int) -> list[Iteration]:
            said = [yes] * accepted + [no] * (drafted - accepted)
            return [Iteration(i.verdicts, i.emitted, name) for i in said]

        return [*request(long, 90, 0), *request(short, 10, 1)]

    first, second = log(60, 2), log(50, 8)
    pooled, mean = METRICS["acceptance_rate"], FIGURES["mean-of-request-rates"].figure
    assert pooled(first) > pooled(second)
    assert mean(first) < mean(second)


ITERATIONS = st.builds(
    lambda verdicts: Iteration(verdicts, Iteration(verdicts, 0).prefix + 1),
    st.lists(st.booleans(), min_size=1, max_size=3).map(tuple),
)
INFLATED = (
    "counts-accepts-after-rejection",
    "rate-of-emitted-tokens",
    "counts-drafted-as-accepted",
)


@given(st.lists(ITERATIONS, min_size=1), st.sampled_from(INFLATED))
def test_some_figures_only_ever_flatter(log: list[Iteration], name: str) -> None:
    assert FIGURES[name].figure(log) >= METRICS["acceptance_rate"](log)
