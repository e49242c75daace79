"""How far a sampled law is from another at least: the part of a distance that is not noise.

The total variation of two laws is the largest difference P(A) - Q(A) over all events A. In samples
it is too large, since A is chosen by the same samples: over many cells most of it is noise. Here A
is the cells that are off by more than some standard errors, in one direction; what such a choice
wins on average if nothing is off is taken away again. What is left is about P(A) - Q(A), so at
most about the total variation. Of several ways to cut samples into cells the one that shows most
is told.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from specref.arrays import Bools, Floats
from specref.statistics.campaign.levels import log_choose
from specref.statistics.campaign.prefix_tree import PrefixTree

APART = {0.0: 0.5, 2.0: 0.131}
"""Standard errors z: for many small differences, and for few large ones; and E[Z^2; Z > z]."""
SURE = 3.0
"""Standard errors below which it is not told: the largest of some dozens of differences is."""


class Cells(NamedTuple):
    """Disjoint cells, and how often each was seen: binomial, if nothing is off."""

    seen: Floats
    size: Floats
    chance: Floats


@dataclass(frozen=True)
class Least:
    """A difference that laws have at least, about, and its standard error.

    Attributes
    ----------
    estimate, error : float
        Total variation.
    """

    estimate: float
    error: float

    @property
    def sure(self) -> float:
        """What is left of it after three standard errors."""
        return self.estimate - SURE * self.error

    def __str__(self) -> str:
        """The words of all messages.

        >>> print(Least(0.0384, 0.0031), Least(0.0084, 0.0031), sep="\\n")
        TV at least about 0.038 (s.e. 0.003)
        TV too small to be told from noise (s.e. 0.003)
        """
        if self.sure < 0:
            return f"TV too small to be told from noise (s.e. {self.error:.3f})"
        return f"TV at least about {self.estimate:.3f} (s.e. {self.error:.3f})"


def off_by(cells: Cells, apart: float) -> tuple[Floats, Bools]:
    """By how much cells are above what is expected, less what noise adds; and which count.

    De Moivre: the sum of (j - np) b(j) over j >= k is k (1 - p) b(k).
    """
    from scipy.special import xlog1py, xlogy  # it takes long to import

    count, size, p = cells
    mean = size * p
    least = np.minimum(np.floor(mean + apart * np.sqrt(mean * (1 - p))) + 1, size)
    log_chance = xlogy(least, p) + xlog1py(size - least, -p)
    noise = least * (1 - p) * np.exp(log_choose(size.astype(np.int64), least) + log_chance)
    which = (count >= least) & (count > mean)
    return np.where(which, count - mean, 0.0) - np.where(mean < size, noise, 0.0), which


def least_of(views: Iterable[Cells], trials: int, *, both: bool = False) -> Least:
    """The difference that is surest to be large, of all views and in both directions.

    `both`: `size` counts two samples of so many trials, of which `seen` are in the first.
    """
    found = [Least(0.0, 0.5 / trials**0.5)]
    for cells in views:
        other = Cells(cells.size - cells.seen, cells.size, 1 - cells.chance)
        for side in (cells, other):
            for apart, part in APART.items():
                excess, which = off_by(side, apart)
                shares = [cells.seen[which].sum() / trials]
                shares += [other.seen[which].sum() / trials] * both
                spread = (cells.size * cells.chance * (1 - cells.chance))[~which].sum()
                variance = sum(share * (1 - share) for share in shares) / trials
                variance += (1 + both) ** 2 * part * spread / trials**2
                found.append(
                    Least((1 + both) * float(excess.sum()) / trials, max(variance, 0.0) ** 0.5)
                )
    return max(found, key=lambda one: one.sure)


def least_on(tree: PrefixTree, counts: Floats, trials: int, impossible: int = 0) -> Least:
    """The difference of completed blocks from their law, by their first tokens or by one of them.

    `counts` are of possible blocks, besides `impossible` others.
    """
    seen, law = tree.mass(counts, trials - impossible), tree.mass(np.zeros_like(counts), 1)
    tokens = _views(tree, seen), _views(tree, law)
    cells = (
        (np.append(count, impossible), np.clip(np.append(chance, 0.0), 0, 1))
        for count, chance in zip(*tokens, strict=True)
    )
    return least_of((Cells(c, np.full_like(c, trials), p) for c, p in cells), trials)


def _views(tree: PrefixTree, mass: Floats) -> list[Floats]:
    """The mass of each token at a position, and of each beginning of so many tokens."""
    views = []
    for position in range(tree.length):
        here = mass[tree.position == position]
        ended = mass[(tree.position < position)[:, None] & tree.leaves]
        views += [here.sum(axis=0), np.concatenate([here.ravel(), ended])]
    return views


def most_off(tree: PrefixTree, counts: Floats, trials: int) -> str:
    """The token at a position that is off most, in standard errors: how often it comes.

    Of blocks that are completed by p, whatever they are off by is smaller.
    """
    seen, law = tree.mass(counts, trials), tree.mass(np.zeros_like(counts), 1)
    at = range(tree.length)
    many, p = (np.array([m[tree.position == j].sum(axis=0) for j in at]) for m in (seen, law))
    error = np.sqrt(np.clip(p * (1 - p), 0, None) / trials)
    off = np.divide(np.abs(many / trials - p), error, out=np.zeros_like(p), where=error > 0)
    position, token = np.unravel_index(int(off.argmax()), off.shape)
    share, chance = many[position, token] / trials, p[position, token]
    direction = "more" if share > chance else "less"
    return (
        f"token {token} at position {position}, {direction} often: {share:.1%}, by the "
        "distribution "
        f"{chance:.1%}"
    )
