"""Counter-based uniforms: the same numbers whoever asks, and no pattern among them.

Statistical tests together: alpha 1e-6. Each counts 65,536 numbers or pairs in 256 cells; one in
which every cell is off by 10 % has a noncentrality of 655 on 255 degrees of freedom, and is
found with a probability above 1 - 1e-9.
"""

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch

from specref.torch_backend import randomness
from specref.torch_backend.randomness import ACCEPT, DRAFT, FINAL, row_coins, uniforms

ALPHA = 1e-6
WORD = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
SEEDS = [0, 1, 7, -1, 2**63 - 1, -(2**63)]
MANY = 1 << 16


def mixed(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


def number(seed: int, iteration: int, site: int, index: int) -> float:
    first, second = (mixed((seed + k * STEP) & WORD) for k in (1, 2))
    counter = iteration * 2**32 + site * 2**24 + index
    return (mixed(mixed((counter * STEP + first) & WORD) ^ second) >> 11) / 2**53


def test_mixing_is_splitmix64() -> None:
    """The first numbers of SplitMix64 from seed 1234567, as its reference code prints them."""
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    words = torch.tensor([1234567]) + torch.arange(1, 4) * randomness.STEP
    assert [word & WORD for word in randomness._mixed(words).tolist()] == known


@pytest.mark.parametrize("iteration", [0, 1, 2**31 - 1])
@pytest.mark.parametrize("site", [DRAFT, ACCEPT, FINAL, 255])
def test_numbers_are_those_of_plain_integers(iteration: int, site: int) -> None:
    expected = [[number(seed, iteration, site, j) for j in range(9)] for seed in SEEDS]
    assert uniforms(torch.tensor(SEEDS), iteration, site, 9).tolist() == expected


def test_mixing_can_be_undone() -> None:
    """It is a bijection, and so are its parts: no two counters of a row give one word."""

    def unshifted(word: int, bits: int) -> int:
        found = word
        for _ in range(64 // bits):
            found = word ^ (found >> bits)
        return found

    words = [int(word) for word in np.random.default_rng(1).integers(0, WORD, 500, np.uint64)]
    for word in words:
        back = unshifted(mixed(word), 31) * pow(0x94D049BB133111EB, -1, 1 << 64) & WORD
        back = unshifted(back, 27) * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & WORD
        assert unshifted(back, 30) == word


def test_sites_and_iterations_do_not_overlap() -> None:
    seeds = torch.arange(64)
    grid = [uniforms(seeds, i, site, 64) for i in range(16) for site in (DRAFT, ACCEPT, FINAL)]
    assert torch.cat(grid).unique().numel() == 64 * 16 * 3 * 64


def test_a_row_does_not_depend_on_its_batch() -> None:
    seeds = torch.tensor(SEEDS)
    whole = uniforms(seeds, 3, ACCEPT, 8)
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    assert torch.equal(uniforms(seeds[order], 3, ACCEPT, 8), whole[order])
    for row in range(len(SEEDS)):
        assert torch.equal(uniforms(seeds[row : row + 1], 3, ACCEPT, 8)[0], whole[row])
    assert torch.equal(uniforms(seeds, 3, ACCEPT, 5), whole[:, :5])
    assert uniforms(seeds[:0], 3, ACCEPT, 8).shape == (0, 8)


def test_coins_of_rows() -> None:
    seeds = torch.tensor(SEEDS)
    coins = row_coins(seeds, 5, 3)
    assert torch.equal(coins.accept, uniforms(seeds, 5, ACCEPT, 3))
    assert torch.equal(coins.final, uniforms(seeds, 5, FINAL, 1)[:, 0])
    assert coins.race is None
    assert row_coins(seeds, 5, 0).accept.shape == (6, 0)


def test_53_bits_below_1() -> None:
    numbers = uniforms(torch.arange(64), 0, DRAFT, 1024)
    cells = numbers * 2.0**53
    assert numbers.dtype == torch.float64
    assert bool((numbers >= 0).all() & (numbers < 1).all() & (cells == cells.round()).all())
    seen = cells.long()
    for bit in range(53):
        assert 0 < int(((seen >> bit) & 1).sum()) < seen.numel()


def sequences(draw) -> dict[str, np.ndarray]:
    """Numbers whose arguments differ as little as may be."""
    one, many = torch.tensor([5]), torch.arange(MANY)
    steps = [draw(torch.arange(64), i, s, 1)[:, 0] for i in range(512) for s in (ACCEPT, FINAL)]
    return {
        "index": draw(one, 0, ACCEPT, MANY)[0].numpy(),
        "seed": draw(many, 0, ACCEPT, 1)[:, 0].numpy(),
        "seed, far": draw(many << 47, 0, ACCEPT, 1)[:, 0].numpy(),
        "iteration and site": torch.stack(steps, dim=1).flatten().numpy(),
    }


def p_values(numbers: np.ndarray) -> list[float]:
    """Of the first 8 bits, the last 8 bits, and 4 bits of neighbours."""
    cells = (numbers * 2.0**53).astype(np.int64)
    first, last, four = cells >> 45, cells & 255, cells >> 49
    pairs = four * 16 + np.roll(four, 1)
    return [stats.chisquare(np.bincount(x, minlength=256)).pvalue for x in (first, last, pairs)]


def rejected(draw) -> set[str]:
    found = {name: p_values(numbers) for name, numbers in sequences(draw).items()}
    level = ALPHA / sum(map(len, found.values()))
    return {name for name, values in found.items() if min(values) < level}


def test_numbers_are_spread_evenly() -> None:
    assert rejected(uniforms) == set()


def squared(*arguments):
    return uniforms(*arguments) ** 2


def unmixed(seeds, iteration, site, count):
    words = (seeds[:, None] + torch.arange(count) + iteration * 2 + site) * randomness.STEP
    return randomness._shifted(words, 11).double() / 2**53


def without_key(seeds, iteration, site, count):
    return uniforms(torch.zeros_like(seeds), iteration, site, count)


def site_ignored(seeds, iteration, site, count):
    return uniforms(seeds, iteration, 0, count)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("draw", "where"),
    [
        (squared, {"index", "seed", "seed, far", "iteration and site"}),
        (unmixed, {"index", "seed", "seed, far", "iteration and site"}),
        (without_key, {"seed", "seed, far", "iteration and site"}),
        (site_ignored, {"iteration and site"}),
    ],
)
def test_patterns_are_seen(draw, where: set[str]) -> None:
    assert rejected(draw) == where


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seeds": torch.tensor([1.0])}, "seeds is of torch.float32"),
        ({"seeds": [1]}, "seeds is of list"),
        ({"seeds": torch.tensor(1)}, r"seeds has shape \(\): expected \(B,\)"),
        ({"iteration": -1}, "iteration = -1"),
        ({"iteration": 2**31}, "iteration = 2147483648"),
        ({"site": 256}, "site = 256: expected an integer from 0 to 255"),
        ({"count": 2**24 + 1}, "count = 16777217"),
    ],
)
def test_bad_arguments(changed, message: str) -> None:
    given = {"seeds": torch.tensor([1]), "iteration": 0, "site": 0, "count": 1} | changed
    with pytest.raises((TypeError, ValueError), match=message):
        uniforms(**given)
