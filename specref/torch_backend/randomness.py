"""Randomness as a function of (seed, iteration, site, index): no generator, no state.

A word is SplitMix64's finaliser (Steele, Lea & Flood 2014) taken twice of a counter, under a
key made of the row's seed. Both are bijections of 64-bit words, so no two numbers of a row come
from the same word; only additions, multiplications and shifts modulo 2^64 are used, which are
the same on every device.
"""

from typing import NamedTuple

import torch
from torch import Tensor

DRAFT, ACCEPT, FINAL, RESIDUAL, KEEP = 0, 1, 2, 3, 4
MOST_ITERATIONS, MOST_SITES, MOST_NUMBERS = 1 << 31, 1 << 8, 1 << 24
STEP = 0x9E3779B97F4A7C15 - (1 << 64)
FACTORS = (0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64))
BITS = 53


class Coins(NamedTuple):
    """The randomness of verifying a batch, all of it.

    Attributes
    ----------
    accept : Tensor, shape (B, K)
        Uniforms in [0, 1): draft i is accepted iff accept[:, i] < p / q.
    final : Tensor, shape (B,), optional
        Uniforms in [0, 1): the last token by an inverse CDF.
    race : Tensor, shape (B, V), optional
        Exponential noise: the last token is argmin race / weight; goes before `final`.
    """

    accept: Tensor
    final: Tensor | None = None
    race: Tensor | None = None


def row_coins(seeds: Tensor, iteration: int, lookahead: int) -> Coins:
    """The random numbers of one iteration; a row's depend on its own seed alone.

    Parameters and errors as `uniforms`; `accept` is of the site ``ACCEPT``, `final` of
    ``FINAL``.

    Examples
    --------
    >>> coins = row_coins(torch.tensor([7, 8]), iteration=0, lookahead=3)
    >>> coins.accept.shape, coins.final.shape
    (torch.Size([2, 3]), torch.Size([2]))
    """
    _check(seeds, iteration, ACCEPT, lookahead)
    counter = torch.arange(lookahead + 1, device=seeds.device) + _start(iteration, ACCEPT)
    counter[lookahead:] = _start(iteration, FINAL)
    coins = _uniforms(seeds, counter)
    return Coins(coins[:, :lookahead], coins[:, lookahead])


def uniforms(seeds: Tensor, iteration: int, site: int, count: int) -> Tensor:
    """Numbers in [0, 1), multiples of 2^-53: the same on every device and in every batch.

    Parameters
    ----------
    seeds : Tensor of int64, shape (B,)
        One for each row; equal seeds give equal rows.
    iteration : int
        Below 2^31.
    site : int
        What they are for: ``DRAFT``, ``ACCEPT``, ``FINAL``, ``RESIDUAL``, ``KEEP``, or another
        number below 2^8.
    count : int
        At most 2^24; fewer numbers are the first of more.

    Returns
    -------
    Tensor of float64, shape (B, count)

    Raises
    ------
    TypeError
        `seeds` is no tensor of int64.
    ValueError
        `seeds` is no vector, or another argument is out of range.

    Examples
    --------
    >>> uniforms(torch.tensor([7, 8]), iteration=0, site=ACCEPT, count=2)
    tensor([[0.8819, 0.1535],
            [0.5208, 0.2078]], dtype=torch.float64)
    """
    _check(seeds, iteration, site, count)
    counter = torch.arange(count, device=seeds.device) + _start(iteration, site)
    return _uniforms(seeds, counter)


def _start(iteration: int, site: int) -> int:
    return (iteration << 32) | (site << 24)


def _uniforms(seeds: Tensor, counter: Tensor) -> Tensor:
    keys = _mixed(seeds[:, None] + torch.arange(1, 3, device=seeds.device) * STEP)
    words = _mixed(_mixed(counter * STEP + keys[:, :1]) ^ keys[:, 1:])
    return _shifted(words, 64 - BITS).double() * 2.0**-BITS


def _mixed(words: Tensor) -> Tensor:
    """SplitMix64's finaliser."""
    words = (words ^ _shifted(words, 30)) * FACTORS[0]
    words = (words ^ _shifted(words, 27)) * FACTORS[1]
    return words ^ _shifted(words, 31)


def _shifted(words: Tensor, bits: int) -> Tensor:
    """A logical shift to the right: int64 has only the arithmetic one."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)


def _check(seeds: Tensor, iteration: int, site: int, count: int) -> None:
    if not isinstance(seeds, Tensor) or seeds.dtype != torch.int64:
        kind = seeds.dtype if isinstance(seeds, Tensor) else type(seeds).__name__
        raise TypeError(f"seeds is of {kind}: expected a tensor of torch.int64")
    if seeds.ndim != 1:
        raise ValueError(f"seeds has shape {tuple(seeds.shape)}: expected (B,)")
    limits = {
        "iteration": (iteration, MOST_ITERATIONS - 1),
        "site": (site, MOST_SITES - 1),
        "count": (count, MOST_NUMBERS),
    }
    for name, (value, most) in limits.items():
        if not 0 <= value <= most:
            raise ValueError(f"{name} = {value}: expected an integer from 0 to {most}")
