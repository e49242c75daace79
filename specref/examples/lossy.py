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
    tokens = np.full(np.add(draft_tokens.shape, (0, 1)), -1)
    for row, drafts in enumerate(draft_tokens):
        kept = 0
        for p, q, x in zip(target_probs[row], draft_probs[row], drafts, strict=False):
            if x < 0 or rng.random() * q[x] >= p[x]:
                break
            tokens[row, kept], kept = x, kept + 1
        ends = target_probs[row, kept].cumsum()
        tokens[row, kept] = (ends <= rng.random() * ends[-1]).sum()
    return tokens, (tokens >= 0).sum(axis=1)
