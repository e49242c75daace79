"""Greedy verification of drafts: which blocks the likeliest tokens allow."""

import numpy as np
from numpy.typing import NDArray

from specref.arrays import Floats, Ints
from specref.contracts.batch import ROOT, Batch, TreeBatch, as_tree
from specref.contracts.calling import Verifier
from specref.vocabulary import Tokens

Likeliest = NDArray[np.bool_]


def likeliest(verifier: Verifier, batch: Batch) -> Likeliest:
    """Which tokens are an argmax of each row of the target, as the implementation gets it.

    All tied tokens are. With a claimed tolerance, so are those within twice as much:
    rounding may raise one token, and lower another, by that.

    Returns
    -------
    ndarray of bool, shape (B, K + 1, V)
    """
    rows = verifier.read("target_probs", batch.target_probs)
    if verifier.kinds["target_probs"] != "probs":
        rows = _softmax(rows)
    slack = 2 * verifier.capabilities.tolerance
    return np.asarray(rows >= rows.max(axis=2, keepdims=True) - slack)


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=2, keepdims=True))
    return np.asarray(weights / weights.sum(axis=2, keepdims=True))


def departures(batch: Batch, allowed: Likeliest, tokens: Ints, eos: int | None = None) -> Ints:
    """The rows whose blocks do not follow from greedy decoding.

    A block goes on while its tokens are drafts, and ends with the first that is not. What comes
    after EOS does not matter.

    Parameters
    ----------
    batch : Batch
        Drafts, as chains or trees.
    allowed : ndarray of bool
        From `likeliest`.
    tokens : ndarray of int, shape (B, K + 1)
        Blocks padded with -1.
    eos : int, optional

    Examples
    --------
    >>> p = np.array([[[0.2, 0.8], [0.7, 0.3]]] * 3)
    >>> one = np.ones(3, dtype=np.int64)
    >>> batch = Batch(p, None, one[:, None], one, one)
    >>> departures(batch, p > 0.5, np.array([[1, 0], [1, -1], [0, -1]])).tolist()
    [1, 2]
    """
    tree, row = as_tree(batch), np.arange(len(tokens))
    above = tree.parents + 1  # -1 where there is no node: there is no token to go on with, either
    # Where the tokens so far lead, the root first: to several nodes where siblings repeat.
    at = np.zeros((len(tokens), above.shape[1] + 1), dtype=bool)
    at[:, 0] = True
    goes_on, right = tokens[:, 0] >= 0, np.zeros(len(tokens), dtype=bool)
    for token, later in zip(tokens.T, [*tokens.T[1:], np.full(len(tokens), -1)], strict=True):
        goes_on = goes_on & allowed[row, at.argmax(axis=1), token]
        below = np.take_along_axis(at, above, axis=1) & (tree.draft_tokens == token[:, None])
        drafted = np.zeros_like(at)
        drafted[below.nonzero()[0], above[below]] = True
        ends = (later < 0) & (at & ~drafted).any(axis=1)
        right |= goes_on & (ends if eos is None else ends | (token == eos))
        at[:, 1:], at[:, 0] = below, False
        goes_on &= ~right & (later >= 0) & below.any(axis=1)
    return np.flatnonzero(~right)


def _children(tree: TreeBatch, row: int, node: int, token: int) -> list[int]:
    """The children of a node that hold a token; several where siblings repeat."""
    found = (tree.parents[row] == node) & (tree.draft_tokens[row] == token)
    return np.flatnonzero(found).tolist()


def greedy_block(batch: Batch, row: int, allowed: Likeliest) -> Tokens:
    """A block of greedy decoding; of tied tokens one that was drafted, or the first.

    Examples
    --------
    >>> p = np.array([[[0.5, 0.5], [0.7, 0.3]]])
    >>> one = np.ones(1, dtype=np.int64)
    >>> greedy_block(Batch(p, None, one[:, None], one, one), 0, p[0] >= 0.5)
    (1, 0)
    """
    tree, node = as_tree(batch), ROOT
    block: Tokens = ()
    while True:
        tokens = np.flatnonzero(allowed[node + 1]).tolist()
        below = [(child, x) for x in tokens for child in _children(tree, row, node, x)[:1]]
        if not below:
            return (*block, tokens[0])
        node, token = below[0]
        block = (*block, token)
