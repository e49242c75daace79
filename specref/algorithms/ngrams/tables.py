"""Draft tables that a model's weights yield without training: unigrams and bigrams.

Stewart et al. 2024, "The N-Grammys", section 4.1 and appendix B.1. A table is built once and
looked up at no cost. The unigrams of the text and of the pseudo-code differ; both are here.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specref.algorithms.ngrams.drafts import Table, as_table
from specref.distributions import Probabilities
from specref.models import Model
from specref.validation import check_count


def bigram_rows(model: Model) -> Iterator[Probabilities]:
    """p(. | x) for each token x, alone in the context."""
    return (model.next_token((x,)) for x in range(len(model.vocabulary)))


def bigrams(rows: Iterable[ArrayLike], drafts: int) -> Table:
    """The likeliest tokens after each token, ties to the lower id; shape (V, drafts).

    Parameters
    ----------
    rows : iterable of V array_like, shape (V,)
        Probabilities or logits after each token, such as `bigram_rows`.
    drafts : int
        1 to V.

    Raises
    ------
    ValueError
        There is not a row of length V for each of V tokens, an entry is NaN, or `drafts` is
        out of range.

    Examples
    --------
    >>> bigrams([[0.2, 0.4, 0.4], [0.5, 0.1, 0.4], [0.1, 0.3, 0.6]], 2).tolist()
    [[1, 2], [0, 2], [2, 1]]
    """
    table, sizes = [], set()
    for x, row in enumerate(rows):
        scores = np.asarray(row)
        sizes.add(scores.shape)
        table.append(_likeliest(scores, drafts, f"rows[{x}]"))
    if sizes != {(len(table),)}:
        raise ValueError(f"rows have shapes {sorted(sizes)}: expected {(len(table),)} for each")
    return np.array(table)


def extended(table: ArrayLike, lookahead: int) -> Table:
    """Each bigram, continued greedily by the bigrams themselves; shape (V, k, lookahead).

    Of a table of longer drafts, the first tokens count.

    Raises
    ------
    TypeError, ValueError
        `table` is no table of token ids (`as_table`), or `lookahead` < 1.

    Examples
    --------
    >>> extended([[1, 2], [0, 2], [2, 1]], 3)[0].tolist()
    [[1, 0, 1], [2, 2, 2]]
    """
    check_count(lookahead, "lookahead")
    firsts = as_table(table)[:, :, 0]
    drafts = [firsts]
    while len(drafts) < lookahead:
        drafts.append(firsts[:, 0][drafts[-1]])
    return np.stack(drafts, axis=-1)


def extended_by_model(model: Model, table: ArrayLike, lookahead: int) -> Table:
    """Each bigram, continued greedily by the model, which sees the token and the whole draft.

    Raises as `extended`.
    """
    check_count(lookahead, "lookahead")
    firsts = as_table(table)[:, :, 0]
    drafts = np.empty((*firsts.shape, lookahead), dtype=np.int64)
    for x, rank in np.ndindex(firsts.shape):
        tokens = [x, int(firsts[x, rank])]
        while len(tokens) <= lookahead:
            tokens.append(int(np.argmax(model.next_token(tokens))))
        drafts[x, rank] = tokens[1:]
    return drafts


def unigrams(inputs: ArrayLike, outputs: ArrayLike, drafts: int) -> Table:
    """The tokens whose output embeddings are nearest their mean, as section 4.1 states it.

    The distance is d(x)^2 = (u_x - mean)' C (u_x - mean), C = sum of e e' over the input
    embeddings, so that ||u - v||^2 = sum of (logit_u - logit_v)^2 over the last tokens.

    Parameters
    ----------
    inputs, outputs : array_like, shape (V, d)
        Embeddings e and u; Fractions stay exact.
    drafts : int
        1 to V.

    Raises
    ------
    ValueError
        Shapes do not fit, a distance is NaN, or `drafts` is out of range.

    Examples
    --------
    >>> unigrams([[1]], [[1], [2], [3], [-2]], 4).tolist(), unigrams_as_printed(
    ...     [[1]], [[1], [2], [3], [-2]], 4).tolist()
    ([0, 1, 2, 3], [3, 0, 1, 2])
    """
    u, metric = _embeddings(inputs, outputs)
    centred = u - u.mean(axis=0)
    return _likeliest(-((centred @ metric) * centred).sum(axis=1), drafts, "-distances")


def unigrams_as_printed(inputs: ArrayLike, outputs: ArrayLike, drafts: int) -> Table:
    """The tokens with the least mean' C u_x, as appendix B.1 computes "dists".

    Of outputs with equal norms these are the farthest from the mean, in the reverse order.
    """
    u, metric = _embeddings(inputs, outputs)
    return _likeliest(-(u @ metric @ u.mean(axis=0)), drafts, "-dists")


def _embeddings(inputs: ArrayLike, outputs: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    e, u = np.asarray(inputs), np.asarray(outputs)
    if e.ndim != 2 or u.ndim != 2 or e.shape[1] != u.shape[1]:
        raise ValueError(f"inputs, outputs have shapes {e.shape}, {u.shape}: expected (V, d)")
    return u, e.T @ e


def _likeliest(scores: NDArray[Any], drafts: int, name: str) -> Table:
    check_count(drafts, "drafts")
    if scores.ndim != 1 or drafts > len(scores):
        raise ValueError(f"{name} has shape {scores.shape}: expected at least {drafts} scores")
    if (scores != scores).any():
        raise ValueError(f"{name}[{np.argmax(scores != scores)}] is NaN")
    # Backwards twice: a stable sort that leaves ties to the lower id, for any dtype.
    order = np.argsort(scores[::-1], kind="stable")[::-1]
    return np.asarray(len(scores) - 1 - order[:drafts], dtype=np.int64)
