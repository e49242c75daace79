"""How wide the edges of random numbers are, and how often they come."""

import math

import numpy as np
import pytest

from specref.probing import edge_events
from specref.probing.edges import ends, misbehaving
from specref.probing.source import Call, Request, torch_zero

P = np.array([[0.0, 0.5, 0.5, 0.0], [0.0, 0.25, 0.25, 0.5]])
Q = np.array([[0.5, 0.5, 0.0, 0.0]])
LAST = 1 - 2.0**-53


def sampler(draw):
    """Rejects the draft, and draws from what p has besides it."""

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        return np.array([[int(draw(target_probs[0, 0], rng)), -1]]), np.array([1])

    return verify


def gumbel(p, rng):
    """Uniforms that are cast to float32 reach 1 from 1 - 2^-25 on, and infinity minus infinity."""
    u = np.maximum(rng.random(p.shape).astype(np.float32), np.float32(1e-20))
    with np.errstate(divide="ignore", invalid="ignore"):
        return (np.log(p) - np.log(-np.log(u))).argmax()


def inverse_noise(p, rng):
    with np.errstate(divide="ignore", invalid="ignore"):
        return (p / -np.log1p(-rng.random(p.shape, dtype=np.float32))).argmax()


def default_beyond_the_end(p, rng):
    rest = p.astype(np.float32)
    above = np.cumsum(rest) > np.float32(rng.random()) * rest.sum()
    return above.argmax() if above.any() else 7


def race(dtype, guarded):
    def draw(p, rng):
        noise = rng.standard_exponential(p.shape, dtype=dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            times = noise / p
        return (np.where(p > 0, times, np.inf) if guarded else times).argmin()

    return draw


@pytest.mark.parametrize(
    ("draw", "value", "chance", "each"),
    [
        (gumbel, LAST, 2.0**-25, True),
        (inverse_noise, 0.0, 2.0**-24, True),
        (default_beyond_the_end, LAST, 2.0**-25, False),
        (race(np.float64, guarded=False), 0.0, 2.0**-53, True),
        (race(np.float32, guarded=False), 0.0, 2.0**-23, True),
    ],
)
def test_an_edge_is_as_wide_as_the_numbers_that_misbehave(draw, value, chance, each):
    events = edge_events(sampler(draw), P, Q, (0,))
    assert {event.value for event in events if event.chance} == {value}
    assert {event.chance for event in events if event.chance} == {chance}
    assert {event.each for event in events} == {each}


def test_of_infinite_noise_no_generator_is_known():
    """All times are infinite, and argmin takes the first, which p excludes."""
    (event,) = edge_events(sampler(race(np.float64, guarded=True)), SURE, Q, (0,))
    assert (event.value, event.chance, event.elsewhere) == (math.inf, 0.0, "")


SURE = np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.25, 0.25, 0.5]])


@pytest.mark.deep
def test_a_race_is_judged_by_a_number_for_each_id():
    """As often as drawing gives an impossible token of so many ids."""
    size, draws = 131_072, 1_500
    event = next(one for one in edge_events(sampler(gumbel), P, Q, (0,)) if one.chance)
    expected = draws * event.per_token(size)
    assert expected == pytest.approx(5.86, abs=0.02)
    p = np.zeros(size)
    p[:50] = 1 / 50
    rng = np.random.default_rng(11)
    impossible = sum(gumbel(p, rng) >= 50 for _ in range(draws))
    # A Poisson number of mean 5.86 is outside with probability 3e-4.
    assert 0 < impossible < 16


def test_the_numbers_that_misbehave_are_found_from_each_end():
    uniform, noise = (
        Request(kind, Call("draw", (), "a.py:1"), 24) for kind in ("uniform", "exponential")
    )
    low, high = ends(uniform)
    assert misbehaving(uniform, low, lambda u: u <= 5 * 2.0**-24) == (6 * 2.0**-24, 5 * 2.0**-24)
    assert misbehaving(uniform, low, lambda u: u == 0) == (2.0**-24, None)
    assert misbehaving(uniform, high, lambda u: u == high) == (2.0**-24, None)
    zero, infinity = ends(noise)
    chance, last = misbehaving(noise, zero, lambda x: x <= 0.25)
    assert (chance, last) == (pytest.approx(-math.expm1(-0.25)), 0.25)
    assert misbehaving(noise, zero, lambda x: x == 0) == (0.0, None)
    assert misbehaving(noise, infinity, lambda x: x == math.inf) == (0.0, None)
    chance, last = misbehaving(noise, infinity, lambda x: x >= 12)
    assert last == pytest.approx(12, abs=1 / 64)
    assert chance == pytest.approx(math.exp(-last))


def test_which_noise_of_torch_is_zero():
    assert torch_zero("mps", 24, mkl=False) == 2.0**-24
    assert torch_zero("cpu", 11, mkl=True) == 2.0**-25
    assert torch_zero("cpu", 24, mkl=False) == 2.0**-53
    assert torch_zero("cuda", 11, mkl=False) == 0
