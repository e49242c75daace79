"""A test of pairs at a fixed number of pairs, nearly as powerful as chi-square, for any alpha.

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

import numpy as np

from specref.arrays import Floats

CLOSE = 1e-9
"""The relative width to which an interval is halved; any t in it gives a bound."""


def spectrum(second: Floats) -> Floats:
    """The eigenvalues of M, largest last; features that no pair tells apart are left out.

    * `second` (ndarray, shape (features, features)): A, the sum of d d' over pairs.
    """
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

    * `value`: T, or a sum of such statistics of independent groups of pairs.
    * `eigenvalues`: Those of M, or of all groups together.

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
