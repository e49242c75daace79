"""The same with one mistake: a rejected draft is replaced by a draw from p, not the residual."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def verify(
    target_probs: Floats,
    draft_probs: Floats,
    draft_tokens: Ints,
    *,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]:
    """Accept with probability min(1, p / q), then draw from p in any case (lossy).

    Examples
    --------
    >>> p = np.array([[[0.5, 0.5], [0.0, 1.0]]])
    >>> verify(p, p[:, :1], np.array([[0]]), rng=np.random.default_rng(1))
    (array([[0, 1]]), array([2]))
    """
    batch, lookahead = draft_tokens.shape
    rows, column = np.arange(batch), np.arange(lookahead)
    p_drafted = target_probs[rows[:, None], column, draft_tokens]
    q_drafted = draft_probs[rows[:, None], column, draft_tokens]
    accepted = rng.random(draft_tokens.shape) * q_drafted < p_drafted
    kept = np.logical_and.accumulate(accepted & (draft_tokens >= 0), axis=1).sum(axis=1)
    ends = target_probs[rows, kept].cumsum(axis=1)
    tokens = np.full((batch, lookahead + 1), -1)
    tokens[:, :lookahead] = np.where(column < kept[:, None], draft_tokens, -1)
    tokens[rows, kept] = (ends <= rng.random((batch, 1)) * ends[:, -1:]).sum(axis=1)
    return tokens, kept + 1
