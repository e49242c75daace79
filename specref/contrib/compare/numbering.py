"""Numbers from 0 for codes: of prefixes, prompts and tokens, millions at a time."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specref.arrays import Ints

SPARSE = 8
"""Times the number of codes: up to so large ones are counted, which is faster than sorting."""


class Numbered(NamedTuple):
    """The different codes in ascending order, which of them each code is, and their counts."""

    kinds: Ints
    which: Ints
    counts: Ints


def numbered(codes: NDArray[np.integer[Any]]) -> Numbered:
    """As ``np.unique``, of integers from 0.

    >>> numbered(np.array([5, 3, 5]))
    Numbered(kinds=array([3, 5]), which=array([1, 0, 1]), counts=array([1, 2]))
    >>> numbered(np.array([50, 30, 50]))
    Numbered(kinds=array([30, 50]), which=array([1, 0, 1]), counts=array([1, 2]))
    """
    if codes.max(initial=0) >= SPARSE * len(codes):
        kinds, which, counts = np.unique(codes, return_inverse=True, return_counts=True)
        return Numbered(kinds.astype(np.int64), which, counts)
    counts = np.bincount(codes)
    seen = counts > 0
    return Numbered(np.flatnonzero(seen), (np.cumsum(seen) - 1)[codes], counts[seen])
