"""Lag bets: does a token repeat, or follow in rank, the one at its place some blocks before?

Independent blocks of a correct sampler do not; blocks that share a seed, a batch that is drawn
twice, or noise that is used again do. Where the block before had no token, nothing is bet.
"""

from collections.abc import Iterable

import numpy as np

from specref.arrays import Bools, Floats, Ints
from specref.statistics.campaign.bets import STAKES

LAGS = np.array([1, 2, 4, 8, 16, 32, 64])
DEPTH = int(LAGS.max())
KINDS = ("repeats the token", "follows the rank")
LAG_SHAPE = (len(LAGS), len(KINDS), len(STAKES))
MOST_COUNTERS = 1 << 19


def ranks(p: Floats) -> Floats:
    """The middle of each token's interval in the distribution function, scaled to (-1, 1).

    Under p it has mean 0.
    """
    return np.asarray(2 * np.cumsum(p, axis=-1) - p - 1)


def lag_bets(chance: Floats, repeats: Bools, product: Floats, tolerance: float = 0.0) -> Floats:
    """Log-bets on a token, given an earlier one.

    * `chance` (ndarray, shape (events,)): The probability that p gives to the earlier token.
    * `repeats` (ndarray of bool, shape (events,)): Whether the token is the same.
    * `product` (ndarray, shape (events,)): Of the ranks of both tokens under p.
    * `tolerance`: As in `tolerate`; both bets differ by at most twice their stake.
    """
    reach = np.maximum(chance, 1 - chance)
    gains = np.stack([(repeats - chance) / reach, product])
    price = np.log1p(2 * tolerance * np.abs(STAKES))
    return np.asarray(np.log1p(STAKES[:, None] * gains[:, None]) - price[:, None])


class Recent:
    """The last blocks of a case, with which lag bets compare the next ones.

    * `p` (ndarray, shape (nodes, V)): The laws of a prefix tree.
    * `length`: The longest block.
    * `tolerance`: As in `tolerate`.
    """

    def __init__(self, p: Floats, length: int, tolerance: float = 0.0) -> None:
        self.p, self.ranks, self.tolerance = p, ranks(p), tolerance
        self.blocks: Ints = np.full((DEPTH, length), -1)

    def bet(self, nodes: Ints, blocks: Ints, possible: Bools) -> Floats:
        """The log-wealth that lag bets win on new blocks, which then become the last ones.

        * `nodes`, `blocks` (ndarray of int, shape (trials, length)): As `walk` gives and takes
          them.
        * `possible` (ndarray of bool, shape (trials, length)): Where to bet.
        """
        past = np.concatenate([self.blocks, blocks])
        self.blocks = past[-DEPTH:].copy()
        cells, size = self.p.size, self.p.shape[1]
        # Cell `cells`, and an earlier token of -1, stand for no bet.
        cell = np.where(possible, nodes * size + blocks, cells) * (size + 1) + 1
        pairs = (cell + past[DEPTH - lag : len(past) - lag] for lag in LAGS)
        distinct, times = tally(pairs, (cells + 1) * (size + 1))
        here, earlier = np.divmod(distinct, size + 1)
        bets = (here < cells) & (earlier > 0)
        (node, token), previous = np.divmod(here[bets], size), earlier[bets] - 1
        product = self.ranks[node, token] * self.ranks[node, previous]
        won = lag_bets(self.p[node, previous], token == previous, product, self.tolerance)
        return np.moveaxis(won @ times[:, bets].T, -1, 0)


def tally(rows: Iterable[Ints], size: int) -> tuple[Ints, Ints]:
    """The distinct values of all rows, and how often each occurs in each row.

    * `rows`: Integers from 0 to size - 1.
    """
    if size <= MOST_COUNTERS:
        counts = np.stack([np.bincount(row.ravel(), minlength=size) for row in rows])
        distinct = np.flatnonzero(counts.any(axis=0))
        return distinct, counts[:, distinct]
    flat = [row.ravel() for row in rows]
    distinct, index = np.unique(np.concatenate(flat), return_inverse=True)
    parts = np.split(index, np.cumsum([len(row) for row in flat])[:-1])
    return distinct, np.stack([np.bincount(part, minlength=len(distinct)) for part in parts])
