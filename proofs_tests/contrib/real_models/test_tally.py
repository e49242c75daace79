"""Bets on many rows at once are those of the package on one row at a time.

The declared intervals of accepted drafts hold as often as they say, exactly.
"""

from dataclasses import asdict

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import numpy as np
import torch

from specref.contrib.real_models.entropy import EntropyMartingale
from specref.contrib.real_models.tally import (
    BET_BUGS,
    COUNT_ALPHA,
    MIXTURES,
    Place,
    Rows,
    Tally,
    log_bets,
)
from specref.statistics.campaign.large import Observer, pointwise_laws

FLAGS = (0, 2, 3, 4)
"""Of the features: a share is centred and stretched in another way, and a bet all the same."""


def drawn(kind, count=60, size=12):
    generator = torch.Generator().manual_seed(3)
    p, q = (
        torch.randn(count, size, generator=generator).double().mul(2).softmax(-1) for _ in "pq"
    )
    if kind == "part of q is outside":
        q = q * 0.8
    if kind == "p has zeros":
        p[:, :4] = 0
        p = p / p.sum(1, keepdim=True)
    if kind == "q is certain":
        q = torch.nn.functional.one_hot(q.argmax(1), size).double()
    if kind == "q is p":
        q = p
    tokens = torch.multinomial(p, 1, generator=generator)[:, 0]
    return Rows(p, q, tokens, torch.rand(count, generator=generator) < 0.3)


KINDS = ["dense", "part of q is outside", "p has zeros", "q is certain", "q is p"]


@pytest.mark.parametrize("kind", KINDS[:-1])  # of p - p the package bets on the rounding
def test_sums_are_those_of_the_package(kind):
    rows = drawn(kind)
    observer, martingale = Observer(), EntropyMartingale()
    for p, q, token, last in zip(*rows, strict=True):
        observer.observe(p.numpy(), int(token), q.numpy(), 0, bool(last))
        martingale.observe(p.numpy(), int(token))
    won = log_bets(rows).sum(0).numpy()
    bugs, tilts, surprise = np.split(won, [observer.library.size, -len(martingale.log_wealth)])
    np.testing.assert_allclose(bugs, observer.library.ravel(), atol=1e-9)
    mine = tilts.reshape(-1, observer.tilts.shape[1])
    for flag in FLAGS:
        np.testing.assert_allclose(mine[flag], observer.tilts[flag, :, -1], atol=1e-9)
    np.testing.assert_allclose(surprise, martingale.log_wealth, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_bet_has_mean_one(kind):
    rows, size = drawn(kind), 12
    bets = torch.stack(
        [
            log_bets(rows._replace(tokens=torch.full_like(rows.tokens, x))).exp()
            for x in range(size)
        ]
    )
    inside = (rows.p > 0).T[..., None]
    mean = (bets.where(inside, 0) * rows.p.T[..., None]).sum(0)
    # What a bug puts where p is 0 is not bet on; then a bet may have a mean below 1.
    assert mean.max() <= 1 + 1e-5
    if kind != "q is certain":
        assert mean.min() >= 1 - 1e-5


def test_what_p_excludes_is_won_at_once():
    rows = drawn("p has zeros")
    assert log_bets(rows._replace(tokens=torch.zeros_like(rows.tokens))).isposinf().all()


def test_a_tally_goes_on_from_where_it_was():
    won = log_bets(drawn("dense"))
    whole, first = Tally(), Tally()
    whole.bet(won)
    first.bet(won[:25])
    second = Tally.read(asdict(first))
    second.bet(won[25:])
    np.testing.assert_allclose(second.wealth, whole.wealth)
    assert (second.tokens, second.peak) == (whole.tokens, pytest.approx(whole.peak))


def test_a_wrong_law_is_found_and_the_right_one_is_not():
    rows = drawn("dense", 3000)
    clean, wrong = Tally(), Tally()
    clean.bet(log_bets(rows))
    tokens = torch.multinomial(rows.q, 1, generator=torch.Generator().manual_seed(1))[:, 0]
    wrong.bet(log_bets(rows._replace(tokens=tokens)))
    assert not clean.lossy
    assert wrong.found_at < 300


def planted_law(rows, towards):
    """The law of the next token under a bug, in the words of the package."""
    if towards == "q":
        return rows.q
    laws = [
        pointwise_laws(p.numpy(), q.numpy(), bool(last)).get(towards, p.numpy())
        for p, q, last in zip(rows.p, rows.q, rows.last, strict=True)
    ]
    law = torch.from_numpy(np.stack(laws))
    return law / law.sum(1, keepdim=True)


def test_rows_without_a_shared_token_win_nothing():
    """Filters leave rows of which q has no token: they add nothing, and spoil no other row."""
    rows = drawn("dense", 40)
    wanted, tally = Tally(), Tally()
    wanted.gain(rows)
    p, q = rows.p.clone(), rows.q.clone()
    p[0, 1:], q[0, 0] = 0, 0
    p[0, 0] = 1
    q[0] /= q[0].sum()
    tally.gain(rows._replace(p=p, q=q))
    assert np.isfinite(tally.gains).all()
    assert (np.array(tally.gains) <= wanted.gains).all()
    assert tally.gained == wanted.gained


@pytest.mark.deep
@pytest.mark.parametrize("towards", ["q", BET_BUGS[0], BET_BUGS[2]])
def test_a_mixture_that_is_detected_is_found_when_planted(towards):
    """The declared reach is kept by texts of that mixture; nine in ten, at twice the tokens."""
    rows, generator = drawn("dense", 6000), torch.Generator().manual_seed(2)
    tally = Tally()
    tally.bet(log_bets(rows))
    tally.gain(rows)
    reach = tally.detected_mixture if towards == "q" else tally.detected_bugs[towards]
    assert reach in MIXTURES
    assert reach < 1
    doubled = Rows(*(torch.cat([one, one]) for one in rows))
    law, found = (1 - reach) * doubled.p + reach * planted_law(doubled, towards), 0
    for _ in range(10):
        planted = Tally()
        tokens = torch.multinomial(law, 1, generator=generator)[:, 0]
        planted.bet(log_bets(doubled._replace(tokens=tokens)))
        found += planted.lossy
    assert found >= 9


pytest.importorskip("torch", reason="not_run (torch is not installed)")


def test_intervals_hold():
    """For 40 random numbers of two kinds the law of the number accepted is a convolution."""
    chances, law, place = np.array([0.2] * 20 + [0.9] * 20), np.ones(1), Place()
    place.add(np.zeros(40), chances, chances)
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    low, high = place.interval
    outside = law[:low].sum() + law[high + 1 :].sum()
    assert COUNT_ALPHA / 1e4 < outside <= COUNT_ALPHA


def test_drafts_one_by_one_are_those_of_a_call():
    one, all_ = Place(), Place()
    accepted, least = [True, False, True], [0.1, 0.5, 0.9]
    for each in zip(accepted, least, [1.5, 0.5, 1.0], strict=True):
        one.add(*each)
    all_.add(accepted, least, [1.5, 0.5, 1.0])
    assert (one.reached, one.accepted, one.interval) == (3, 2, all_.interval)
    np.testing.assert_allclose([one.low, one.high], [all_.low, all_.high])
    assert (one.least, one.most) == pytest.approx((all_.least, all_.most)) == (1.5, 3.0)
