"""Where learning-free drafts come from: tables, the context itself, and mixtures of both.

Stewart et al. 2024, "The N-Grammys", section 4. A strategy is a function of the context and
the lookahead alone; whatever it proposes, `ngrams.match` is lossless.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specref.validation import check_count
from specref.vocabulary import Tokens

Table: TypeAlias = NDArray[np.int64]
Propose: TypeAlias = Callable[[Tokens, int], tuple[Tokens, ...]]


def table_drafts(table: ArrayLike) -> Propose:
    """The drafts that a table has for the last token; none for the empty context.

    Parameters
    ----------
    table : array_like of int, shape (V, k) or (V, k, w)
        k drafts for each token, the likeliest first: `bigrams`, or `extended` ones.

    Raises
    ------
    TypeError, ValueError
        No table of token ids (`as_table`); on use, a last token without row.

    Examples
    --------
    >>> table_drafts([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])((0, 1), 1)
    ((0,), (1,))
    """
    drafts = as_table(table)

    def propose(context: Tokens, lookahead: int) -> tuple[Tokens, ...]:
        if not context:
            return ()
        if not 0 <= context[-1] < len(drafts):
            raise ValueError(f"context[-1] = {context[-1]}: the table has {len(drafts)} rows")
        return tuple(map(tuple, drafts[context[-1], :, :lookahead].tolist()))

    return propose


def unigram_drafts(tokens: Sequence[int]) -> Propose:
    """The same drafts of one token each in every context.

    Examples
    --------
    >>> unigram_drafts([2, 0])((), 4)
    ((2,), (0,))
    """
    ids = tuple(int(token) for token in tokens)
    check_count(len(ids), "number of tokens")
    return lambda context, lookahead: tuple((token,)[:lookahead] for token in ids)


def context_drafts(query: int) -> Propose:
    """What followed earlier occurrences of the last `query` tokens: the context n-gram.

    Those seen most often come first; of those seen as often, the one seen last. Where the end
    of the context cuts one short, it is proposed after the whole ones. No earlier occurrence,
    as in a context not longer than the query, means no drafts.

    Raises
    ------
    ValueError
        `query` < 1.

    Examples
    --------
    >>> context_drafts(1)((7, 5, 7, 1, 7, 3, 7), 1)
    ((3,), (1,), (5,))
    """
    check_count(query, "query")

    def propose(context: Tokens, lookahead: int) -> tuple[Tokens, ...]:
        suffix = context[-query:]
        count: Counter[Tokens] = Counter()
        last: dict[Tokens, int] = {}
        for end in range(query, len(context)):
            if context[end - query : end] == suffix:
                follows = context[end : end + lookahead]
                count[follows], last[follows] = count[follows] + 1, end
        return tuple(sorted(count, key=lambda f: (len(f), count[f], last[f]), reverse=True))

    return propose


def mixed_drafts(*strategies: Propose, drafts: int) -> Propose:
    """The first `drafts` drafts of several strategies, in their order: section 4.3.

    A draft that is a prefix of one before it adds nothing to the trie and does not count.

    Raises
    ------
    ValueError
        `drafts` < 1, or no strategies.

    Examples
    --------
    >>> mix = mixed_drafts(context_drafts(1), unigram_drafts([1, 2, 0]), drafts=3)
    >>> mix((0, 1, 0), 2)
    ((1, 0), (2,), (0,))
    """
    check_count(len(strategies), "number of strategies")
    check_count(drafts, "drafts")
    return lambda context, lookahead: tuple(
        draft for _, draft in ranked(strategies, context, lookahead, drafts)
    )


def ranked(
    strategies: Sequence[Propose], context: Tokens, lookahead: int, drafts: int
) -> tuple[tuple[int, Tokens], ...]:
    """The drafts of `mixed_drafts`, each with the index of the strategy it came from."""
    kept: list[tuple[int, Tokens]] = []
    for index, propose in enumerate(strategies):
        for draft in propose(context, lookahead):
            known = any(earlier[: len(draft)] == draft for _, earlier in kept)
            if draft and not known and len(kept) < drafts:
                kept.append((index, draft))
    return tuple(kept)


def as_table(table: ArrayLike) -> Table:
    """Validate drafts by last token; shape (V, k, w), where (V, k) means w = 1."""
    drafts = np.asarray(table)
    if drafts.ndim not in (2, 3) or not drafts.size:
        raise ValueError(f"table has shape {drafts.shape}: expected (V, k) or (V, k, w), > 0")
    if not np.issubdtype(drafts.dtype, np.integer):
        raise TypeError(f"table has dtype {drafts.dtype}: expected integers")
    wrong = np.argwhere((drafts < 0) | (drafts >= len(drafts)))
    if len(wrong):
        where = tuple(wrong[0].tolist())
        raise ValueError(f"table{list(where)} = {drafts[where]}: expected 0 <= id < {len(drafts)}")
    return drafts.reshape(*drafts.shape[:2], -1).astype(np.int64)
