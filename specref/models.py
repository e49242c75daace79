"""Models: a vocabulary and the next-token distribution of a context; families of toy models."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np

from specref.distributions import Probabilities, Row, as_distribution, normalise
from specref.spoiled import SpoiledError
from specref.vocabulary import Text, Tokens, Vocabulary

REMEMBERED_CONTEXTS = 4096
_FIXED = ("vocabulary", "_next_token", "_remembered")
WATCHED, ASKED_AGAIN = 16, 2
"""How many rows of a model are compared, and for how many its function is asked again: more of
those would take a rule's proof a fifth longer."""


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

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse to replace what rows come from: rules are judged by the models they are given."""
        if hasattr(Model, name) or (name in _FIXED and name in vars(self)):
            raise AttributeError(f"{name} of a model cannot be replaced: make another Model")
        object.__setattr__(self, name, value)

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


class OwnModel(Model):
    """A model behind the rows of a `Model`: copies, checked and read-only.

    Rows, their numbers and the vocabulary are its own: who changes them changes no other model.

    Parameters
    ----------
    given : object
        With `vocabulary` and `next_token`. Its other attributes are read through this model.

    Examples
    --------
    >>> class Own:
    ...     vocabulary, row = Vocabulary("ab"), np.array([0.5, 0.5])
    ...     def next_token(self, context):
    ...         return self.row
    >>> model = OwnModel(Own())
    >>> model.next_token(()) is model.row, model.next_token(()).flags.writeable
    (False, False)
    """

    def __init__(self, given: Any) -> None:
        super().__init__(replace(given.vocabulary), lambda text: _copied(given.next_token(text)))
        self._given = given

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_given":  # what copies and pickles ask for
            raise AttributeError(name)
        return getattr(self._given, name)


def _copied(row: Any) -> Any:
    """The same numbers as objects of their own."""
    exact = isinstance(row, np.ndarray) and row.dtype == object
    return [Fraction(x) if type(x) is Fraction else x for x in row] if exact else row


def as_model(model: Any, name: str) -> Model:
    """A model whose rows are its own: a `Model` as it is, any other behind one.

    Parameters
    ----------
    model : object
        A `Model`, or anything that has a `vocabulary` and a function `next_token`.
    name : str
        What it is called in messages.

    Raises
    ------
    TypeError
        It is no model.

    Examples
    --------
    >>> as_model("abc", "target")
    Traceback (most recent call last):
    TypeError: target = 'abc': expected a Model
    """
    if isinstance(model, Model) and type(model).next_token is Model.next_token:
        return model
    if not hasattr(model, "next_token"):
        raise TypeError(f"{name} = {model!r}: expected a Model")
    if not isinstance(getattr(model, "vocabulary", None), Vocabulary):
        raise TypeError(f"{name}.vocabulary: expected a Vocabulary, such as Vocabulary('abc')")
    return OwnModel(model)


@contextmanager
def watched(target: Model, drafter: Model, context: Tokens, depth: int) -> Iterator[None]:
    """Raise if rows of the models are afterwards other than before.

    Rows of the target are asked for before anything is run: after the context, and after
    possible texts of up to `depth` tokens, the shortest first, 16 in all. For they may come from
    arrays that a rule can reach. Of the draft model it is the row after no token.

    Raises
    ------
    SpoiledError
        The first context after which a row was changed.

    Examples
    --------
    >>> row = [1, 0]
    >>> model = Model(Vocabulary("ab"), lambda context: row)
    >>> with watched(model, model, (), 1):
    ...     row[:] = [0, 1]
    Traceback (most recent call last):
    specref.spoiled.SpoiledError: the target's row after () was changed while the rule ran
    """
    known: list[tuple[str, Model, dict[Tokens, list[Any]]]] = [
        ("target", target, _first_rows(target, tuple(context), depth)),
        ("drafter", drafter, {(): drafter.next_token(()).tolist()}),
    ]
    yield
    for name, model, rows in known:
        for number, (text, row) in enumerate(rows.items()):
            again = model._checked_next_token(text) if number < ASKED_AGAIN else row
            if not list(again) == model.next_token(text).tolist() == row:
                raise SpoiledError(f"the {name}'s row after {text} was changed while the rule ran")


def _first_rows(model: Model, context: Tokens, depth: int) -> dict[Tokens, list[Any]]:
    """The rows after the shortest texts that begin with a context and are possible after it."""
    found: dict[Tokens, list[Any]] = {}
    texts = [context]
    for text in texts:
        try:
            row = found[text] = model.next_token(text).tolist()
        except Exception:  # such as a table's that ends: rules need not get there
            continue
        if len(text) == len(context) + depth or model.vocabulary.ends(text[len(context) :]):
            continue
        likely = [(*text, token) for token, probability in enumerate(row) if probability > 0]
        texts += likely[: WATCHED - len(texts)]
    return found


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
