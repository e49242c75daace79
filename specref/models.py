"""Models: a vocabulary and the next-token distribution of a context; families of toy models."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from numbers import Integral

import numpy as np

from specref.distributions import Probabilities, Row, as_distribution, normalise
from specref.vocabulary import Text, Tokens, Vocabulary

REMEMBERED_CONTEXTS = 4096


class Model:
    """A vocabulary and a function from context to next-token probabilities.

    Parameters
    ----------
    vocabulary : Vocabulary
        The tokens that the model reads and writes.
    next_token : callable
        Maps a context (tuple of token ids) to V probabilities. It must be a pure function:
        a few thousand results are remembered.

    Raises
    ------
    TypeError
        `vocabulary` is no `Vocabulary`, or `next_token` is not callable.

    Examples
    --------
    >>> model = Model(Vocabulary("ab"), lambda context: ["1/3", "2/3"])
    >>> model.next_token((0, 1))
    array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    """

    def __init__(self, vocabulary: Vocabulary, next_token: Callable[[Tokens], Row]) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(
                f"vocabulary = {vocabulary!r}: expected a Vocabulary, such as Vocabulary('abc')"
            )
        if not callable(next_token):
            raise TypeError(
                f"next_token = {next_token!r}: expected a function of the context (or use "
                "iid_model, table_model, markov_model)"
            )
        self.vocabulary = vocabulary
        self._next_token = next_token
        # `lru_cache` would take longer to make than most models of a search are used.
        self._remembered: dict[Tokens, Probabilities] = {}

    def next_token(self, context: Sequence[int]) -> Probabilities:
        """The distribution of the token after `context`.

        Parameters
        ----------
        context : sequence of int
            Token ids of this model's vocabulary.

        Returns
        -------
        ndarray, shape (V,)
            Read-only; object (of `Fraction`) or float64.

        Raises
        ------
        TypeError
            The context is text, or an entry is no integer.
        ValueError
            A token id is out of range, or the function returned no distribution over V.
        """
        context = tuple(context)
        row = self._remembered.get(context)
        if row is None:
            row = self._checked_next_token(context)
            if len(self._remembered) >= REMEMBERED_CONTEXTS:
                self._remembered.clear()
            self._remembered[context] = row
        return row

    def _checked_next_token(self, context: Tokens) -> Probabilities:
        check_ids(context, "context")
        self.vocabulary.check(context, "context")
        name = f"next_token({context})"
        return as_distribution(self._next_token(context), name, len(self.vocabulary))


def check_ids(context: Sequence[int], name: str) -> None:
    """Raise `TypeError` unless these are integers; whether they are in range is not asked.

    Examples
    --------
    >>> check_ids("ab", "context")
    Traceback (most recent call last):
    TypeError: context[0] = 'a': expected a token id (vocabulary.encode gives those of a text)
    """
    for index, token in enumerate(context):
        if type(token) is not int and (not isinstance(token, Integral) or isinstance(token, bool)):
            text = " (vocabulary.encode gives those of a text)" if isinstance(token, str) else ""
            raise TypeError(f"{name}[{index}] = {token!r}: expected a token id{text}")


def iid_model(vocabulary: Vocabulary, p: Row) -> Model:
    """A model that ignores its context.

    Examples
    --------
    >>> iid_model(Vocabulary("ab"), ["1/3", "2/3"]).next_token((1, 1))[1]
    Fraction(2, 3)
    """
    p = as_distribution(p, "p", len(vocabulary))
    return Model(vocabulary, lambda context: p)


def table_model(
    vocabulary: Vocabulary,
    rows: Mapping[Tokens, Row],
    otherwise: Row | None = None,
) -> Model:
    """A model that looks the whole context up in a table.

    Raises
    ------
    ValueError
        On use, for a context that is not in the table when `otherwise` is not given.

    Examples
    --------
    >>> model = table_model(Vocabulary("ab"), {(): [1, 0]}, otherwise=["1/2", "1/2"])
    >>> model.next_token((0,))[0]
    Fraction(1, 2)
    """

    def next_token(context: Tokens) -> Row:
        row = rows.get(context, otherwise)
        if row is None:
            raise ValueError(f"context {context} is not in the table, and otherwise is not given")
        return row

    return Model(vocabulary, next_token)


def markov_model(vocabulary: Vocabulary, initial: Row, transitions: Sequence[Row]) -> Model:
    """A model that looks at the last token only: `transitions[last]`, or `initial`.

    Raises
    ------
    ValueError
        There is not one row of `transitions` for each token.

    Examples
    --------
    >>> model = markov_model(Vocabulary("ab"), ["1/2", "1/2"], [[0, 1], [1, 0]])
    >>> model.next_token((0, 1))[0]
    Fraction(1, 1)
    """
    if len(transitions) != len(vocabulary):
        raise ValueError(f"transitions has {len(transitions)} rows: expected {len(vocabulary)}")
    first = as_distribution(initial, "initial", len(vocabulary))
    rows = [
        as_distribution(row, f"transitions[{last}]", len(vocabulary))
        for last, row in enumerate(transitions)
    ]
    return Model(vocabulary, lambda context: rows[context[-1]] if context else first)


def ngram_model(
    vocabulary: Vocabulary, order: int, rows: Mapping[Tokens, Row], otherwise: Row
) -> Model:
    """A model that looks at the last `order` tokens.

    Raises
    ------
    ValueError
        `order` < 0; on use, a bad row.

    Examples
    --------
    >>> model = ngram_model(Vocabulary("ab"), 2, {(0, 1): [0, 1]}, otherwise=["1/2", "1/2"])
    >>> model.next_token((1, 0, 1))[1]
    Fraction(1, 1)
    """
    if order < 0:
        raise ValueError(f"order = {order}: expected an integer >= 0")
    table = table_model(vocabulary, rows, otherwise)
    return Model(vocabulary, lambda context: table.next_token(_last(context, order)))


def text_model(
    vocabulary: Vocabulary,
    corpus: Text,
    order: int = 1,
    smoothing: Fraction = Fraction(1),
) -> Model:
    """An n-gram model estimated from a text that its own vocabulary tokenises, exact.

    The probability of a token after its last `order` tokens is its count plus `smoothing`,
    normalised. Contexts never seen get the uniform distribution.

    Raises
    ------
    ValueError
        The text cannot be tokenised, `order` < 0, or `smoothing` <= 0.

    Examples
    --------
    >>> text_model(Vocabulary("ab"), "aab", order=1).next_token((0,))
    array([Fraction(1, 2), Fraction(1, 2)], dtype=object)
    """
    if order < 0:
        raise ValueError(f"order = {order}: expected an integer >= 0")
    if smoothing <= 0:
        raise ValueError(f"smoothing = {smoothing}: expected a number > 0")
    encoded = vocabulary.encode(corpus)
    counts: dict[Tokens, Counter[int]] = {}
    for position, token in enumerate(encoded):
        counts.setdefault(_last(encoded[:position], order), Counter())[token] += 1

    def next_token(context: Tokens) -> Probabilities:
        seen = counts.get(_last(context, order), Counter())
        weights = [seen[token] + Fraction(smoothing) for token in range(len(vocabulary))]
        return normalise(np.array(weights, dtype=object))

    return Model(vocabulary, next_token)


def hashed_model(vocabulary: Vocabulary, key: str, largest: int = 4) -> Model:
    """A model whose rows differ by position and by the whole context, exact and reproducible.

    Token weights are integers 0 to `largest` from a BLAKE2 digest of key and context, so rows
    have zeros and ties. A row of zeros becomes a point mass.

    Examples
    --------
    >>> model = hashed_model(Vocabulary("abc"), "target")
    >>> bool((model.next_token(()) == model.next_token((0,))).all())
    False
    """

    def next_token(context: Tokens) -> Probabilities:
        digest = hashlib.blake2b(f"{key}:{context}".encode(), digest_size=64).digest()
        picks = [digest[token % 64] + token // 64 for token in range(len(vocabulary))]
        weights = [pick % (largest + 1) for pick in picks]
        if not any(weights):
            weights[digest[-1] % len(vocabulary)] = 1
        total = sum(weights)
        return np.array([Fraction(weight, total) for weight in weights], dtype=object)

    return Model(vocabulary, next_token)


def as_float(model: Model) -> Model:
    """The same model in float64, for sampling at speed.

    Examples
    --------
    >>> as_float(iid_model(Vocabulary("ab"), ["1/4", "3/4"])).next_token(())
    array([0.25, 0.75])
    """
    return Model(model.vocabulary, lambda context: model.next_token(context).astype(np.float64))


def _last(context: Tokens, order: int) -> Tokens:
    return context[len(context) - order :] if len(context) > order else context
