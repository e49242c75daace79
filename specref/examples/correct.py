"""Standard speculative decoding as an engine would write it: a batch, in plain NumPy."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def verify(
    target_probs: Floats,
    draft_probs: Floats | None,
    draft_tokens: Ints,
    *,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]:
    """Accept a draft with probability min(1, p / q); replace the first that is rejected.

    Leviathan et al. 2023, Algorithm 1.

    Parameters
    ----------
    target_probs : ndarray, shape (B, K + 1, V)
    draft_probs : ndarray, shape (B, K, V), or None
        None: every draft is taken as certain.
    draft_tokens : ndarray of int, shape (B, K)
        -1 where there is no draft.
    rng : numpy.random.Generator

    Returns
    -------
    tokens : ndarray of int, shape (B, K + 1)
        Padded with -1.
    counts : ndarray of int, shape (B,)

    Examples
    --------
    >>> p = np.array([[[0.5, 0.5], [0.0, 1.0]]])
    >>> verify(p, p[:, :1], np.array([[0]]), rng=np.random.default_rng(1))
    (array([[0, 1]]), array([2]))
    """
    batch, lookahead = draft_tokens.shape
    if draft_probs is None:
        draft_probs = np.arange(target_probs.shape[2]) == draft_tokens[..., None]
    rows, column = np.arange(batch), np.arange(lookahead)
    p_drafted = target_probs[rows[:, None], column, draft_tokens]
    q_drafted = draft_probs[rows[:, None], column, draft_tokens]
    accepted = rng.random(draft_tokens.shape) * q_drafted < p_drafted
    drafted = draft_tokens >= 0
    kept = np.logical_and.accumulate(accepted & drafted, axis=1).sum(axis=1)
    last = target_probs[rows, kept]
    (rejected,) = (kept < drafted.sum(axis=1)).nonzero()
    if rejected.size:
        residual = np.maximum(last[rejected] - draft_probs[rejected, kept[rejected]], 0)
        left = residual.any(axis=1)  # nothing is, after a rejection by rounding alone
        last[rejected[left]] = residual[left]
    tokens = np.full((batch, lookahead + 1), -1)
    tokens[:, :lookahead] = np.where(column < kept[:, None], draft_tokens, -1)
    tokens[rows, kept] = _drawn(last, rng)
    return tokens, kept + 1


def _drawn(weights: Floats, rng: np.random.Generator) -> Ints:
    ends = weights.cumsum(axis=1)
    u = rng.random((len(weights), 1)) * ends[:, -1:]
    return np.asarray((ends > u).argmax(axis=1))
