"""Families of laws are what docs/checks.md says of them; sets are what their names say."""

import re
from typing import Any

import numpy as np
import pytest

from specref.conformance.strata.laws import (
    DRAFTERS,
    FEATURES,
    ORDERS,
    SETS,
    SHARES,
    TARGETS,
    drawn_pool,
)

SIZE = 3_000


def target(name: str, size: int = SIZE) -> Any:
    p = TARGETS[name](size)
    return p / p.sum()


def test_targets_are_what_the_page_says() -> None:
    rank = np.arange(1, SIZE + 1)
    zipf = target("zipf")
    assert np.allclose(zipf / zipf[0], rank**-1.1)
    steep = target("steep")
    assert np.allclose(steep[1:61] / steep[:60], 0.5)
    assert np.allclose(steep[60:] / steep[0], 2.0**-60)
    assert np.allclose(target("flat"), 1 / SIZE)
    for name, most in (("peaked", 0.97), ("confident", 0.92), ("certain", 1.0)):
        p = target(name)
        assert p[0] == pytest.approx(most)
        assert np.allclose(p[1:] * rank[1:], p[1] * 2)
    tail = target("long tail")
    assert np.allclose(tail[8:], 0.5 / SIZE)
    assert np.allclose(tail[:8], 0.5 / 8 + 0.5 / SIZE)
    cut = target("truncated")
    assert np.count_nonzero(cut) == 20
    assert np.allclose(cut[:20] / cut[0], rank[:20] ** -0.7)
    assert [np.count_nonzero(target("truncated", size)) for size in (3, 8, 30)] == [2, 4, 15]
    close = target("close")
    assert np.allclose(close[0] / close, 1 + np.arange(SIZE) / 8192)


def drafter(name: str, p: Any, seed: int = 0) -> Any:
    q = DRAFTERS[name](p.copy(), np.random.default_rng(seed))
    assert (q >= 0).all()
    return q / q.sum()


def test_drafters_are_what_the_page_says() -> None:
    rng = np.random.default_rng(1)
    p = rng.permutation(target("zipf", 200))
    logs = np.log(DRAFTERS["near"](p, np.random.default_rng(2)) / p)
    assert np.std(logs) == pytest.approx(0.7, rel=0.2)
    assert np.allclose(drafter("sharp", p), p**2 / (p**2).sum())
    assert np.allclose(DRAFTERS["wide"](p, rng), np.sqrt(p) + 1 / 200)
    other = drafter("other", p)
    assert np.allclose(np.sort(other), np.sort(p))
    assert not np.allclose(other, p)
    assert (drafter("same", p) == p).all()


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("size", [5, 200])
def test_drafters_of_every_target_are_what_the_page_says(name: str, size: int) -> None:
    p = np.random.default_rng(1).permutation(target(name, size))
    wrong = drafter("wrong", p)
    likely = p[p >= p[p > 0].mean() / 50]
    assert wrong.max() > 0.95
    assert p[wrong.argmax()] == likely.min()
    cut = drafter("cut", p)
    eighth = np.sort(p)[-min(8, size)]
    assert (cut > 0).tolist() == ((p >= eighth) & (p > 0)).tolist()
    if (p > 0).sum() > 1:
        assert not np.allclose(cut[cut > 0], p[cut > 0] / p[cut > 0].sum())
    lost = p[(drafter("without", p) == 0) & (p > 0)].sum()
    assert abs(lost - 0.5) <= p.max() / 2 + 1e-9


def test_a_drafter_without_half_of_the_mass_keeps_something() -> None:
    assert drafter("without", np.array([1.0, 0.0])).tolist() == [1, 0]


@pytest.mark.parametrize("size", [5, 1_024, 1_030, 70_001])
def test_orders_are_permutations_with_the_likeliest_tokens_where_they_say(size: int) -> None:
    shuffled, ends, last = (one(size, np.random.default_rng(3)) for one in ORDERS)
    for order in (shuffled, ends, last):
        assert sorted(order.tolist()) == list(range(size))
    start = size // 1_024 * 1_024
    at = {size - 1, 0, start, size - 2, 256, 65_536, 1_023, start - 1, size // 2}
    wanted = {x for x in at if 0 <= x < size}
    assert set(ends[: len(wanted)].tolist()) == wanted
    assert set(last[: size - start].tolist()) == set(range(start, size))


SAID: dict[str, str] = {
    "argmax p": "p == p.max()",
    "argmax q": "q == q.max()",
    "odd id": "ids % 2 == 1",
    "id >= V / 2": "ids >= V // 2",
    "last id": "ids == V - 1",
    "last 8 ids": "ids >= V - 8",
    "V % 8 last ids": "ids >= V - V % 8",
    "V % 1,024 last ids": "ids >= V - V % 1024",
}
ELSEWHERE = {"p > q, rank > 1,024", "last end id", "end id before"}


def expression(name: str) -> str:
    """The name of a set as an expression; most names are nearly one."""
    said = re.sub(r"(\d)([pq])", r"\1 * \2", name.replace(",", "")).replace(" = ", " == ")
    return SAID.get(name, re.sub(r"\bid 0", "ids == 0", said).replace("id ", "ids "))


@pytest.mark.parametrize("size", [6, 70_001])
def test_sets_are_what_their_names_say(size: int) -> None:
    rng = np.random.default_rng(4)
    pool = drawn_pool(rng, size, 7, ["zipf", "flat", "peaked"], ["cut", "wrong", "sharp"])
    sets = dict(zip(SETS, pool.moments.sets, strict=True))
    for name in SETS.keys() - ELSEWHERE:
        for i, (p, q) in enumerate(zip(pool.p, pool.q, strict=True)):
            wanted = eval(expression(name), {"p": p, "q": q, "ids": np.arange(size), "V": size})
            assert (sets[name][i if sets[name].ndim == 2 else ...] == wanted).all(), name


def test_the_rank_is_that_of_p_minus_q() -> None:
    p, q = np.random.default_rng(5).dirichlet(np.ones(3_000), 2)
    found = SETS["p > q, rank > 1,024"](p[None], q[None], np.arange(3_000))[0]
    order = np.argsort(-(p - q))
    wanted = np.zeros(3_000, dtype=bool)
    wanted[[x for x in order[1_024:] if p[x] > q[x]]] = True
    assert wanted.any()
    assert (found == wanted).all()
    assert not SETS["p > q, rank > 1,024"](
        p[None, :1_024], q[None, :1_024], np.arange(1_024)
    ).any()


@pytest.mark.parametrize("size", [6, 1_100, 70_001])
def test_means_and_variances_are_those_under_p(size: int) -> None:
    """Rows are taken a few at a time: the last are fewer."""
    pool = drawn_pool(np.random.default_rng(6), size, 13)
    sets, mean, variance = pool.moments
    values = [np.asarray(one, dtype=float) for one in sets]
    with np.errstate(invalid="ignore"):
        p, q = pool.p, pool.q
        values += [np.nan_to_num(q / (p + q))]
        values += [np.nan_to_num(np.maximum(q - p, 0) / q)]
        values += [np.nan_to_num(np.maximum(p - q, 0) / p)]
    assert len(values) == len(SETS) + len(SHARES) == len(FEATURES) - 1
    assert not mean[:, -1].any()
    assert not variance[:, -1].any()
    for index, value in enumerate(values):
        expected = (p * value).sum(axis=1)
        spread = (p * value**2).sum(axis=1) - expected**2
        assert np.allclose(mean[:, index], expected, atol=1e-12)
        assert np.allclose(variance[:, index], np.maximum(spread, 0), atol=1e-12)
