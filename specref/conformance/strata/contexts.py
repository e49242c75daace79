"""Models whose laws depend on every token of the context, or on the last ones alone."""

import zlib
from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from specref.arrays import Floats
from specref.conformance.strata.laws import Pool
from specref.contracts.tree_rules import numbered
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary


class Hashed(Model):
    """A model with one of given laws after each context, chosen by a hash of the whole context.

    Contexts that differ in any token, or in their length, have laws that are no more alike than
    any two of those given. A sampler that forgets some of the context reads another law. With
    `memory` that holds for the last tokens alone, and texts repeat.

    Parameters
    ----------
    vocabulary : Vocabulary
    rows : ndarray, shape (laws, V)
    memory : int, optional
        The law is chosen by so many tokens, the last ones; by all, if it is left out.

    Examples
    --------
    >>> model = Hashed(numbered(2), np.array([[0.5, 0.5], [0.0, 1.0], [0.25, 0.75]]))
    >>> [float(model.next_token(context)[0]) for context in ((), (0,), (0, 0), (1, 0))]
    [0.5, 0.0, 0.0, 0.0]
    """

    def __init__(self, vocabulary: Vocabulary, rows: Floats, memory: int | None = None) -> None:
        super().__init__(vocabulary, self._row)
        self.memory = memory
        self.rows: list[Floats] = [np.array(row) for row in rows]
        for row in self.rows:
            row.setflags(write=False)

    def next_token(self, context: Sequence[int]) -> Floats:
        """The law after a context, which is not remembered: few contexts come twice."""
        return self._row(context)

    def _row(self, context: Sequence[int]) -> Floats:
        if len(context) and not 0 <= min(context) <= max(context) < len(self.rows[0]):
            self.vocabulary.check(tuple(context), "context")
        if self.memory is not None:
            context = context[max(0, len(context) - self.memory) :]
        return self.rows[zlib.crc32(as_bytes(context)) % len(self.rows)]


def as_bytes(tokens: Sequence[int]) -> bytes:
    """Token ids as the bytes that are hashed."""
    return array("I", tokens).tobytes()


def pairs_along(
    context: Tokens, text: Tokens, pairs: int, memory: int | None = None
) -> Iterator[int]:
    """Which of so many pairs of laws each token of a text is drawn from, after a context.

    Examples
    --------
    >>> model = Hashed(numbered(2), np.eye(2)[[0, 1, 1]])
    >>> [int(model.next_token((0, 1, 1)[:i]).argmax()) for i in (1, 2)]
    [1, 1]
    >>> list(pairs_along((0,), (1, 1), 3))
    [1, 2]
    """
    if memory is not None:
        whole = (*context, *text)
        for end in range(len(context), len(whole)):
            yield zlib.crc32(as_bytes(whole[max(0, end - memory) : end])) % pairs
        return
    state = zlib.crc32(as_bytes(context))
    for token in text:
        yield state % pairs
        state = zlib.crc32(as_bytes((token,)), state)


def vocabulary_of(size: int, *, ends: bool) -> Vocabulary:
    """A vocabulary of so many tokens, the last of which may end a text."""
    tokens = numbered(size).tokens
    return Vocabulary(tokens, eos=tokens[-1]) if ends else numbered(size)


def hashed_pair(
    pool: Pool, vocabulary: Vocabulary, memory: int | None = None
) -> tuple[Hashed, Hashed]:
    """Target and drafter with the pairs of a pool: after each context both have the same pair."""
    return Hashed(vocabulary, pool.p, memory), Hashed(vocabulary, pool.q, memory)
