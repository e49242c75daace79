"""Noise is no distance, and a distance is not told larger than it is."""

import numpy as np
import pytest
import scipy.stats

from proofs_tests.helpers.tree_cases import ABCD
from specref.arrays import Floats
from specref.chance import exact_distribution
from specref.models import hashed_model
from specref.statistics import TwoSample
from specref.statistics.campaign.least import (
    APART,
    Cells,
    Least,
    least_of,
    least_on,
    most_off,
    off_by,
)
from specref.statistics.campaign.prefix_tree import prefix_tree, starts
from specref.zoo import MUTANTS

TIMES = 200


def sampled(p: Floats, law: Floats, trials: int, rng: np.random.Generator) -> Least:
    """Of samples from p, how far they are from a law."""
    count = rng.multinomial(trials, p).astype(np.float64)
    return least_of([Cells(count, np.full(len(p), float(trials)), law)], trials)


@pytest.mark.parametrize("apart", APART)
@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.97, 1.0])
def test_of_the_law_itself_nothing_is_left_on_average(p: float, apart: float) -> None:
    size = 12
    count = np.arange(size + 1.0)
    excess, which = off_by(Cells(count, np.full(size + 1, 12.0), np.full(size + 1, p)), apart)
    chance = scipy.stats.binom.pmf(count, size, p)
    assert abs(chance @ excess) < 1e-12
    # Without what is taken away it would be so much too large.
    if 0 < p < 1 and not apart:
        assert chance @ np.where(which, count - size * p, 0) > 0.05


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(("cells", "trials"), [(8, 3_000), (512, 3_000), (5_000, 12_000)])
def test_noise_is_not_told_as_a_distance(cells: int, trials: int) -> None:
    rng = np.random.default_rng(cells)
    law = rng.dirichlet(np.full(cells, 0.5))
    found = [sampled(law, law, trials, rng) for _ in range(TIMES)]
    assert np.mean([one.sure > 0 for one in found]) < 0.02
    assert abs(np.mean([one.estimate for one in found])) < 1 / trials**0.5
    plain = [np.abs(rng.multinomial(trials, law) / trials - law).sum() / 2 for _ in range(9)]
    assert cells < 99 or min(plain) > 5 * max(one.error for one in found)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize(("cells", "trials"), [(8, 3_000), (512, 3_000), (5_000, 12_000)])
def test_a_distance_is_not_told_larger_than_it_is(cells: int, trials: int, few: bool) -> None:
    rng = np.random.default_rng(cells)
    law = rng.dirichlet(np.full(cells, 0.5))
    p, most = law.copy(), np.argsort(-law)
    one, other = (most[:1], most[1:]) if few else (most[::2], most[1::2])
    moved = 0.08 * p[one] / p[one].sum()
    p[one] -= np.minimum(moved, p[one])
    p[other] += (1 - p.sum()) * p[other] / p[other].sum()
    distance = np.abs(p - law).sum() / 2
    found = [sampled(p, law, trials, rng) for _ in range(TIMES)]
    assert np.mean([one.estimate - distance > 2 * one.error for one in found]) < 0.05
    if few or cells == 8:
        assert np.mean([one.estimate for one in found]) > 0.4 * distance


def test_blocks_are_compared_by_their_beginnings_and_by_single_tokens() -> None:
    target, drafter = hashed_model(ABCD, "p"), hashed_model(ABCD, "q")
    tree = prefix_tree(target, drafter, lookahead=2)
    bug = MUTANTS["residual-is-p"].step
    law = exact_distribution(lambda chance: bug(target, drafter, (), 2, chance))
    trials = 400_000
    counts = np.round(starts(tree, law) * trials)
    distance = np.abs(tree.completed(counts, trials) / trials - tree.law).sum() / 2
    found = least_on(tree, counts, trials)
    assert 0.8 * distance < found.estimate <= distance
    assert f"TV at least about {found.estimate:.3f} (s.e. 0.00" in str(found)
    clean = least_on(tree, tree.mass(np.zeros_like(counts), trials), trials)
    assert str(clean).startswith("TV too small to be told from noise")


def test_the_token_that_is_off_most_is_named() -> None:
    """The last token of four comes half as often at position 1, whatever comes before."""
    target = hashed_model(ABCD, "p")
    tree = prefix_tree(target, target, lookahead=2)
    mass = tree.mass(np.zeros_like(tree.p), 100_000)
    second = tree.position == 1
    assert not most_off(tree, mass, 100_000).startswith("token 3 at position 1")
    mass[second, 0] += mass[second, 3] / 2
    mass[second, 3] /= 2
    assert most_off(tree, mass, 100_000).startswith("token 3 at position 1, less often: ")


@pytest.mark.deep
def test_two_samples_of_one_law_are_not_told_apart_and_others_are() -> None:
    rng = np.random.default_rng(5)

    def texts(p: list[float]) -> np.ndarray:
        drawn = rng.integers(0, 5, (4_000, 6))
        drawn[:, 3] = rng.choice(5, 4_000, p=p)
        return drawn

    even, over = [0.2] * 5, list[bool]()
    for _ in range(20):
        test = TwoSample()
        test.add(texts(even), texts(even))
        assert test.report().estimate > 0.7  # of thousands of different texts
        over.append(test.least().sure > 0)
    assert sum(over) <= 1
    test = TwoSample()
    test.add(texts(even), texts([0.2, 0.25, 0.25, 0.2, 0.1]))
    assert 0.06 < test.least().estimate < 0.14
