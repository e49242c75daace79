"""Tests of tokens that should be independent draws from one law: at every distance, and together.

The tokens of identical rows, in the order in which they were asked for. Rows that share random
numbers are alike at some distance; rows whose numbers were spread evenly over a batch hit a set of
tokens too regularly, call by call.
"""

import math

import numpy as np
import scipy

from specref.arrays import Floats, Ints
from specref.statistics.campaign.bets import log_mean
from specref.statistics.campaign.levels import BETA

TEMPERS = np.array([0.02, 0.2, 0.7, 1.5, 4.0, 20.0, 200.0])


def resemblance(tokens: Ints, size: int) -> Floats:
    """For each distance, over how many pairs more tokens agree than independent ones would.

    The sum over the pairs at a distance of size 1{x = y} - 1, which has mean 0 if the law is
    uniform on `size` tokens and the tokens are independent.
    """
    n = len(tokens)
    agreeing = sum(_pairs(tokens == one) for one in range(size))
    return np.asarray(size * agreeing - (n - np.arange(1, n // 2 + 1)))


def _pairs(there: np.ndarray) -> Floats:
    """The number of pairs at distance 1, 2, … up to half the length that are both there."""
    n = len(there)
    spectrum = np.fft.rfft(there, 2 * n)
    return np.asarray(np.rint(np.fft.irfft(spectrum * spectrum.conj(), 2 * n)[1 : n // 2 + 1]))


def least_resemblance(n: int, size: int, alpha: float) -> Floats:
    """What independent tokens of a uniform law exceed at any distance with probability alpha.

    By Bernstein's inequality for each distance: given one token of a pair, the term of the other
    has variance size - 1, and is at most that. Both signs, and all distances, share alpha.
    """
    pairs = n - np.arange(1, n // 2 + 1)
    level = math.log(2 * len(pairs) / alpha)
    return np.asarray(np.sqrt(2 * pairs * (size - 1) * level) + (size - 1) * level / 3)


def alike_at(tokens: Ints, size: int, alpha: float) -> tuple[int, float] | None:
    """The distance at which tokens are alike, or unlike, beyond doubt: of several, the shortest.

    What a wrong law makes of all distances alike does not count.

    With the resemblance of its pairs, on average: 0 if independent, size - 1 if always equal. Of
    independent draws from the uniform law it is None but for a chance of `alpha`.
    """
    n = len(tokens)
    pairs = n - np.arange(1, n // 2 + 1)
    found, bound = resemblance(tokens, size), least_resemblance(n, size, alpha)
    # Tokens of a wrong law agree too often at every distance.
    usual = size * ((np.bincount(tokens, minlength=size) / n) ** 2).sum() - 1
    beyond = (np.abs(found) > bound) & (np.abs(found - usual * pairs) > bound)
    mean = np.where(beyond, found / pairs, 0.0)
    # Where numbers come round, tokens are somewhat alike at other distances, too.
    at = int((np.abs(mean) >= np.abs(mean).max() / 2).argmax())
    return (at + 1, float(mean[at])) if mean[at] else None


def detectable_share(n: int, size: int, alpha: float, distance: int, beta: float = BETA) -> float:
    """The share of pairs at a distance that have to be equal to be found.

    With probability 1 - beta, if the tokens of the other pairs are independent: their sum is
    bounded as in `least_resemblance`.
    """
    pairs, miss = n - distance, math.log(1 / beta)
    bound = least_resemblance(n, size, alpha)[distance - 1]
    noise = math.sqrt(2 * pairs * (size - 1) * miss) + (size - 1) * miss / 3
    return float((bound + noise) / ((size - 1) * pairs))


def association(left: Ints, right: Ints, sizes: tuple[int, int]) -> float:
    """The log-evidence that paired values depend on each other, whatever the laws of both are.

    What a uniform mixture of all joint laws gives the pairs, over the most that two laws give them
    which are independent: an e-value, since the true laws give no more than that.
    """
    counts = np.bincount(left * sizes[1] + right, minlength=math.prod(sizes)).reshape(sizes)
    joint = scipy.special.gammaln(counts + 1).sum()
    joint += scipy.special.gammaln(counts.size) - scipy.special.gammaln(counts.size + len(left))
    apart = 0.0
    for margin in (counts.sum(axis=0), counts.sum(axis=1)):
        seen = margin[margin > 0]
        apart += float((seen * np.log(seen / len(left))).sum())
    return float(joint) - apart


def evenness(hits: Ints, rows: int, chance: float) -> tuple[float, bool]:
    """The log-evidence that the hits of calls are too even, or too uneven; and which.

    Of each call, with independent rows, hits are binomial. The bets are on powers of that law: an
    e-value. What is won at the observed frequency, too, is not won by a wrong law alone; the
    smaller of both counts. `chance` is the probability of the tokens that are hits.
    """
    evidence, even = evenness_at(hits, rows, chance)
    observed = float(hits.mean()) / rows
    other = evenness_at(hits, rows, observed)[0] if 0 < observed < 1 else 0.0
    return min(evidence, other), even


def evenness_at(hits: Ints, rows: int, chance: float) -> tuple[float, bool]:
    """What `evenness` has against this probability, whatever was observed."""
    k = np.arange(rows + 1)
    ways = (
        scipy.special.gammaln(rows + 1)
        - scipy.special.gammaln(k + 1)
        - scipy.special.gammaln(rows - k + 1)
    )
    law = ways + k * math.log(chance) + (rows - k) * math.log1p(-chance)
    powers = TEMPERS[:, None] * law
    bets = powers - scipy.special.logsumexp(powers, axis=1, keepdims=True) - law
    won = bets[:, hits].sum(axis=1)
    return log_mean(won), bool(TEMPERS[int(won.argmax())] > 1)
