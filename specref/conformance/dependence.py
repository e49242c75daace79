"""A test of whether the rows of a call depend on each other, whatever their law.

Many small calls of one shape are drawn, and the rows of each are split into two parts. If rows
are independent, and calls are too, then the second parts could be exchanged between calls: every
order of eight of them is as likely. The bet is on the order that was seen, where parts of one call
resemble each other, over the mean of all 40,320 orders; its mean is 1 whatever the rows' laws, and
they may differ by the place in the batch. So, unlike a bet at the target's odds, it cannot be won
by a wrong law. It can by a law that changes from call to call.
"""

import math
import time

import numpy as np

from specref.arrays import Floats, Ints
from specref.contracts.errors import BrokenContractError
from specref.contracts.sampling import Sampler
from specref.statistics.campaign.bets import log_mean

ROUNDS, CALLS, ROWS, GROUP = 4, 128, 128, 8
SECONDS = 20.0
# Half of rho / (1 - rho^2), for features whose correlation is rho.
WEIGHTS = np.array([-0.2, 0.05, 0.2, 1.0, 4.0])


def dependence(sampler: Sampler, size: int, rng: np.random.Generator, threshold: float) -> float:
    """The log-evidence that the rows of a call, or consecutive calls, depend on each other.

    An e-process: if they do not, it ever reaches log(1 / alpha) with probability at most alpha.
    Calls are drawn in rounds, up to 512 of them, for as long as there is any evidence and it is
    below the threshold; at most for 20 s, and not after the contract is broken.
    """
    won, found, until = np.zeros(3 * len(WEIGHTS)), 0.0, time.perf_counter() + SECONDS
    for _ in range(ROUNDS):
        try:
            sums = _calls(sampler, size, rng, until)
        except BrokenContractError:
            break
        whole = sums[:, 0] + sums[:, 1]
        parts = (sums[:, 0], sums[:, 1]), (sums[:, 2], sums[:, 3]), (whole[:-1:2], whole[1::2])
        won += np.concatenate([wealth(x, y) for x, y in parts])
        found = log_mean(won)
        if not 0 < found < threshold or time.perf_counter() > until:
            break
    return found


def _calls(sampler: Sampler, size: int, rng: np.random.Generator, until: float) -> Floats:
    """Sums over the even, odd, first and last rows of each call; (calls, 4, features)."""
    rows = np.arange(ROWS)
    halves = np.array([rows % 2 == 0, rows % 2 == 1, rows < ROWS // 2, rows >= ROWS // 2])
    sums: list[Floats] = []
    while len(sums) < CALLS and not (sums and time.perf_counter() > until):
        _, blocks, _ = sampler(ROWS, rng)
        sums.append(halves[:, : len(blocks)] @ features(blocks, size))
    return np.array(sums)


def features(blocks: Ints, size: int) -> Floats:
    """The length, first token and last token of each block, one-hot encoded."""
    rows, counts = np.arange(len(blocks)), (blocks >= 0).sum(axis=1)
    lengths = np.eye(blocks.shape[1])[counts - 1]
    return np.hstack([lengths, np.eye(size)[blocks[:, 0]], np.eye(size)[blocks[rows, counts - 1]]])


def wealth(x: Floats, y: Floats) -> Floats:
    """The log-wealth of each weight over all complete groups of calls."""
    groups = len(x) // GROUP
    shape = (groups, GROUP, x.shape[-1])
    x, y = (part[: groups * GROUP].reshape(shape) for part in (x, y))
    x, y = (part - part.mean(axis=1, keepdims=True) for part in (x, y))
    # The scale of both parts together, so that no order of the second is preferred.
    scale = np.sqrt(((x**2).mean(axis=1, keepdims=True) + (y**2).mean(axis=1, keepdims=True)) / 2)
    x, y = (np.divide(p, scale, out=np.zeros_like(p), where=scale > 0) for p in (x, y))
    distance = ((x[:, :, None] - y[:, None]) ** 2).sum(axis=-1)
    scores = -WEIGHTS[:, None, None, None] * distance
    seen = np.trace(scores, axis1=-2, axis2=-1)
    return np.asarray((seen - log_mean_of_orders(scores)).sum(axis=1))


def log_mean_of_orders(scores: Floats) -> Floats:
    """log of the mean over all orders of exp(sum of scores[i, order[i]]).

    Examples
    --------
    >>> round(float(np.exp(log_mean_of_orders(np.log([[1.0, 2.0], [3.0, 4.0]])))), 9)
    5.0
    """
    n = scores.shape[-1]
    # For each set of columns: the sum over all assignments of them to the first rows.
    totals = [np.zeros(scores.shape[:-2])]
    for columns in range(1, 1 << n):
        row = columns.bit_count() - 1
        ways = [
            totals[columns ^ (1 << j)] + scores[..., row, j] for j in range(n) if columns >> j & 1
        ]
        totals.append(np.logaddexp.reduce(ways))
    return np.asarray(totals[-1] - math.lgamma(n + 1))
