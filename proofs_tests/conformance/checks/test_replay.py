"""Replay in low precision: rounding is excused where it can be the cause, and nothing else.

Seeds are fixed; every assertion but the counts of planted bugs holds for any seed.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args

import numpy as np
import pytest

from specref.arrays import Floats, Ints
from specref.coins import Coins
from specref.conformance.checks.replay import (
    DECIDED,
    ENCLOSED,
    Arithmetic,
    arithmetic_of,
    falls,
    wins,
)
from specref.conformance.public import check
from specref.contracts.batch import draw_batch_coins
from specref.contracts.capabilities import Capabilities, capabilities_of, capable
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.verify import sample_batch
from specref.rule import CoinOrder
from specref.statistics.floats.floats import EQUIVALENCE_MARGIN, Dtype, round_to

pytestmark = pytest.mark.usefixtures("undiagnosed")

REPLAY = ["smoke/answers", "replay"]


class Rounding:
    """Operations of a unit whose results are anywhere within it, or at its ends."""

    def __init__(self, unit: float, rng: np.random.Generator, ends: bool) -> None:
        self.unit, self.rng, self.ends = unit, rng, ends

    def __call__(self, values: Any) -> Any:
        values = np.asarray(values, dtype=float)
        moved = self.rng.uniform(-self.unit, self.unit, values.shape)
        return values * (1 + (np.sign(moved) * self.unit if self.ends else moved))


def rounded_block(
    rule: str, p: Floats, q: Floats, drafts: Ints, coins: Coins, recovery: str, r: Rounding
) -> tuple[int, int]:
    """How many drafts are kept, and the last token, every operation being rounded."""
    accept = r(coins.accept[0])
    kept, weights = (standard if rule == "token by token" else block)(p, q, drafts, accept, r)
    if recovery == "race":
        with np.errstate(divide="ignore"):
            race = r(r(coins.race[0]) / weights)
        return kept, int(np.where(weights > 0, race, np.inf).argmin())
    ends = [0.0]
    for weight in weights.tolist():
        ends.append(float(r(ends[-1] + weight)) if weight else ends[-1])
    x = float(r(r(coins.final[0]) * ends[-1]))
    passed = [token for token in np.flatnonzero(weights).tolist() if x >= ends[token + 1]]
    left = [token for token in np.flatnonzero(weights).tolist() if token not in passed]
    return kept, left[0] if left else passed[-1]


def standard(
    p: Floats, q: Floats, drafts: Ints, accept: Floats, r: Rounding
) -> tuple[int, Floats]:
    for i, x in enumerate(drafts.tolist()):
        if not accept[i] < r(p[i, x] / q[i, x]):
            excess = r(np.maximum(p[i] - q[i], 0))
            return i, excess if excess.any() else p[i]
    return len(drafts), p[len(drafts)]


def block(p: Floats, q: Floats, drafts: Ints, accept: Floats, r: Rounding) -> tuple[int, Floats]:
    survival, found = 1.0, (0, p[0])
    for i in range(len(drafts) + 1):
        last = i == len(drafts)
        excess = r(np.maximum(r(survival * p[i]) - (0 if last else q[i]), 0))
        total = 0.0
        for weight in excess.tolist():
            total = float(r(total + weight))
        stops = r(total / r(total + r(1 - survival))) if total else 0.0
        if i == 0 or accept[i - 1] < (survival if last else stops):
            found = i, excess if total and not last else p[i]
        if not last:
            ratio = r(p[i, drafts[i]] / q[i, drafts[i]])
            survival = min(1.0, float(r(survival * ratio)))
    return found


def rows(dtype: Dtype, rng: np.random.Generator, count: int) -> list[tuple[Any, ...]]:
    """p, q, drafts and coins of rows of every fixture, with laws in a format."""
    found = []
    for fixture in CHAIN_FIXTURES.values():
        batch = sample_batch(fixture, count, rng)
        coins = draw_batch_coins(batch, rng)
        assert batch.draft_probs is not None
        p, q = (round_to(laws, dtype) for laws in (batch.target_probs, batch.draft_probs))
        for row in range(count):
            n = batch.lens[row]
            found.append((p[row], q[row], batch.draft_tokens[row, :n], coins[row : row + 1]))
    return found


def possible(
    rule: str,
    given: tuple[Any, ...],
    answer: tuple[int, int],
    recovery: str,
    arithmetic: Arithmetic,
) -> bool:
    p, q, drafts, coins = given
    kept, token = answer
    accept = arithmetic.around(coins.accept[0, : len(drafts)])
    length = ENCLOSED[rule](p, q, drafts, accept, kept, arithmetic)
    drawn, noise = (wins, coins.race[0]) if recovery == "race" else (falls, coins.final)
    last = drawn(length.weights, arithmetic.around(noise), token, arithmetic)
    return length.possible and last


def test_every_rule_that_is_replayed_has_intervals() -> None:
    assert ENCLOSED.keys() == DECIDED.keys() == {*get_args(CoinOrder)}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("recovery", ["race", "inverse"])
@pytest.mark.parametrize("rule", ENCLOSED)
@pytest.mark.parametrize("unit", [2.0**-6, 2.0**-8])
def test_what_rounding_makes_is_possible(rule: str, recovery: str, unit: float) -> None:
    """Every operation rounded by up to a unit, or by a unit, in one direction or the other."""
    rng, changed = np.random.default_rng(1), 0
    for given in rows("float64", rng, 120):
        exact = rounded_block(rule, *given, recovery, Rounding(0, rng, ends=True))
        for ends in (True, False):
            block = rounded_block(rule, *given, recovery, Rounding(unit, rng, ends))
            assert possible(rule, given, block, recovery, Arithmetic(unit, 0))
            changed += block != exact
    assert changed


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("recovery", ["race", "inverse"])
@pytest.mark.parametrize("rule", ENCLOSED)
def test_hardly_anything_else_is_possible(rule: str, recovery: str) -> None:
    """In float32 no block but the exact one; in half precision one more in three rows, at most."""
    rng, others = np.random.default_rng(2), {}
    for unit, most in ((2.0**-24, 0), (2.0**-11, 0.1), (2.0**-8, 1 / 3)):
        arithmetic, found = Arithmetic(unit, 0), 0
        given_rows = rows("bfloat16", rng, 60)
        for given in given_rows:
            p, _, drafts, _ = given
            answers = [(n, x) for n in range(len(drafts) + 1) for x in range(p.shape[1])]
            found += sum(possible(rule, given, one, recovery, arithmetic) for one in answers) - 1
        others[unit] = found / len(given_rows)
        assert others[unit] <= most, others


def in_half(
    target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Coins
) -> tuple[Ints, Ints]:
    """Every operation in float16: the arguments are of torch, the arithmetic is NumPy's."""
    target_probs, draft_tokens = target_probs.numpy(), draft_tokens.numpy()
    draft_probs = None if draft_probs is None else draft_probs.numpy()
    accept, race = coins.accept.astype(np.float16), coins.race.astype(np.float16)
    tokens = np.full((len(draft_tokens), target_probs.shape[1]), -1)
    for row, drafts in enumerate(draft_tokens):
        p = target_probs[row]
        q = np.eye(p.shape[1], dtype=p.dtype)[drafts] if draft_probs is None else draft_probs[row]
        drafts = drafts[drafts >= 0]
        kept, weights = standard(p, q, drafts, accept[row], np.asarray)  # type: ignore[arg-type]
        with np.errstate(all="ignore"):
            arrival = np.where(weights > 0, race[row] / weights, np.inf)
        tokens[row, :kept], tokens[row, kept] = drafts[:kept], arrival.argmin()
    return tokens, (tokens >= 0).sum(axis=1)


def test_arithmetic_in_half_precision_has_to_be_declared() -> None:
    pytest.importorskip("torch", reason="not_run (torch is not installed)")
    claims = {"arrays": "torch", "dtype": "float16", "rule": "standard", "recovery": "race"}
    margin = EQUIVALENCE_MARGIN["float16"]
    report = check(in_half, only=REPLAY, tolerance=margin, **claims)
    assert report.failures == ()
    assert any("by rounding" in result.message for result in report.results)
    only = ["smoke/answers", "replay/coin-by-coin"]
    (failure,) = check(in_half, only=only, **claims).failures
    assert f"if it calculates in float16: declare tolerance={margin}" in failure.message


@pytest.mark.parametrize(
    ("claims", "unit"),
    [
        ({}, 2.0**-53),
        ({"dtype": "float32"}, 2.0**-24),
        ({"dtype": "float16", "tolerance": 2.0**-10}, 2.0**-24),
        ({"tolerance": 3 * 2.0**-24}, 2.0**-24),
    ],
)
def test_units_are_those_of_the_claims(claims: dict[str, Any], unit: float) -> None:
    assert arithmetic_of(Capabilities(**claims)).unit == pytest.approx(unit)


# Planted bugs: what a verification of torch is given, changed a little.

Given = tuple[Any, Any, Any, Coins]


def shifted(p: Any, q: Any, drafts: Any, coins: Coins) -> Given:
    """Two drafts in a hundred are accepted whatever their coin."""
    return p, q, drafts, Coins(np.maximum(coins.accept - 0.02, 0), coins.race)


def sharper(p: Any, q: Any, drafts: Any, coins: Coins) -> Given:
    """Temperature 0.98."""
    laws = p.double() ** 1.02
    return (laws / laws.sum(-1, keepdim=True)).to(p.dtype), q, drafts, coins


def row_before(p: Any, q: Any, drafts: Any, coins: Coins) -> Given:
    return p[:, [0, *range(p.shape[1] - 1)]], q, drafts, coins


def bonus_of_the_row_before(p: Any, q: Any, drafts: Any, coins: Coins) -> Given:
    return p[:, [*range(p.shape[1] - 1), -2]], q, drafts, coins


def coins_of_the_next_row(p: Any, q: Any, drafts: Any, coins: Coins) -> Given:
    return p, q, drafts, Coins(np.roll(coins.accept, 1, axis=0), coins.race)


BUGS = (shifted, sharper, row_before, bonus_of_the_row_before, coins_of_the_next_row)


def changed(verify: Any, change: Callable[..., Given]) -> Any:
    """A verification that is given something else, with the claims of the right one."""
    claims = capabilities_of(verify)

    @capable(**{field.name: getattr(claims, field.name) for field in fields(claims)})
    def wrong(
        p: Any, q: Any, drafts: Any, *, rng: Any, coins: Any = None, lens: Any = None
    ) -> Any:
        p, q, drafts, coins = change(p, q, drafts, coins)
        return verify(p, q, drafts, rng=rng, coins=coins, lens=lens)

    return wrong


@pytest.mark.deep
@pytest.mark.parametrize(
    ("dtype", "rule", "recovery", "bugs"),
    [
        ("bfloat16", "standard", "race", BUGS),
        ("bfloat16", "block", "inverse", BUGS),
        ("float16", "standard", "inverse", BUGS[:2]),
        ("float16", "block", "race", BUGS[:2]),
    ],
)
def test_torch_in_half_precision(
    dtype: Dtype, rule: str, recovery: Any, bugs: tuple[Callable[..., Given], ...]
) -> None:
    """Of the right rule every block is possible; of each bug one is not."""
    pytest.importorskip("torch", reason="not_run (torch is not installed)")
    from specref.adapters import torch_backend

    load = torch_backend.load_verify if rule == "standard" else torch_backend.load_verify_block
    verify = load(dtype=dtype, recovery=recovery)
    assert check(verify, only=REPLAY).failures == ()
    for bug in bugs:
        report = check(changed(verify, bug), only=["smoke/answers", "replay/coin-by-coin"])
        assert [one.id for one in report.failures] == ["replay/coin-by-coin"], bug.__name__
