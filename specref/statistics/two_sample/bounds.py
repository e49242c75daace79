"""Bounds on the total variation of two unknown laws, from n texts of each.

None needs to know which texts are possible, or how many. All rest on independent texts: n of
one law, and n of the other.

The last part is a test of pairs at a fixed number of pairs, nearly as powerful as chi-square, for
any alpha.

Pair i is a text x of one sampler and a text y of the other, for one prompt. A feature vector f
counts what is in a text. If both samplers have one distribution then, given which two texts a pair
has, x and y are as likely as y and x: so d_i = f(x_i) - f(y_i) is e_i |d_i| with fair and
independent signs e_i, whatever the distributions are and however prompts differ. With S the sum of
all d_i, A the sum of d_i d_i', and weights W = 1 / diag(A), the statistic is T = S' W S, a sum of
squared z-scores. For any t >= 0

    E exp(t T) = E_g E_e prod exp(sqrt(2 t) e_i g' W^(1/2) d_i)      with g standard normal
               = E_g prod cosh(sqrt(2 t) g' W^(1/2) d_i)
              <= E_g exp(t g' M g) = det(1 - 2 t M)^(-1/2)           with M = W^(1/2) A W^(1/2)

because cosh(a) <= exp(a^2 / 2). Markov's inequality then bounds the probability of so large a T by
the minimum over t of exp(-t T) det(1 - 2 t M)^(-1/2). No approximation is made, so the bound holds
at alpha = 1e-9, too, for cells with few counts, and for cells that overlap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specref.arrays import Floats, Ints
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
    that tells them apart best, of mean the true distance. `counts` has a row for each side.
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
    lower bound. `trials` are those behind `found`, `look` is the next one.
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


CLOSE = 1e-9
"""The relative width to which an interval is halved; any t in it gives a bound."""


def spectrum(second: Floats) -> Floats:
    """The eigenvalues of M, from A; features that no pair tells apart are left out."""
    used = np.flatnonzero(np.diag(second) > 0)
    scale = 1 / np.sqrt(np.diag(second)[used])
    values = np.linalg.eigvalsh(second[np.ix_(used, used)] * np.outer(scale, scale))
    return np.asarray(values[values > 0])


def statistic(sums: Floats, variances: Floats) -> float:
    """T, the sum of squared z-scores S / sqrt(diag(A))."""
    used = variances > 0
    return float((sums[used] ** 2 / variances[used]).sum())


def log_tail(value: float, eigenvalues: Floats) -> float:
    """The logarithm of a bound on the probability that T is at least `value`.

    Or a sum of such statistics of independent groups, with the eigenvalues of all together.

    One feature, eight deviations off: the normal tail on both sides is 10^-14.9.

    >>> round(log_tail(64.0, np.ones(1)) / math.log(10), 1)
    -12.8

    Fifty of them: chi-square has 10^-8.8 there.

    >>> round(log_tail(132.0, np.ones(49)) / math.log(10), 1)
    -7.5
    """
    if value <= eigenvalues.sum():
        return 0.0
    low, high = 0.0, 1 / (2 * float(eigenvalues.max()))
    low, _ = _halved(
        low, high, lambda t: float((eigenvalues / (1 - 2 * t * eigenvalues)).sum()) >= value
    )
    return float(-low * value - np.log1p(-2 * low * eigenvalues).sum() / 2)


def least_value(alpha: float, eigenvalues: Floats) -> float:
    """The least T that is significant: its `log_tail` is log(alpha)."""
    low = high = float(eigenvalues.sum())
    while log_tail(high, eigenvalues) > math.log(alpha):
        high = 2 * high + 1
    return _halved(low, high, lambda x: log_tail(x, eigenvalues) <= math.log(alpha))[1]


def detectable_square(alpha: float, eigenvalues: Floats, deviations: float = 3.1) -> float:
    """About how large S' W S has to be in truth to be found with probability 0.999.

    T has about the mean sum(eigenvalues) + x and the variance 2 sum(eigenvalues^2) + 4 x l for a
    difference of square x, l being the largest eigenvalue at most; by the normal approximation.
    """
    needed, mean = least_value(alpha, eigenvalues), float(eigenvalues.sum())
    spread, largest = float((eigenvalues**2).sum()), float(eigenvalues.max())

    def found(x: float) -> bool:
        return bool(mean + x - deviations * math.sqrt(2 * spread + 4 * x * largest) >= needed)

    low, high = 0.0, needed + 1
    while not found(high):
        high *= 2
    return _halved(low, high, found)[1]


def _halved(low: float, high: float, reached: Callable[[float], bool]) -> tuple[float, float]:
    """The interval, made small, so that its upper end has reached something and its lower not."""
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return low, high
