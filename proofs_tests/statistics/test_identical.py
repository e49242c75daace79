"""Identical rows: shared, opposite and evenly spread random numbers are told from independent."""

import itertools

import numpy as np
import pytest

from specref.statistics.identical import (
    alike_at,
    association,
    detectable_share,
    evenness,
    evenness_at,
    least_resemblance,
    resemblance,
)

SIZE, ROWS, ALPHA = 4, 16_384, 1e-9


def tokens_of(uniforms):
    return np.minimum((uniforms * SIZE).astype(int), SIZE - 1)


def test_resemblance_counts_pairs():
    tokens = np.random.default_rng(1).integers(SIZE, size=60)
    direct = [
        sum(SIZE * (tokens[i] == tokens[i + d]) - 1 for i in range(60 - d)) for d in range(1, 31)
    ]
    assert resemblance(tokens, SIZE).tolist() == direct


def test_resemblance_of_independent_tokens_has_mean_0_and_the_variance_of_the_bound():
    """Over all 256 texts of four tokens, exactly."""
    found = np.array(
        [resemblance(np.array(text), SIZE) for text in itertools.product(range(SIZE), repeat=4)]
    )
    assert found.mean(axis=0).tolist() == [0.0, 0.0]
    assert (found**2).mean(axis=0).tolist() == [(SIZE - 1) * 3, (SIZE - 1) * 2]


def test_independent_tokens_are_not_alike():
    """200 texts at alpha 1e-2: more than 12 alarms have probability below 1e-5."""
    rng = np.random.default_rng(1)
    alarms = sum(alike_at(rng.integers(SIZE, size=1_000), SIZE, 1e-2) is not None
                 for _ in range(200))  # fmt: skip
    assert alarms <= 12


@pytest.mark.parametrize("distance", [16, 97, 100, 4_095, 8_000])
def test_rows_that_share_numbers_are_alike_at_their_distance(distance):
    uniforms = np.resize(np.random.default_rng(distance).random(distance), ROWS)
    found = alike_at(tokens_of(uniforms), SIZE, ALPHA)
    assert found is not None
    assert found[0] == distance
    assert found[1] > 0


def test_one_pair_in_20_is_enough():
    rng = np.random.default_rng(1)
    uniforms = rng.random(4 * ROWS)
    assert detectable_share(4 * ROWS, SIZE, ALPHA, 20) < 0.05
    uniforms[::20] = np.repeat(rng.random(len(uniforms[::20]) // 200 + 1), 200)[
        : len(uniforms[::20])
    ]
    assert alike_at(tokens_of(uniforms), SIZE, ALPHA)[0] == 20


def test_a_share_that_is_detectable_is_found():
    """100 texts with power 0.999: fewer than 97 found have probability below 1e-5."""
    n, distance = 4_096, 1_500
    share = detectable_share(n, SIZE, ALPHA, distance)
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        tokens = rng.integers(SIZE, size=n)
        pairs = n - distance
        chosen = rng.permutation(pairs)[: int(np.ceil(share * pairs))]
        for at in np.sort(chosen):
            tokens[at + distance] = tokens[at]
        found += alike_at(tokens, SIZE, ALPHA) is not None
    assert found >= 97


def test_opposite_numbers_are_unlike():
    uniforms = np.random.default_rng(1).random(ROWS)
    uniforms[1::2] = 1 - uniforms[::2]
    distance, mean = alike_at(tokens_of(uniforms), SIZE, ALPHA)
    assert distance == 1
    assert mean < 0


@pytest.mark.parametrize("law", [[0.4, 0.2, 0.2, 0.2], [0.7, 0.1, 0.1, 0.1], [0.1, 0.3, 0.3, 0.3]])
def test_independent_tokens_of_a_wrong_law_are_neither_alike_nor_uneven(law):
    tokens = np.random.default_rng(1).choice(SIZE, size=ROWS, p=law)
    assert (resemblance(tokens, SIZE) > least_resemblance(ROWS, SIZE, ALPHA)).any()
    assert alike_at(tokens, SIZE, ALPHA) is None
    hits = (tokens.reshape(-1, 64) < 1).sum(axis=1)
    assert evenness(hits, 64, 0.25)[0] < 5


@pytest.mark.parametrize(("chance", "most"), [(0.25, 1), (0.5, 2)])
def test_spread_and_shared_numbers_are_told_apart(chance, most):
    rng, calls, rows = np.random.default_rng(1), 1_024, 64
    usual = rng.random((calls, rows))
    spread = (rng.permuted(np.tile(np.arange(rows), (calls, 1)), axis=1) + usual) / rows
    shared = np.repeat(usual[:, ::2], 2, axis=1)
    for uniforms, even in ((usual, None), (spread, True), (shared, False)):
        hits = (tokens_of(uniforms) < most).sum(axis=1)
        evidence, found = evenness(hits, rows, chance)
        assert (evidence > 30) == (even is not None)
        assert even is None or found == even


def test_bets_on_evenness_have_mean_1():
    """Exactly: each bet is a law divided by the binomial one."""
    from scipy.stats import binom

    law = binom.pmf(np.arange(21), 20, 0.25)
    won = [np.exp(evenness_at(np.array([k]), 20, 0.25)[0]) for k in range(21)]
    assert won @ law == pytest.approx(1)
    least = [np.exp(evenness(np.array([k]), 20, 0.25)[0]) for k in range(21)]
    assert (np.array(least) <= np.array(won) + 1e-12).all()


def test_bounds_by_their_formulas():
    bound = least_resemblance(100, SIZE, 1e-4)
    level = np.log(2 * 50 / 1e-4)
    for distance in (1, 50):
        pairs = 100 - distance
        assert bound[distance - 1] == pytest.approx(np.sqrt(2 * pairs * 3 * level) + level)
    miss = np.log(100)
    noise = np.sqrt(2 * 93 * 3 * miss) + miss
    assert detectable_share(100, SIZE, 1e-4, 7, 0.01) == pytest.approx(
        (bound[6] + noise) / (3 * 93)
    )


def test_of_several_distances_the_shortest_that_is_about_as_alike_is_named():
    uniforms = np.resize(np.random.default_rng(1).random(500), ROWS)
    assert alike_at(tokens_of(uniforms), SIZE, ALPHA) == (500, pytest.approx(3))  # 1,000, too


def test_hits_without_and_with_all_rows_are_counted():
    """A frequency of 0 or 1 has no binomial law to compare with: nothing is won."""
    for hits in (0, 20):
        evidence, _ = evenness(np.full(50, hits), 20, 0.25)
        assert evidence <= 0
    for hits in (1, 19):
        found = (
            evenness_at(np.full(50, hits), 20, 0.25)[0],
            evenness_at(np.full(50, hits), 20, hits / 20)[0],
        )
        assert evenness(np.full(50, hits), 20, 0.25)[0] == pytest.approx(min(found))


@pytest.mark.parametrize("law", [([0.5, 0.5], [0.2, 0.3, 0.5]), ([0.9, 0.1], [0.0, 0.0, 1.0])])
def test_association_is_won_by_no_pair_of_independent_laws(law):
    """The mean of the e-value over all 1,296 texts of four pairs is at most 1, exactly."""
    left, right = (np.array(one) for one in law)
    cells = list(itertools.product(range(2), range(3)))
    mean = 0.0
    for text in itertools.product(cells, repeat=4):
        one, other = np.array(text).T
        chance = (left[one] * right[other]).prod()
        mean += chance * np.exp(association(one, other, (2, 3))) if chance else 0.0
    assert 0.01 < mean <= 1


def test_association_is_of_pairs_not_of_laws():
    rng = np.random.default_rng(1)
    left, right = rng.integers(3, size=4_000), rng.integers(2, size=4_000)
    assert association(left, right, (3, 2)) < 0
    assert association(left, np.ones_like(right), (3, 2)) < 0
    partly = np.where(np.arange(4_000) % 4 == 0, left % 2, right)
    assert association(left, partly, (3, 2)) > 30
