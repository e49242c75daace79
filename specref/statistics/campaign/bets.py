"""Bets on the next token: each has mean 1 under p, so its running product is a martingale.

A component is one strategy: a table of bets f(node, token) >= 0 with sum_x p(x) f(x) = 1 at
every node. Its log-bets are summed over all tokens of a campaign; components are averaged once,
at the end. By Ville's inequality the average ever reaches 1/alpha with probability at most
alpha if the sampler is lossless, whatever its acceptance law, whenever one looks.

Lag bets ask whether a token repeats, or follows in rank, the one at its place some blocks before.
Independent blocks of a correct sampler do not; blocks that share a seed, a batch that is drawn
twice, or noise that is used again do. Where the block before had no token, nothing is bet.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import scipy

from specref.arrays import Bools, Floats, Ints

STAKES = np.array([s * x for x in (0.9, 0.5, 0.25, 0.1, 0.03, 0.01) for s in (1, -1)])
Strengthened: TypeAlias = tuple[str, float]
"""A known bug by its id, and how much of a sampler it is."""
STRENGTHS = (1.0, 0.3, 0.1, 0.03)
CONCENTRATIONS = np.array([10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5])
FEATURES = ("q > p", "q/(p+q)", "argmax p", "argmax q", "rare", "last id")
POSITION_SLOTS = 5
RARE = 0.5
ROUNDING = 1e-12


def features(p: Floats, q: Floats) -> Floats:
    """Functions of a token that known bugs make larger or smaller; shape (features, …, V)."""
    total = p + q
    share = np.divide(q, total, out=np.full_like(p, 0.5), where=total > 0)
    size = p.shape[-1]
    last = np.where(p > 0, np.arange(size), -1).max(axis=-1, keepdims=True)
    mean = (p * p).sum(axis=-1, keepdims=True)
    return np.stack(
        [
            (q > p).astype(np.float64),
            share,
            (p == p.max(axis=-1, keepdims=True)).astype(np.float64),
            (q == q.max(axis=-1, keepdims=True)).astype(np.float64),
            (p < RARE * mean).astype(np.float64),
            (np.arange(size) == last).astype(np.float64),
        ]
    )


def tilts(p: Floats, q: Floats) -> Floats:
    """Log-bets 1 + stake * (feature - mean) / reach; shape (features, stakes, …, V)."""
    stakes = STAKES.reshape(-1, *[1] * p.ndim)
    return np.where(p > 0, np.log1p(stakes * centred_features(p, q)[:, None]), 0)


def centred_features(p: Floats, q: Floats) -> Floats:
    """Features with mean 0 under p and largest value 1 on its support; 0 where constant."""
    unit = np.where(p > 0, features(p, q), 0)
    # Twice, because the first mean is rounded, and dividing by a small reach blows that up.
    for _ in range(2):
        unit = np.where(p > 0, unit - (p * unit).sum(axis=-1, keepdims=True), 0)
        reach = np.abs(unit).max(axis=-1, keepdims=True)
        unit = np.divide(unit, reach, out=np.zeros_like(unit), where=reach > ROUNDING)
    return unit


def position_slots(position: Ints) -> Ints:
    """The slot of the per-position components for a position; far ones share the last."""
    return np.minimum(position, POSITION_SLOTS - 1)


def tilt_evidence(counts: Floats, log_bets: Floats, position: Ints) -> Floats:
    """Sum log-bets over counted tokens; shape (features, stakes, slots + 1), pooled last."""
    by_node = np.einsum("fsnv,nv->fsn", log_bets, counts)
    slots = np.eye(POSITION_SLOTS)[position_slots(position)]
    return np.concatenate([by_node @ slots, by_node.sum(axis=-1, keepdims=True)], axis=-1)


def library_bets(
    p: Floats, clean: Floats, mutants: Mapping[str, Floats]
) -> dict[Strengthened, Floats]:
    """Log-bets on known bugs at several strengths: the mutant's next-token law over p.

    `clean` and `mutants` are P(block starts with prefix + token), by node and token.
    """
    bets: dict[Strengthened, Floats] = {}
    for name, mutant in mutants.items():
        for strength in STRENGTHS:
            mass = (1 - strength) * clean + strength * mutant
            bets[name, strength] = conditional_log_ratio(mass, p)
    return bets


def conditional_log_ratio(mass: Floats, p: Floats) -> Floats:
    """log(norm(mass) / p) by row; 0 where a row is empty or p is 0, -inf where only mass is."""
    # What a mutant would put on tokens that p excludes is not bet on: seeing one decides.
    possible = np.where(p > 0, mass, 0)
    total = possible.sum(axis=-1, keepdims=True)
    reachable = (p > 0) & (total > 0)
    law = np.divide(possible, total, out=np.ones_like(p), where=total > 0)
    with np.errstate(divide="ignore"):
        return np.where(reachable, np.log(law) - np.log(np.where(p > 0, p, 1)), 0)


def dirichlet_evidence(counts: Floats, p: Floats) -> Floats:
    """Log-wealth of betting a Dirichlet(c p) mixture at each node; shape (concentrations,)."""
    seen = counts.sum(axis=-1) > 0
    counts, p = counts[seen], p[seen]
    c = CONCENTRATIONS.reshape(-1, 1, 1)
    prior = np.where(p > 0, c * p, 1)
    # No impossible token is counted, so it adds 0.
    gain = (scipy.special.gammaln(prior + counts) - scipy.special.gammaln(prior)).sum(axis=-1)
    total = counts.sum(axis=-1)
    mixture = scipy.special.gammaln(c[..., 0]) - scipy.special.gammaln(c[..., 0] + total) + gain
    against = (counts * np.log(np.where(p > 0, p, 1))).sum(axis=-1)
    return np.asarray((mixture - against).sum(axis=-1))


def tolerate(log_bets: Floats, p: Floats, tolerance: float) -> Floats:
    """Make bets fair against every law within total variation `tolerance` of p at each node.

    Divides each bet f by 1 + tolerance * (max f - min f), the most its mean can become.
    """
    if not tolerance:
        return log_bets
    bets = np.exp(log_bets)
    highest = np.where(p > 0, bets, -np.inf).max(axis=-1, keepdims=True)
    lowest = np.where(p > 0, bets, np.inf).min(axis=-1, keepdims=True)
    return np.asarray(log_bets - np.log1p(tolerance * (highest - lowest)))


def log_mean(log_values: Floats) -> float:
    """log of the mean of exp; -inf for nothing."""
    highest = float(log_values.max(initial=-np.inf))
    if highest == -np.inf:
        return highest
    return highest + float(np.log(np.exp(log_values - highest).mean()))


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
    """Log-bets on tokens, each given an earlier one, to which p gives the probability `chance`.

    `repeats`: it is the same; `product`: of the ranks of both. With a tolerance as in `tolerate`:
    both bets differ by at most twice their stake.
    """
    reach = np.maximum(chance, 1 - chance)
    gains = np.stack([(repeats - chance) / reach, product])
    price = np.log1p(2 * tolerance * np.abs(STAKES))
    return np.asarray(np.log1p(STAKES[:, None] * gains[:, None]) - price[:, None])


class Recent:
    """The last blocks of a case, with which lag bets compare the next ones."""

    def __init__(self, p: Floats, length: int, tolerance: float = 0.0) -> None:
        self.p, self.ranks, self.tolerance = p, ranks(p), tolerance
        self.blocks: Ints = np.full((DEPTH, length), -1)

    def bet(self, nodes: Ints, blocks: Ints, possible: Bools) -> Floats:
        """The log-wealth that lag bets win on new blocks, which then become the last ones.

        `nodes` and `blocks` are as `walk` gives and takes them; `possible` is where to bet.
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
    """The distinct values of rows of integers below `size`, and how often each row has each."""
    if size <= MOST_COUNTERS:
        counts = np.stack([np.bincount(row.ravel(), minlength=size) for row in rows])
        distinct = np.flatnonzero(counts.any(axis=0))
        return distinct, counts[:, distinct]
    flat = [row.ravel() for row in rows]
    distinct, index = np.unique(np.concatenate(flat), return_inverse=True)
    parts = np.split(index, np.cumsum([len(row) for row in flat])[:-1])
    return distinct, np.stack([np.bincount(part, minlength=len(distinct)) for part in parts])
