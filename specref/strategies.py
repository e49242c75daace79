"""Hypothesis strategies for vocabularies, models and pairs of models (needs Hypothesis).

Everything drawn is exact: probabilities are `Fraction`s made from small integer weights, with
zeros, ties and point masses. Failing examples shrink to few simple rows and print as code.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from specref.distributions import Probabilities, as_distribution
from specref.models import Model
from specref.optional import PARTS
from specref.vocabulary import Tokens, Vocabulary

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as error:
    raise ImportError(
        f"specref.strategies needs Hypothesis: {PARTS['strategies'].remedy}"
    ) from error

Normaliser: TypeAlias = Callable[[str], str]
Pair: TypeAlias = tuple[Model, Model]
Iteration: TypeAlias = tuple[Model, Model, Tokens, int]
ROLLING_MODULUS = 7


class RowsModel(Model):
    """A model of a few rows, one of which is picked by a rolling hash of the whole context.

    The hash changes with every token and with the position, so neighbouring contexts see
    different rows. `repr` is code that builds the model again.

    Parameters
    ----------
    vocabulary : Vocabulary
    rows : sequence of array_like, each of shape (V,)
        At least one; the empty context sees the first.

    Raises
    ------
    ValueError
        There is no row, or one is not a distribution over the vocabulary.

    Examples
    --------
    >>> model = RowsModel(Vocabulary("ab"), [["1/2", "1/2"], [1, 0]])
    >>> model
    RowsModel(Vocabulary(['a', 'b']), [['1/2', '1/2'], ['1', '0']])
    >>> [str(model.next_token(context)[0]) for context in [(), (0,), (1,), (0, 1)]]
    ['1/2', '1', '1/2', '1']
    """

    def __init__(self, vocabulary: Vocabulary, rows: Sequence[ArrayLike]) -> None:
        if len(rows) == 0:
            raise ValueError("rows is empty: expected at least one row")
        self.rows = [
            as_distribution(row, f"rows[{index}]", len(vocabulary))
            for index, row in enumerate(rows)
        ]
        super().__init__(vocabulary, self._row)

    def _row(self, context: Tokens) -> Probabilities:
        state = 0
        for token in context:
            state = (3 * state + token + 1) % ROLLING_MODULUS
        return self.rows[state % len(self.rows)]

    def __repr__(self) -> str:
        rows = [[str(probability) for probability in row] for row in self.rows]
        return f"RowsModel({_show(self.vocabulary)}, {rows})"


def distributions(size: int, largest: int = 4) -> SearchStrategy[Probabilities]:
    """Exact distributions over `size` tokens, in proportion to integer weights up to `largest`.

    A third of them has weights 0 and 1 only, for zeros, ties and point masses.

    Raises
    ------
    ValueError
        `size` < 1 or `largest` < 1.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(distributions(3), lambda p: 0 < p[0] < p[2])
    array([Fraction(1, 3), Fraction(0, 1), Fraction(2, 3)], dtype=object)
    """
    if size < 1 or largest < 1:
        raise ValueError(f"size = {size}, largest = {largest}: expected integers >= 1")
    return _distribution(size, largest)


def vocabularies(
    alphabet: str = "ab",
    max_tokens: int = 5,
    *,
    longest: int = 3,
    complete: bool = False,
    eos: bool = False,
    normalise: Normaliser | None = None,
) -> SearchStrategy[Vocabulary]:
    """Vocabularies of strings over a small alphabet, in any order of ids.

    Parameters
    ----------
    alphabet : str
        The characters.
    max_tokens : int
        The largest vocabulary.
    longest : int
        The longest token.
    complete : bool
        Include every single character, so that tokenisation never fails.
    eos : bool
        Whether one of the tokens may be EOS.
    normalise : callable, optional
        Some of the vocabularies normalise texts with it: their tokeniser is not injective.

    Raises
    ------
    ValueError
        No room for one token, or for all single characters.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(vocabularies(complete=True), lambda vocabulary: vocabulary.longest == 2).tokens
    ('a', 'b', 'aa')
    """
    singles = list(dict.fromkeys(alphabet)) if complete else []
    if max_tokens < max(1, len(singles)) or longest < 1 or not alphabet:
        raise ValueError(
            f"alphabet = {alphabet!r}, max_tokens = {max_tokens}, longest = {longest}: "
            f"expected room for at least {max(1, len(singles))} tokens"
        )
    words = [word for word in _words(alphabet, longest) if word not in singles]
    most = min(len(words), max_tokens - len(singles))
    return _vocabulary(singles, words, most, eos, normalise)


def models(vocabulary: Vocabulary, max_rows: int = 6) -> SearchStrategy[RowsModel]:
    """Models whose rows differ by position and by the whole context.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(models(Vocabulary("ab")), lambda model: model.next_token((0,))[1] > 0)
    RowsModel(Vocabulary(['a', 'b']), [['0', '1']])
    """
    return _model(vocabulary, max_rows)


def model_pairs(vocabulary: SearchStrategy[Vocabulary] | None = None) -> SearchStrategy[Pair]:
    """Target and draft model over one vocabulary; in some pairs they are the same model.

    Parameters
    ----------
    vocabulary : strategy, optional
        By default up to four tokens, one of which may be EOS.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(model_pairs(), lambda pair: pair[0] is not pair[1])[1]
    RowsModel(Vocabulary(['a']), [['1']])
    """
    drawn = vocabularies(max_tokens=4, eos=True) if vocabulary is None else vocabulary
    return _model_pair(drawn)


def heterogeneous_pairs(
    alphabet: str = "ab", max_tokens: int = 4, *, longest: int = 2, eos: bool = True
) -> SearchStrategy[Pair]:
    """Target and draft model over two vocabularies that can tokenise each other's texts.

    Parameters as `vocabularies`; both have every single character, and their EOS may differ.

    Examples
    --------
    >>> from hypothesis import find
    >>> target, drafter = find(heterogeneous_pairs(), lambda pair: pair[1].vocabulary.longest > 1)
    >>> target.vocabulary.tokens, drafter.vocabulary.tokens
    (('a', 'b'), ('a', 'b', 'aa'))
    """
    drawn = vocabularies(alphabet, max_tokens, longest=longest, complete=True, eos=eos)
    return _pair(drawn)


def token_level_pairs(
    alphabet: str = "ab", max_tokens: int = 4, *, longest: int = 2, eos: bool = True
) -> SearchStrategy[Pair]:
    """Target and draft model over any two vocabularies: overlapping, nested, equal or disjoint.

    Parameters as `vocabularies`. Shared tokens usually have different ids.

    Examples
    --------
    >>> from hypothesis import find
    >>> from specref.vocabulary import intersection
    >>> target, drafter = find(token_level_pairs(), lambda pair: not intersection(
    ...     pair[0].vocabulary, pair[1].vocabulary))
    >>> target.vocabulary.tokens, drafter.vocabulary.tokens
    (('a',), ('b',))
    """
    return _token_level_pair(_words(alphabet, longest), max_tokens, eos)


def non_injective_pairs(max_tokens: int = 4, *, eos: bool = True) -> SearchStrategy[Pair]:
    """As `heterogeneous_pairs`, where one or both tokenisers lower-case or merge spaces.

    Examples
    --------
    >>> from hypothesis import find
    >>> target, _ = find(non_injective_pairs(), lambda pair: pair[0].vocabulary.normalise)
    >>> target.vocabulary.encode("aA")
    (0, 0)
    """
    kinds = [
        vocabularies(alphabet, max_tokens, longest=2, complete=True, eos=eos, normalise=normalise)
        for alphabet, normalise in (("aA", str.lower), (" a", merge_spaces))
    ]
    return st.one_of([_pair(drawn) for drawn in kinds]).filter(
        lambda pair: any(model.vocabulary.normalise is not None for model in pair)
    )


def lookaheads(largest: int = 3) -> SearchStrategy[int]:
    """Lookaheads from 0 to `largest`.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(lookaheads(), lambda lookahead: lookahead > 0)
    1
    """
    return _sizes(largest)


def contexts(vocabulary: Vocabulary, max_length: int = 2) -> SearchStrategy[Tokens]:
    """Token sequences, the empty one included.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(contexts(Vocabulary("ab")), lambda context: 1 in context)
    (1,)
    """
    return _context(len(vocabulary), max_length)


def iterations(
    pairs: SearchStrategy[Pair], max_lookahead: int = 2, max_context: int = 2
) -> SearchStrategy[Iteration]:
    """`(target, drafter, context, lookahead)`: what `is_lossless(step, …)` takes.

    Examples
    --------
    >>> from hypothesis import find
    >>> from specref import is_lossless
    >>> from specref.algorithms import standard
    >>> def drafts_only(target, drafter, context, lookahead, chance):
    ...     return standard.step(drafter, drafter, context, lookahead, chance)
    >>> target, drafter, *_ = find(
    ...     iterations(model_pairs()), lambda case: not is_lossless(drafts_only, *case))
    >>> target
    RowsModel(Vocabulary(['a', 'b']), [['1', '0']])
    >>> drafter
    RowsModel(Vocabulary(['a', 'b']), [['0', '1']])
    """
    return _iteration(pairs, max_lookahead, max_context)


def merge_spaces(text: str) -> str:
    """Replace every run of spaces by one space.

    Examples
    --------
    >>> merge_spaces("a  a")
    'a a'
    """
    return re.sub(" +", " ", text)


@lru_cache
def _up_to(largest: int) -> SearchStrategy[int]:
    """Close to uniform, where `st.integers` favours the smallest."""
    return st.sampled_from(range(largest + 1))


@lru_cache
def _sizes(largest: int) -> SearchStrategy[int]:
    """From 0, half as often as every other size; `st.lists` would mostly stay at its smallest."""
    if largest < 0:
        raise ValueError(f"a size of at most {largest}: expected an integer >= 0")
    return st.sampled_from([0, *(size for size in range(1, largest + 1) for _ in range(2))])


@st.composite
def _distribution(draw: st.DrawFn, size: int, largest: int) -> Probabilities:
    weight = _up_to(draw(st.sampled_from([1, largest, largest])))
    weights = [draw(weight) for _ in range(size)]
    weights = weights if any(weights) else [1, *weights[1:]]
    shares = [Fraction(weight, sum(weights)) for weight in weights]
    return as_distribution(np.array(shares, dtype=object))


@st.composite
def _vocabulary(
    draw: st.DrawFn,
    required: Sequence[str],
    optional: Sequence[str],
    most: int,
    eos: bool,
    normalise: Normaliser | None,
) -> Vocabulary:
    fewest = 0 if required else 1
    count = fewest + draw(_sizes(most - fewest))
    extra = draw(_distinct(tuple(optional), count))
    tokens = _rotated([*required, *extra], draw(_up_to(len(required) + count - 1)))
    end = draw(st.sampled_from([None, *tokens])) if eos else None
    return Vocabulary(tokens, end, draw(st.sampled_from([None, normalise])) if normalise else None)


@lru_cache
def _distinct(words: tuple[str, ...], count: int) -> SearchStrategy[list[str]]:
    if not count:
        return st.just([])
    return st.lists(st.sampled_from(words), min_size=count, max_size=count, unique=True)


def _rotated(tokens: list[str], start: int) -> list[str]:
    return tokens[start:] + tokens[:start]


def _words(alphabet: str, longest: int) -> list[str]:
    lengths = range(1, longest + 1)
    words = ("".join(word) for n in lengths for word in itertools.product(alphabet, repeat=n))
    return list(dict.fromkeys(words))


@st.composite
def _model(draw: st.DrawFn, vocabulary: Vocabulary, max_rows: int) -> RowsModel:
    row = distributions(len(vocabulary))
    return RowsModel(vocabulary, [draw(row) for _ in range(1 + draw(_sizes(max_rows - 1)))])


@st.composite
def _model_pair(draw: st.DrawFn, vocabularies: SearchStrategy[Vocabulary]) -> Pair:
    vocabulary = draw(vocabularies)
    target = draw(models(vocabulary))
    same = draw(_up_to(3)) == 3
    return target, target if same else draw(models(vocabulary))


@st.composite
def _pair(draw: st.DrawFn, vocabularies: SearchStrategy[Vocabulary]) -> Pair:
    target, drafter = draw(vocabularies), draw(vocabularies)
    return draw(models(target)), draw(models(drafter))


@st.composite
def _token_level_pair(draw: st.DrawFn, words: Sequence[str], max_tokens: int, eos: bool) -> Pair:
    words = draw(st.permutations(words))
    count = 1 + draw(_sizes(min(max_tokens, len(words)) - 1))
    shared = draw(_sizes(count))
    others = draw(_sizes(min(max_tokens - shared, len(words) - count)))
    shared = shared if shared + others else 1
    drafter = [*words[:shared], *words[count : count + others]]
    drafter = _rotated(drafter, draw(_up_to(len(drafter) - 1)))
    both = [
        Vocabulary(tokens, draw(st.sampled_from([None, *tokens])) if eos else None)
        for tokens in (words[:count], drafter)
    ]
    return draw(models(both[0])), draw(models(both[1]))


@st.composite
def _context(draw: st.DrawFn, size: int, max_length: int) -> Tokens:
    return tuple(draw(_up_to(size - 1)) for _ in range(draw(_sizes(max_length))))


@st.composite
def _iteration(
    draw: st.DrawFn, pairs: SearchStrategy[Pair], max_lookahead: int, max_context: int
) -> Iteration:
    target, drafter = draw(pairs)
    context = draw(contexts(target.vocabulary, max_context))
    return target, drafter, context, draw(lookaheads(max_lookahead))


def _show(vocabulary: Vocabulary) -> str:
    options = "" if vocabulary.eos is None else f", eos={vocabulary.eos!r}"
    if vocabulary.normalise is not None:
        options += f", normalise={vocabulary.normalise.__qualname__}"
    return f"Vocabulary({list(vocabulary.tokens)}{options})"
