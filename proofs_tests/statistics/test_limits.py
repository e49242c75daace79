"""Every parameter with a range takes its ends where they belong to it, and nothing beyond."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specref.models import iid_model
from specref.statistics import Campaign, TwoSample
from specref.statistics.campaign.acceptance import binomial_interval
from specref.statistics.campaign.driver import run
from specref.statistics.campaign.planning import (
    min_detectable_tv,
    min_trials,
    plan_eps,
    typical_trials,
    typical_tv,
)
from specref.statistics.campaign.prefix_tree import prefix_tree
from specref.statistics.floats.coupled import coupled_replay
from specref.statistics.floats.floats import verify_float64
from specref.statistics.two_sample.bounds import detectable_distance, least_trials
from specref.statistics.two_sample.driver import run_two_sample
from specref.vocabulary import Vocabulary
from specref.zoo.planning import plan_mutant

COIN = iid_model(Vocabulary("ab"), [0.25, 0.75])
TREE = prefix_tree(COIN, COIN, (), 0)
P, Q = np.full((1, 2, 2), 0.5), np.full((1, 1, 2), 0.5)
TINY, ALMOST = 1e-12, math.nextafter(1, 0)
OPEN = "a number in (0, 1)"


def cased(lookahead: int = 0, **options: Any) -> Campaign:
    campaign = Campaign(eps=None)
    campaign.case(COIN, COIN, (), lookahead, mutants={}, **options)
    return campaign


def sampler(name: str, trials: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2, (trials, 1))


def texts(trials: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2, (trials, 1))


def replayed(**options: Any) -> Any:
    given = {"trials": 4, "rng": np.random.default_rng(1), **options}
    return coupled_replay(verify_float64, P, Q, **given)


def open_unit(name: str, call: Callable[[float], Any]) -> list[tuple]:
    return [(name, call, [TINY, 0.5, ALMOST], [0, 1, -0.1, math.nan], OPEN)]


RANGES: list[tuple[str, Callable[[Any], Any], list, list, str]] = [
    *open_unit("alpha", lambda x: Campaign(alpha=x)),
    *open_unit("eps", lambda x: Campaign(eps=x)),
    *open_unit("alpha", lambda x: TwoSample(alpha=x)),
    *open_unit("eps", lambda x: TwoSample(eps=x)),
    *open_unit("alpha", lambda x: min_trials(0.1, TREE, x)),
    *open_unit("beta", lambda x: min_trials(0.1, TREE, 0.1, x)),
    *open_unit("alpha", lambda x: min_detectable_tv(10, TREE, x)),
    *open_unit("beta", lambda x: min_detectable_tv(10, TREE, 0.1, x)),
    *open_unit("alpha", lambda x: plan_mutant("residual-is-p", x)),
    *open_unit("alpha", lambda x: plan_eps(0.5, x, pair=(COIN, COIN, (), 0))),
    *open_unit("alpha", lambda x: detectable_distance(10, 2, x)),
    *open_unit("beta", lambda x: detectable_distance(10, 2, 0.1, x)),
    *open_unit("alpha", lambda x: replayed(alpha=x)),
    ("tv", typical_trials, [1e-3, ALMOST], [0, 1, 2], OPEN),
    ("tv", lambda x: min_trials(x, TREE), [1e-3, ALMOST], [0, 1, 2], OPEN),
    ("eps", lambda x: plan_eps(x, pair=(COIN, COIN, (), 0)), [1e-3, ALMOST], [0, 1], OPEN),
    ("tolerance", lambda x: Campaign(tolerance=x), [0, ALMOST], [-0.1, 1], "a number in [0, 1)"),
    ("trials", typical_tv, [1, 2], [0, -1], "at least 1"),
    ("trials", lambda n: min_detectable_tv(n, TREE), [1, 2], [0, -1], "at least 1"),
    ("trials", lambda n: detectable_distance(n, 2), [1, 2], [0, -1], "at least 1"),
    ("texts", lambda n: detectable_distance(10, n), [1, 2], [0, -1], "at least 1"),
    ("trials", lambda n: replayed(trials=n), [1, 2], [0, -1], "at least 1"),
    ("budget", lambda n: run(cased(), sampler, budget=n, seed=0), [1, 2], [0, -1], "at least 1"),
    (
        "budget",
        lambda n: run_two_sample(TwoSample(eps=None), texts, texts, budget=n, seed=0),
        [1, 2],
        [0, -1],
        "at least 1",
    ),
    ("tokens", lambda n: cased(tokens=n), [1, 2], [0, -1], "at least 1"),
    (
        "successes",
        lambda n: binomial_interval(n, 4, 0.1),
        [0, 4],
        [-1, 5],
        "0 to trials = 4, at least 1",
    ),
    (
        "token",
        lambda n: Campaign().observe([0.5, 0.5], n),
        [0, 1],
        [-1, 2],
        "0 <= id < 2",
    ),
    (
        "position",
        lambda n: Campaign().observe([0.5, 0.5], 0, None, n),
        [0, 100],
        [-1],
        "an integer >= 0",
    ),
]


@pytest.mark.parametrize(("name", "call", "taken", "refused", "expected"), RANGES)
def test_ranges(
    name: str, call: Callable[[Any], Any], taken: list, refused: list, expected: str
) -> None:
    for value in taken:
        call(value)
    for value in refused:
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            call(value)
        assert str(raised.value) == f"{name} = {value}: expected {expected}"


def test_nothing_was_tried() -> None:
    with pytest.raises(ValueError, match="successes = 0: expected 0 to trials = 0, at least 1"):
        binomial_interval(0, 0, 0.1)


def test_a_budget_counts_what_was_drawn_before() -> None:
    test = TwoSample(eps=0.5)
    least = least_trials(0.5, 1e-9 / 6)
    test.add(*(np.random.default_rng(seed).integers(0, 2, (10, 1)) for seed in (1, 2)))
    with pytest.raises(ValueError, match=f"at least {least:,} texts on each side, not"):
        run_two_sample(test, texts, texts, budget=least - 11, seed=0)
    assert run_two_sample(test, texts, texts, budget=least - 10, seed=0).trials == least
