"""Every parameter with a range takes its ends where they belong to it, and nothing beyond."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from specref.algorithms import ngrams, standard
from specref.algorithms.companion import predictable_step
from specref.algorithms.companion.batch import fixed_budget_step
from specref.algorithms.companion.companion import companion_acceptance
from specref.algorithms.greedy_block import extended as extended_ratio
from specref.algorithms.lookahead import fixed, n_max, positions
from specref.algorithms.ngrams.drafts import context_drafts, mixed_drafts, table_drafts
from specref.algorithms.ngrams.tables import bigrams, extended
from specref.algorithms.text.slem import realigned
from specref.algorithms.trees import transport
from specref.algorithms.trees.k_seq import k_seq_law, smallest_rho
from specref.algorithms.trees.siblings import reject_recursively
from specref.algorithms.trees.transport import optimal_acceptance
from specref.chance import Exact
from specref.distributions import as_distribution, top_k, top_p, with_temperature
from specref.models import iid_model
from specref.theory.acceptance import expected_tokens
from specref.theory.metrics import Iteration
from specref.vocabulary import Vocabulary

AB = Vocabulary("ab")
COIN = iid_model(AB, ["1/4", "3/4"])
P, Q = as_distribution(["1/2", "1/2"]), as_distribution(["1/4", "3/4"])
FLOATS = np.array([0.25, 0.75])
HALF = Fraction(1, 2)


def uniform(size: int) -> Any:
    return as_distribution([Fraction(1, size)] * size)


def judged(value: Any) -> Any:
    return predictable_step(
        COIN, COIN, (), 1, Exact(), companion=COIN, estimate=lambda s: value, length=len
    )


def budgeted(budget: int) -> Any:
    return fixed_budget_step(
        COIN, COIN, [()], 1, Exact(), companion=COIN, estimate=lambda s: s, budget=budget
    )


def verified(token: int) -> Any:
    return standard.verify(COIN, (), [standard.Draft(token, as_distribution([0, 1]))], Exact())


RANGES: list[tuple[Callable[[Any], Any], list, list, str]] = [
    (positions, [0, 1], [-1, True, 1.0], "lookahead = {!r}: expected an integer >= 0"),
    (partial(fixed, AB, AB), [0, 1], [-1, True], "lookahead = {!r}: expected an integer >= 0"),
    (partial(top_k, Q), [1, 2, 3], [0, -1], "k = {}: expected an integer >= 1"),
    (
        partial(top_p, Q),
        [Fraction(1, 100), 1],
        [0, Fraction(101, 100), math.nan],
        "mass = {}: expected a number in (0, 1]",
    ),
    (
        partial(with_temperature, FLOATS),
        [0, 1e-3, 1e3],
        [-1e-9, math.inf, math.nan],
        "temperature = {}: expected a finite number >= 0",
    ),
    (realigned, [0, 1], [-1], "lookbehind = {}: expected an integer >= 0"),
    (context_drafts, [1, 2], [0, True, 1.0], "query = {!r}: expected an integer >= 1"),
    (
        lambda n: mixed_drafts(context_drafts(1), drafts=n),
        [1, 2],
        [0],
        "drafts = {}: expected an integer >= 1",
    ),
    (partial(extended, [[1], [0]]), [1, 2], [0], "lookahead = {}: expected an integer >= 1"),
    (
        lambda n: bigrams([FLOATS, FLOATS], n),
        [1, 2],
        [3],
        "rows[0] has shape (2,): expected at least {} scores",
    ),
    (
        lambda x: table_drafts([[1], [0]])((x,), 1),
        [0, 1],
        [-1, 2],
        "context[-1] = {}: the table has 2 rows",
    ),
    (
        lambda n: optimal_acceptance(uniform(n), {(0,): 1}),
        [2, 3],
        [17],
        "p has {} tokens: expected at most 16",
    ),
    (lambda rho: k_seq_law(P, Q, 2, rho), [4], [0, -1], "rho = {}: expected a number > 0"),
    (judged, [0, HALF, 1], [-HALF, 1 + HALF], "estimate at position 0 = {}: expected a number in "
     "[0, 1]"),
    (budgeted, [0, 1, 5], [-1], "budget = {}: expected an integer >= 0"),
    (
        lambda token: companion_acceptance(P, Q, token),
        [0, 1],
        [-1, 2],
        "token = {}: expected 0 <= id < 2",
    ),
    (
        lambda x: expected_tokens(x, 2),
        [0, HALF, 1],
        [-HALF, 1 + HALF],
        "acceptance = {}: expected a number in [0, 1]",
    ),
    (
        lambda n: Iteration((True, False, True), n),
        [0, 1, 2],
        [-1, 3],
        "emitted = {}: expected 0 to 2 tokens",
    ),
    (
        lambda token: reject_recursively(P, Q, (token,), Exact(), "accept", replacement=True),
        [0, 1],
        [-1, 2],
        "siblings[0] = {}: expected a token that what is left of q can draw",
    ),
    (
        lambda n: ngrams.step(COIN, COIN, (0,), 1, Exact(), propose=lambda c, k: [(1,) * n]),
        [0, 1],
        [],
        "",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "taken", "refused", "message"), RANGES)
def test_ranges(call: Callable[[Any], Any], taken: list, refused: list, message: str) -> None:
    for value in taken:
        call(value)
    for value in refused:
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            call(value)
        assert str(raised.value) == message.format(value)


def test_drafts_longer_than_the_lookahead_are_refused() -> None:
    with pytest.raises(ValueError, match=r"drafts\[0\] = \(1, 1\): expected at most 1 tokens"):
        ngrams.step(COIN, COIN, (0,), 1, Exact(), propose=lambda c, k: [(1, 1)])


def test_scores_that_are_no_number_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rows\[1\]\[0\] is NaN"):
        bigrams([FLOATS, np.array([math.nan, 0.5])], 1)
    with pytest.raises(ValueError, match=r"rows have shapes .*: expected \(1,\) for each"):
        bigrams([FLOATS], 1)


@pytest.mark.parametrize("token", [-1, 0, 2])
def test_a_draft_that_q_cannot_draw_is_refused(token: int) -> None:
    assert verified(1)
    with pytest.raises(ValueError, match=f"drafts?.*{token}"):
        verified(token)


def test_subsets_of_so_many_tokens_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_SUBSETS_OF", 2)
    assert optimal_acceptance(uniform(2), {(0,): 1}).acceptance == HALF
    with pytest.raises(ValueError, match="p has 3 tokens: expected at most 2"):
        optimal_acceptance(uniform(3), {(0,): 1})


def test_rho_is_the_least_multiple_of_one_64th_that_is_lossless() -> None:
    p, q = as_distribution(["2/3", "1/6", "1/6"]), as_distribution(["1/6", "1/3", "1/2"])
    rho = smallest_rho(p, q, 3)
    assert rho.denominator == 64
    assert rho == smallest_rho(p, q, 3, grid=64)
    k_seq_law(p, q, 3, rho)
    kept = np.minimum(q, p / (rho - Fraction(1, 64))).sum()
    assert sum((1 - kept) ** j for j in range(3)) > rho - Fraction(1, 64)
    assert smallest_rho(q, q, 3) == 1


def test_ratios_of_floats_end_at_the_1000th_power_of_two() -> None:
    tiny = np.array([5e-324, 1.0])
    assert extended_ratio(np.array([1.0, 0.0]), tiny, 0) == 2.0**1000
    assert extended_ratio(np.array([1.0, 0.0]), np.array([2.0**-999, 1.0]), 0) == 2.0**999
    exact = as_distribution([Fraction(1, 2**1001), 1 - Fraction(1, 2**1001)])
    assert extended_ratio(as_distribution([1, 0]), exact, 0) == 2**1001


def test_texts_that_are_normalised_determine_nothing() -> None:
    lower = Vocabulary("ab", normalise=str.lower)
    assert n_max(AB, lower) == 1
    with pytest.raises(ValueError, match="n_max needs a target vocabulary without normalise"):
        n_max(lower, AB)
