"""Evidence from features: at most alpha under the law, and as strong as it says under a shift."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from specref.arrays import Floats
from specref.conformance.strata.campaign import PLACES
from specref.conformance.strata.laws import FEATURES, SHARES, drawn_pool
from specref.statistics.features import PRICES, STAKES, FeatureSums, tokens_to_detect

ALPHA, BETA = 1e-2, 1e-3


@pytest.mark.parametrize("chance", [1e-6, 1e-3, 0.05, 0.3, 0.5, 0.9, 0.999])
def test_bets_have_mean_at_most_1(chance):
    """Exactly, token by token, for a set with any probability, either sign and every stake."""
    price = np.exp(-PRICES * chance * (1 - chance))
    for sign in (1, -1):
        inside, outside = np.exp(sign * STAKES * (1 - chance)), np.exp(-sign * STAKES * chance)
        assert ((chance * inside + (1 - chance) * outside) * price <= 1 + 1e-12).all()


@pytest.mark.parametrize("values", [[0.0, 0.5, 1.0], [0.2, 0.3, 0.9]])
def test_bets_on_any_feature_have_mean_at_most_1(values):
    p, f = np.array([0.7, 0.2, 0.1]), np.array(values)
    mean = p @ f
    price = np.exp(-PRICES * (p @ f**2 - mean**2))
    for sign in (1, -1):
        won = np.exp(sign * STAKES[:, None] * (f - mean)) @ p
        assert (won * price <= 1 + 1e-12).all()


def drawn(rng, chance, shift, tokens, sets=5):
    """Tokens whose sets have probability `chance`, the first of them shifted."""
    p = np.full((tokens, sets), chance)
    moved = p + shift * (np.arange(sets) == 0)
    return rng.random((tokens, sets)) < moved, p, p * (1 - p)


def test_independent_features_are_no_evidence():
    """500 campaigns at alpha 1e-2: more than 20 alarms have probability below 1e-6."""
    alarms = 0
    for seed in range(500):
        sums = FeatureSums((5,))
        sums.add(*drawn(np.random.default_rng(seed), 0.2, 0.0, 300))
        alarms += sums.log_evidence >= -np.log(ALPHA)
    assert alarms <= 20


@pytest.mark.parametrize("chance", [0.001, 0.1, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_shift_that_is_detectable_is_found(chance, sign):
    """300 campaigns with power 0.999: fewer than 295 found have probability below 1e-5."""
    sums = FeatureSums((5,))
    sums.add(*drawn(np.random.default_rng(0), chance, 0.0, 4_000))
    shift = sign * float(sums.detectable(ALPHA, BETA)[0])
    if not 0 <= chance + shift <= 1:
        pytest.skip("so rare a set cannot lose so much")
    found = 0
    for seed in range(300):
        sums = FeatureSums((5,))
        sums.add(*drawn(np.random.default_rng(seed), chance, shift, 4_000))
        found += sums.log_evidence >= -np.log(ALPHA)
        if seed == 0:
            assert sums.most == ((0,), sign > 0)
    assert found >= 295


CAMPAIGN = 1e-9
BETS = len(PLACES) * len(FEATURES)
"""As a stratum bets; at its alpha."""


@dataclass(frozen=True)
class Feature:
    """The values that a feature can have, and how probable they are under the target's law."""

    values: tuple[float, ...]
    law: tuple[float, ...]

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and variance."""
        values, law = np.array(self.values), np.array(self.law)
        mean = float(law @ values)
        return mean, float(law @ (values - mean) ** 2)


def of_set(chance: float) -> Feature:
    """A set with this probability."""
    return Feature((0.0, 1.0), (1 - chance, chance))


def of_pool(name: str) -> Feature:
    """A number feature of the first pair of laws that strata draw over 64 tokens."""
    pool = drawn_pool(np.random.default_rng(0), 64, 1)
    values, law = SHARES[name](pool.p[0], pool.q[0]), pool.p[0]
    return Feature(tuple(values[law > 0].tolist()), tuple(law[law > 0].tolist()))


POSSIBLE: Mapping[str, Feature] = {
    **{f"set, probability {x:g}": of_set(x) for x in (0.001, 0.05, 0.3, 0.5, 0.9)},
    "number, .49 or .51, rarely 0 or 1": Feature((0, 0.49, 0.51, 1), (5e-4, 0.4995, 0.4995, 5e-4)),
    "number, .09 or .11, rarely 0 or 1": Feature((0, 0.09, 0.11, 1), (5e-4, 0.4995, 0.4995, 5e-4)),
    "number, 0 to 1 in fifths": Feature((0, 0.25, 0.5, 0.75, 1), (0.2,) * 5),
    **{f"number, {name}": of_pool(name) for name in SHARES},
}


def sums_of(tokens: int, mean: float, variance: float) -> FeatureSums:
    """The sums of a stratum, before anything is off; the first feature is the one in question."""
    sums = FeatureSums((BETS,))
    sums.tokens += tokens
    sums.variance += tokens / 4
    sums.spread += tokens / 4
    sums.variance[0], sums.spread[0] = tokens * variance, tokens * mean * (1 - mean)
    return sums


def missed(feature: Feature, tokens: int, sign: int, runs: int, rng: np.random.Generator) -> int:
    """How many runs do not find the shift that is named, by which the mean is off.

    The law has two values. Where these cannot have a mean so far off, there are no runs.
    """
    mean, variance = feature.moments
    sums = sums_of(tokens, mean, variance)
    shift = float(sums.detectable(CAMPAIGN)[0])
    low, high = min(feature.values), max(feature.values)
    largest = (mean + sign * shift - low) / (high - low)
    if not 0 <= largest <= 1:
        return 0
    many = rng.binomial(tokens, largest, size=runs)
    excess = many * high + (tokens - many) * low - tokens * mean
    return runs - found(sums, excess)


def found(sums: FeatureSums, excess: Floats) -> int:
    """How many of these sums reach evidence 1 / alpha."""
    count = 0
    for one, times in zip(*np.unique(excess, return_counts=True), strict=True):
        sums.excess[0] = one
        count += int(times) * int(sums.log_evidence >= -np.log(CAMPAIGN))
    return count


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", POSSIBLE)
def test_the_shift_that_is_named_is_found_whatever_the_other_law_is(kind, sign):
    """3,000 campaigns with power 0.999: more than 15 misses have probability below 1e-7.

    The other law puts the values where their variance is largest.
    """
    assert missed(POSSIBLE[kind], 10_000, sign, 3_000, np.random.default_rng(1)) <= 15


def test_fewer_tokens_detect_less():
    tokens = tokens_to_detect(0.05, 1e-9, 100)
    for count, enough in ((tokens, True), (int(tokens / 1.2), False)):
        sums = FeatureSums((100,))
        sums.tokens += count
        sums.variance += count / 4
        sums.spread += count / 4
        assert (sums.detectable(1e-9)[0] <= 0.05) == enough


def test_nothing_is_detectable_without_tokens():
    assert FeatureSums((2, 3)).detectable(1e-9).tolist() == [[1.0] * 3] * 2


def test_tolerated_shifts_are_no_evidence():
    rng = np.random.default_rng(1)
    strict, lenient = FeatureSums((5,)), FeatureSums((5,), tolerance=0.1)
    tokens = drawn(rng, 0.3, 0.1, 4_000)
    for sums in (strict, lenient):
        sums.add(*tokens)
    assert strict.log_evidence > 20
    assert lenient.log_evidence < 0
    assert lenient.detectable(ALPHA)[0] > strict.detectable(ALPHA)[0] + 0.1


def test_sums_of_parts_are_sums_of_the_whole():
    values, mean, variance = drawn(np.random.default_rng(1), 0.3, 0.0, 100)
    whole, parts = FeatureSums((5,)), FeatureSums((2, 5))
    whole.add(values, mean, variance)
    for half in (slice(0, 50), slice(50, 100)):
        chosen = np.zeros((2, 50), dtype=bool)
        chosen[1] = True
        parts.add(values[half], mean[half], variance[half], chosen)
    assert parts.excess[1] == pytest.approx(whole.excess)
    assert parts.variance[1] == pytest.approx(whole.variance)
    assert parts.tokens.tolist() == [[0] * 5, [100] * 5]


def test_tokens_go_to_the_rows_that_chose_them():
    """Some to one row, some to both, some to none, in one call."""
    values, mean, variance = drawn(np.random.default_rng(2), 0.3, 0.1, 100)
    chosen = np.random.default_rng(3).random((2, 100)) < [[0.3], [0.7]]
    assert {(bool(a), bool(b)) for a, b in chosen.T} == {
        (a, b) for a in (False, True) for b in (False, True)
    }
    together = FeatureSums((2, 5))
    together.add(values, mean, variance, chosen)
    for row, mask in enumerate(chosen):
        alone = FeatureSums((5,))
        alone.add(values[mask], mean[mask], variance[mask])
        assert together.tokens[row].tolist() == [mask.sum()] * 5
        assert together.excess[row] == pytest.approx(alone.excess)
        assert together.variance[row] == pytest.approx(alone.variance)


def test_stakes_are_powers_of_two_and_cost_what_bennett_says():
    assert STAKES.tolist() == [2.0**k for k in range(-9, 4)]
    assert pytest.approx(np.exp(STAKES) - 1 - STAKES) == PRICES


def test_wealth_by_its_formula():
    sums = FeatureSums((1,), tolerance=0.02)
    sums.add(np.full((50, 1), 0.5), np.full((50, 1), 0.3), np.full((50, 1), 0.2))
    allowed = 0.02 * 50
    price = (0.2 * 50 + allowed) * (np.exp(STAKES) - 1 - STAKES)
    assert sums.log_wealth[0, 0] == pytest.approx(STAKES * (10 - allowed) - price)
    assert sums.log_wealth[0, 1] == pytest.approx(STAKES * (-10 - allowed) - price)


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
@pytest.mark.parametrize(("variance", "spread"), [(0.02, 0.02), (0.02, 0.1), (0.01, 0.25)])
def test_what_is_detectable_by_its_formula(tolerance, variance, spread):
    """The shift at which the excess, less Bernstein's noise, reaches what the best stake asks."""
    n, features = 5_000, 3
    sums = FeatureSums((features,), tolerance)
    sums.tokens += n
    sums.variance += n * variance
    sums.spread += n * spread
    shift = sums.detectable(ALPHA, BETA)
    assert shift.tolist() == [shift[0]] * features
    miss = np.log(1 / BETA)
    allowed = tolerance * n
    asked = np.log(2 * len(STAKES) * features / ALPHA) + PRICES * (n * variance + allowed)
    noise = np.sqrt(2 * min(n * spread + n * shift[0], n / 4) * miss) + miss / 3
    assert n * shift[0] - noise == pytest.approx((asked / STAKES).min() + allowed)


def test_few_tokens_detect_nothing():
    sums = FeatureSums((2,))
    sums.tokens += [3, 4_000]
    sums.variance += [0.75, 1_000]
    sums.spread += [0.75, 1_000]
    first, second = sums.detectable(ALPHA)
    assert (first, second < 0.2) == (1.0, True)


def test_the_feature_with_the_most_wealth_is_named():
    sums = FeatureSums((2, 3))
    sums.tokens += 100
    sums.variance += 10
    sums.excess[1, 2] = -20
    assert sums.most == ((1, 2), False)
    sums.excess[0, 1] = 21
    assert sums.most == ((0, 1), True)
