"""Pairs of laws as at the end of a text: an id that ends it has most of the mass."""

import numpy as np

from specref.conformance.strata.end_ids import end_ids
from specref.conformance.strata.laws import TARGETS, Pool

MASS = 0.9


def ending_pool(rng: np.random.Generator, size: int, pairs: int) -> Pool:
    """Targets that give `MASS` to one of `end_ids`, in turn; drafters give half of the others.

    So it comes in place of a draft, where others may come too, or after the last.

    Examples
    --------
    >>> pool = ending_pool(np.random.default_rng(1), 50_257, 2)
    >>> float(pool.p[0, 50_256]), float(pool.p[1, 32_007]), float(pool.q[0, 50_256])
    (0.9, 0.9, 0.0)
    """
    p = np.stack([rng.permutation(TARGETS["zipf"](size)) for _ in range(pairs)])
    rows, known = np.arange(pairs), end_ids(size)[::-1]
    ends = np.array(known)[rows % len(known)]
    p[rows, ends] = 0
    p *= (1 - MASS) / p.sum(axis=1, keepdims=True)
    q = np.where(rng.random(p.shape) < 0.5, p, 0)
    p[rows, ends] = MASS
    return Pool(p, q / q.sum(axis=1, keepdims=True))
