"""Types of arrays, the number that pads arrays of token ids, and one-hot rows."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[np.intp]
Bools: TypeAlias = NDArray[np.bool_]
NO_TOKEN = -1


def one_hot_rows(tokens: Ints, size: int) -> Floats:
    """Laws with all mass on one token, in memory of their own size alone.

    Examples
    --------
    >>> one_hot_rows(np.array([2, 0]), 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    rows = np.zeros((*tokens.shape, size))
    np.put_along_axis(rows, tokens[..., None], 1.0, axis=-1)
    return rows
