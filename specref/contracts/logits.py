"""Logits instead of probabilities, for implementations that take the softmax themselves."""

import numpy as np

from specref.arrays import Floats

SHIFTS = {"target_probs": (2.0, -1.5, 0.5), "draft_probs": (-1.0, 1.0, 3.0)}


def as_logits(name: str, laws: Floats, scale: float = 1.0) -> Floats:
    """The logarithms of laws, -inf for 0, plus a number for each position.

    The number repeats every three positions, and is never the same for target and draft: code
    that takes the exponential of a logit for a probability, without normalising, is wrong.

    Parameters
    ----------
    name : {"target_probs", "draft_probs"}
    laws : ndarray, shape (B, positions, V)
    scale : float
        Factor on the numbers that are added.

    Examples
    --------
    >>> halves = np.array([[[0.5, 0.5, 0.0]]])
    >>> as_logits("target_probs", halves).round(3).tolist()
    [[[1.307, 1.307, -inf]]]
    >>> as_logits("draft_probs", halves).round(3).tolist()
    [[[-1.693, -1.693, -inf]]]
    """
    shift = scale * np.resize(SHIFTS[name], laws.shape[1])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(laws) + shift[:, None])
