"""What the coins of one row decide: how many drafts are kept, and the law of the last token."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from specref.arrays import Floats, Ints
from specref.rules import CoinOrder

Decide: TypeAlias = Callable[[Floats, Floats, Ints, Floats], tuple[int, Floats]]


def token_by_token(p: Floats, q: Floats, drafts: Ints, coins: Floats) -> tuple[int, Floats]:
    """Standard: draft i is kept iff coins[i] < p / q, up to the first that is not.

    The last token is from the residual, or from p if all are kept or rounding alone rejects.

    Parameters
    ----------
    p : ndarray, shape (drafts + 1, V)
    q : ndarray, shape (drafts, V)
    drafts : ndarray of int
    coins : ndarray, shape (drafts,)

    Returns
    -------
    int
        How many drafts are kept.
    ndarray, shape (V,)
        Weights of the last token.
    """
    for i, x in enumerate(drafts.tolist()):
        if not coins[i] * q[i, x] < p[i, x]:
            return i, np.maximum(p[i] - q[i], 0) if (p[i] > q[i]).any() else p[i]
    return len(drafts), p[len(drafts)]


def jointly(p: Floats, q: Floats, drafts: Ints, coins: Floats) -> tuple[int, Floats]:
    """Block: the longest prefix of i drafts with coins[i - 1] < h_i, or none.

    Sun et al. 2024, Algorithm 2; every prefix has a coin of its own, and failures before the
    last success do not matter.

    Parameters and result as `token_by_token`.

    Examples
    --------
    The first draft has p / q = 1/2, the second 2: together they are certain.

    >>> p, q = np.array([[1, 2]] * 3) / 3, np.array([[2, 1]] * 2) / 3
    >>> coins = np.array([0.9, 0.9])
    >>> jointly(p, q, np.array([0, 1]), coins)[0], token_by_token(p, q, np.array([0, 1]), coins)[0]
    (2, 0)
    """
    survival, found = 1.0, (0, p[0])
    for i in range(len(drafts) + 1):
        excess = np.maximum(survival * p[i] - (q[i] if i < len(drafts) else 0), 0)
        total = float(excess.sum())
        chance = total and (total / (total + 1 - survival) if i < len(drafts) else survival)
        if i == 0 or coins[i - 1] < chance:
            found = i, excess if total and i < len(drafts) else p[i]
        if i < len(drafts):
            survival = min(1.0, float(survival * p[i, drafts[i]] / q[i, drafts[i]]))
    return found


DECIDED: Mapping[CoinOrder, Decide] = MappingProxyType(
    {"token by token": token_by_token, "jointly": jointly}
)
