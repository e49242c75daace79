"""A float64 reference that takes its coins, and how far rounding moves a draw.

Standard speculative decoding of a batch, by an exponential race.
"""

from collections.abc import Callable

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.batched import Batch, leading, verifier
from specref.coins import Coins, race_winner


def race_mismatch(p: Floats, w: Floats) -> float:
    """P(argmin E / p differs from argmin E / w), E exponential noise: at most 2 TV / (1 + TV).

    Both choose x iff E_y >= E_x m_y for all y, with m_y = max(p_y / p_x, w_y / w_x): the
    chance is 1 / sum m, at least min(p_x, w_x) / sum max(p, w). Tokens may come in any order.
    """
    ratio = np.divide(w, p, out=np.full_like(p, np.inf), where=p > 0)
    order = np.argsort(ratio)
    p, w = p[order] / p.sum(), w[order] / w.sum()
    below, above = np.cumsum(p) - p, np.cumsum(w[::-1])[::-1]
    x = (p > 0) & (w > 0)
    return 1 - float((1 / (below[x] / p[x] + above[x] / w[x])).sum())


def inverse_cdf_mismatch(p: Floats, w: Floats) -> float:
    """P(the inverse CDFs of p and w differ at one uniform): a shift lasts for all later tokens."""
    ends = [np.cumsum(law / law.sum()) for law in (p, w)]
    starts = [np.concatenate([[0.0], end[:-1]]) for end in ends]
    return 1 - float(np.maximum(np.minimum(*ends) - np.maximum(*starts), 0).sum())


def verify_float64(p: Floats, q: Floats, drafts: Ints, coins: Coins) -> Ints:
    """Standard speculative decoding of a batch in float64: the reference.

    Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2. Where p = q a draft is
    never rejected, since its uniform is below 1 = p / q. Where rounding alone rejects a draft
    and no token has p > q (a chance of the order of 1e-16), the last token is drawn from p.

    * `p` (ndarray, shape (trials or 1, lookahead + 1, V))
    * `q` (ndarray, shape (trials or 1, lookahead, V))
    * `drafts` (ndarray of int, shape (trials, lookahead)): Drawn from q; -1 after the last draft
      of a shorter row.
    * returns: ndarray of int, shape (trials, lookahead + 1): Blocks padded with -1.
    * raises `ValueError`: Shapes do not fit, a draft is impossible under q, or it follows a -1.

    >>> p, q = np.array([[[0.5, 0.5], [0.0, 1.0]]]), np.array([[[0.8, 0.2]]])
    >>> coins = Coins(np.array([[0.6], [0.7]]), np.ones((2, 2)))
    >>> verify_float64(p, q, np.array([[0], [0]]), coins)
    array([[ 0,  1],
           [ 1, -1]])
    """
    _check_shapes(p, q, drafts, coins)
    _check_drafts(q, drafts)
    return verify_rounded(lambda values: values, p, q, drafts, coins)


def verify_rounded(
    rounded: Callable[[Floats], Floats], p: Floats, q: Floats, drafts: Ints, coins: Coins
) -> Ints:
    """The same verification with p, q and every result of arithmetic passed through `rounded`."""
    p, q = (np.broadcast_to(rows, (len(drafts), *rows.shape[1:])) for rows in (p, q))

    def accepted(batch: Batch) -> Ints:
        """Drafts before the first refusal; 0 / 0 refuses."""
        of_p, of_q = (rounded(batch.drafted(rows)) for rows in (batch.p, batch.q))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = rounded(of_p / of_q)
        return leading((batch.drafts != NO_TOKEN) & (batch.accept < ratio))

    def weights(batch: Batch, count: Ints) -> Floats:
        """Rounded (p - q)+ after a refusal, unless that is all 0."""
        law = rounded(batch.p[batch.rows, count])
        rejected = np.flatnonzero(count < batch.lens)
        excess = law[rejected] - rounded(batch.q[rejected, count[rejected]])
        residual = rounded(np.maximum(excess, 0))
        left = residual.any(axis=1)
        law[rejected[left]] = residual[left]
        return law

    verify = verifier(accepted=accepted, weights=weights, winner=race_winner)
    tokens, _ = verify(p, q, drafts, coins=coins)
    return tokens


def _check_shapes(p: Floats, q: Floats, drafts: Ints, coins: Coins) -> None:
    trials, lookahead = drafts.shape
    size = p.shape[-1]
    given = {"p": p.shape, "q": q.shape, "accept": coins.accept.shape, "race": coins.race.shape}
    expected = {
        "p": (trials, lookahead + 1, size),
        "q": (trials, lookahead, size),
        "accept": (trials, lookahead),
        "race": (trials, size),
    }
    for name, shape in expected.items():
        repeated = (1, *shape[1:]) if name in ("p", "q") else shape
        if given[name] not in (shape, repeated):
            raise ValueError(f"{name} has shape {given[name]}: expected {shape}")


def _check_drafts(q: Floats, drafts: Ints) -> None:
    trial, position = np.ogrid[: drafts.shape[0], : drafts.shape[1]]
    known = (drafts >= 0) & (drafts < q.shape[-1])
    chance = np.where(len(q) == 1, 0, trial), position, np.where(known, drafts, 0)
    none = drafts == NO_TOKEN
    late = np.logical_or.accumulate(none, axis=1) & ~none
    wrong = np.argwhere(late | (~none & ~(known & (q[chance] > 0))))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"drafts[{row}, {column}] = {drafts[row, column]}: expected a token with q > 0, or -1 "
            "after the last"
        )
