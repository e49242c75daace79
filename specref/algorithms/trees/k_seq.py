"""How much k-SEQ accepts of each token, and the least rho for which it has a residual.

SpecTr: Sun et al. 2023, arXiv:2310.15141. With beta = sum m, m = min(q, p / rho), one of k drafts
is accepted with probability 1 - (1 - beta)^k, and a token y of them with m(y) G, where
G = 1 + (1 - beta) + … + (1 - beta)^(k-1). There is a residual iff m G <= p.
"""

from fractions import Fraction
from functools import lru_cache
from numbers import Rational

import numpy as np

from specref.distributions import (
    FLOAT_TOLERANCE,
    ExactNumber,
    Probabilities,
    Probability,
    is_exact,
)
from specref.validation import check_count, check_pair

GRID = 64


def k_seq_law(
    p: Probabilities, q: Probabilities, drafts: int, rho: Probability
) -> tuple[Probabilities, Probabilities]:
    """What k-SEQ accepts of each token: from one sibling, m, and in all, m G.

    Raises
    ------
    ValueError
        `rho` is not admissible.

    Examples
    --------
    >>> from specref.distributions import as_distribution
    >>> p, q = as_distribution(["1/2", "1/3", "1/6"]), as_distribution(["1/6", "1/3", "1/2"])
    >>> k_seq_law(p, q, 2, 1)
    Traceback (most recent call last):
    ValueError: rho = 1: token 1 would be accepted with probability 4/9, and p[1] = 1/3
    """
    check_count(drafts)
    check_pair(p, q)
    if not rho > 0:
        raise ValueError(f"rho = {rho}: expected a number > 0")
    if is_exact(p) and not isinstance(rho, Rational | ExactNumber):
        raise TypeError(f"rho = {rho}: expected an exact number, as p has")
    kept, accepted, _ = _k_seq(p, q, drafts, rho)
    exceeding = accepted > p + _tolerance(p)
    if exceeding.any():
        token = int(np.argmax(exceeding))
        raise ValueError(
            f"rho = {rho}: token {token} would be accepted with probability {accepted[token]}, "
            f"and p[{token}] = {p[token]}"
        )
    return kept, accepted


def smallest_rho(p: Probabilities, q: Probabilities, drafts: int, *, grid: int = GRID) -> Fraction:
    """The least multiple of 1 / `grid`, from 1 to k, for which k-SEQ has G <= rho; by bisection.

    Examples
    --------
    >>> from specref.distributions import as_distribution
    >>> p, q = as_distribution(["1/2", "1/3", "1/6"]), as_distribution(["1/6", "1/3", "1/2"])
    >>> smallest_rho(p, q, 2)
    Fraction(3, 2)
    """
    check_count(drafts)
    check_pair(p, q)
    check_count(grid, "grid")
    # What stands for all its values is looked up nowhere by its value.
    least = _least.__wrapped__ if isinstance(p[0], ExactNumber) else _least
    return least(tuple(p.tolist()), tuple(q.tolist()), drafts, grid)


@lru_cache(maxsize=1024)
def _least(
    p_row: tuple[Probability, ...], q_row: tuple[Probability, ...], drafts: int, grid: int
) -> Fraction:
    p, q = np.array(p_row), np.array(q_row)
    least, most = grid, drafts * grid
    while least < most:
        middle = (least + most) // 2
        rho = Fraction(middle, grid)
        if _k_seq(p, q, drafts, rho)[2] <= rho + _tolerance(p):
            most = middle
        else:
            least = middle + 1
    return Fraction(least, grid)


def _tolerance(p: Probabilities) -> float:
    """By how much rounding may exceed a bound, as in `is_one`; 0 for exact numbers."""
    return 0 if is_exact(p) else FLOAT_TOLERANCE


def _k_seq(
    p: Probabilities, q: Probabilities, drafts: int, rho: Probability
) -> tuple[Probabilities, Probabilities, Probability]:
    """In this order: m, m G, and G, the expected number of siblings tried if all are refused."""
    kept = np.minimum(q, p / (rho if is_exact(p) else float(rho)))
    tries: Probability = sum((1 - kept.sum()) ** j for j in range(drafts))
    return kept, kept * tries, tries
