"""Bounds on the total variation of two unknown laws, from n texts of each.

None needs to know which texts are possible, or how many. All rest on independent texts: n of
one law, and n of the other.
"""

import math
from dataclasses import dataclass

import numpy as np

from specref.arrays import Ints
from specref.statistics.campaign.levels import ALPHA, BETA, log_choose
from specref.statistics.campaign.planning import smallest

MIXING = 100.0
LOOKS = math.pi**2 / 6
PARTS = 6


@dataclass(frozen=True)
class Distance:
    """The distance between two samples, and the distances that are significant and detectable.

    * `estimate`: Their total variation.
    * `noise`: Its mean over all deals of the same texts to the two sides.
    * `threshold`: Two samples of one law are further apart with probability at most alpha.
    * `detectable`: If the laws are this far apart, the estimate exceeds the threshold with
      probability 0.999; 1 or more if no laws are.
    """

    estimate: float
    noise: float
    threshold: float
    detectable: float


def measure(counts: Ints, alpha: float, look: int = 1) -> Distance:
    """Compare two samples at the `look`-th look; `alpha` holds for all looks together.

    If the laws are one then, given which texts there are, every deal of them to the two sides
    is equally likely. If they are not, the estimate is at least the difference of the event
    that tells them apart best, of mean the true distance.

    * `counts` (ndarray of int, shape (2, different texts)): How often each text was seen; both
      rows have the same sum.
    * `look`: Counted from 1.
    """
    trials = int(counts[0].sum())
    if not trials:
        return Distance(0.0, 1.0, 1.0, 1.0)
    estimate = float(np.abs(counts[0] - counts[1]).sum() / (2 * trials))
    noise = relabelled_mean(counts.sum(axis=0), trials)
    threshold = noise + relabelled_deviation(trials, alpha / LOOKS / look**2)
    return Distance(estimate, noise, threshold, threshold + shortfall(trials))


def width(trials: int, alpha: float) -> float:
    """A bound on the error of a mean of differences, valid at *every* number of trials.

    One trial is [X in A] - [Y in A] for independent X and Y: sub-Gaussian with variance 1/2,
    whatever the event A, which may depend on earlier trials. With v = n/2, the normal mixture
    of exp(l S - l^2 v / 2) is a supermartingale, so by Ville's inequality |S| ever exceeds
    sqrt((v + r) (2 ln(1/alpha) + ln((v + r)/r))) with probability at most alpha (Robbins 1970;
    arXiv:1810.08240). Here r = 100.

    It serves twice. The total variation is P(A) - Q(A) for some event A, whose difference in
    the samples is at most their distance, the estimate; so it is at most estimate + width. And
    for events learned from earlier trials the mean of P(A) - Q(A) is at most the total
    variation, which is at least the observed mean - width.
    """
    if not trials:
        return 1.0
    v = trials / 2 + MIXING
    return math.sqrt(v * (2 * math.log(1 / alpha) + math.log(v / MIXING))) / trials


def least_trials(eps: float, alpha: float) -> int:
    """Texts on each side below which the upper bound cannot be `eps`, whatever is seen."""
    return smallest(lambda trials: width(trials, alpha) <= eps)


def relabelled_mean(pooled: Ints, trials: int) -> float:
    """The mean distance after dealing the pooled texts out anew, n to each side.

    How many of a text's c copies come to one side is hypergeometric, and E|2H - c| =
    2k (n - c + k) P(H = k) / n with k = floor(c/2) + 1.
    """
    copies, times = np.unique(pooled, return_counts=True)
    k = copies // 2 + 1
    ways = log_choose(copies, k) + log_choose(2 * trials - copies, trials - k)
    chance = np.exp(ways - log_choose(2 * trials, np.array(trials)))
    spread = 2 * k * (trials - copies + k) * chance / trials
    return float(spread @ times / (2 * trials))


def relabelled_deviation(trials: int, alpha: float) -> float:
    """The excess of a random deal over the mean deal, exceeded with chance `alpha` at most.

    Deal one text after the other to the first side: the i-th moves the expected distance by
    at most 2/n times n / (2n - i), the chance that the text it might have been is dealt to
    the other side. The squares sum to at most 4n / ((n - 1/2)(2n - 1/2)) =: c, and by
    McDiarmid's inequality an excess of t has probability at most exp(-2 t^2 / c).
    """
    squares = 4 * trials / ((trials - 0.5) * (2 * trials - 0.5))
    return math.sqrt(math.log(1 / alpha) * squares / 2)


def shortfall(trials: int, beta: float = BETA) -> float:
    """The gap by which an estimate is below the true distance with chance `beta` at most."""
    return math.sqrt(math.log(1 / beta) / trials)


def trials_to_find(tv: float, trials: int, found: Distance, alpha: float, look: int) -> int:
    """Texts on each side from which a total variation of `tv` would be found at the next look.

    Roughly: as if noise fell with the square root of their number. It does once texts repeat,
    and falls more slowly before. Without any texts there is no noise to go by, and this is a
    lower bound.

    * `trials`: Texts on each side behind `found`.
    * `alpha`: Of all looks together.
    * `look`: The next one.
    """

    def detectable(n: int) -> float:
        noise = found.noise * math.sqrt(trials / n)
        return noise + relabelled_deviation(n, alpha / LOOKS / look**2) + shortfall(n)

    return smallest(lambda n: detectable(n) <= tv)


def detectable_distance(
    trials: int, texts: int, alpha: float = ALPHA, beta: float = BETA
) -> float:
    """For planning: from which total variation on *any* two distributions are distinguished.

    The probability is 1 - beta, proved, for a test with one report after `trials` texts on
    each side. The mean deal is at most sqrt((k - 1) / (2n - 1)) for k different texts.

    Parameters
    ----------
    trials : int
        Texts on each side.
    texts : int
        How many texts are possible, for instance V**N for N tokens without EOS.

    Raises
    ------
    ValueError
        A parameter is out of range.

    Examples
    --------
    >>> round(detectable_distance(100_000, texts=5**3), 4)
    0.0484
    """
    for name, count in (("trials", trials), ("texts", texts)):
        if count < 1:
            raise ValueError(f"{name} = {count}: expected at least 1")
    for name, rate in (("alpha", alpha), ("beta", beta)):
        if not 0 < rate < 1:
            raise ValueError(f"{name} = {rate}: expected a number in (0, 1)")
    mean = math.sqrt((texts - 1) / (2 * trials - 1))
    deviation = relabelled_deviation(trials, alpha / PARTS / LOOKS)
    return min(1.0, mean + deviation + shortfall(trials, beta))
