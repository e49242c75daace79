"""Vocabularies: token strings (or byte strings), greedy tokenisation, and what two have in common.

Notation of Timor et al. 2025, section 3: T is the target's vocabulary, D the drafter's, and
T(s) the greedy longest-match tokenisation of a string s.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, TypeAlias, cast

Text: TypeAlias = str | bytes
Tokens: TypeAlias = tuple[int, ...]


class UntokenisableError(ValueError):
    """Greedy longest-match found no token for the rest of a string."""


@dataclass(frozen=True)
class Vocabulary:
    """Distinct, non-empty token strings with a greedy longest-match tokeniser.

    Parameters
    ----------
    tokens : iterable of str, or of bytes
        Token id i is the i-th entry.
    eos : str or bytes, optional
        The token that ends a text.
    normalise : callable, optional
        Applied to a text before it is tokenised. A tokeniser that lower-cases or merges
        spaces is not injective: different texts get the same ids.

    Raises
    ------
    TypeError
        A token is neither str nor bytes, or the kinds are mixed.
    ValueError
        A token is empty or repeated, there is none, or `eos` is not a token.

    Examples
    --------
    >>> vocabulary = Vocabulary(["a", "b", "ab"])
    >>> vocabulary.encode("aab")
    (0, 2)
    >>> vocabulary.decode((0, 2))
    'aab'
    """

    tokens: tuple[Text, ...]
    eos: Text | None = None
    normalise: Callable[[Any], Any] | None = None

    def __init__(
        self,
        tokens: Iterable[Text],
        eos: Text | None = None,
        normalise: Callable[[Any], Any] | None = None,
    ) -> None:
        object.__setattr__(self, "tokens", tuple(tokens))
        object.__setattr__(self, "eos", eos)
        object.__setattr__(self, "normalise", normalise)
        self._validate()

    def _validate(self) -> None:
        if not self.tokens:
            raise ValueError("tokens is empty: expected at least one token")
        kind = bytes if isinstance(self.tokens[0], bytes) else str
        seen: dict[Text, int] = {}
        for index, token in enumerate(self.tokens):
            if not isinstance(token, kind):
                raise TypeError(f"tokens[{index}] = {token!r}: expected {kind.__name__}")
            if not token:
                raise ValueError(f"tokens[{index}] = {token!r}: expected a non-empty token")
            if token in seen:
                raise ValueError(f"tokens[{index}] = {token!r}: already at index {seen[token]}")
            seen[token] = index
        if self.eos is not None and self.eos not in seen:
            raise ValueError(f"eos = {self.eos!r}: expected one of the tokens")

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def ids(self) -> dict[Text, int]:
        """{token string: token id}."""
        return {token: index for index, token in enumerate(self.tokens)}

    @cached_property
    def longest(self) -> int:
        """The length of the longest token."""
        return max(map(len, self.tokens))

    @cached_property
    def proper_prefixes(self) -> frozenset[Text]:
        """Every string that a longer token starts with, the empty string included."""
        return frozenset(token[:cut] for token in self.tokens for cut in range(len(token)))

    def encode(self, text: Text) -> Tokens:
        """Tokenise by greedy longest match: T(s).

        Raises
        ------
        UntokenisableError
            At some position no token matches.
        """
        text = self.normalised(text)
        encoded: list[int] = []
        position = 0
        while position < len(text):
            token = self._longest_match(text, position)
            encoded.append(self.ids[token])
            position += len(token)
        return tuple(encoded)

    def normalised(self, text: Text) -> Text:
        """The text as the tokeniser reads it."""
        return text if self.normalise is None else cast(Text, self.normalise(text))

    def first_token(self, text: Text) -> int:
        """T(text)_1, also where the rest of the text cannot be tokenised.

        Raises
        ------
        UntokenisableError
            No token starts the text.
        """
        return self.ids[self._longest_match(self.normalised(text), 0)]

    def _longest_match(self, text: Text, position: int) -> Text:
        for length in range(min(self.longest, len(text) - position), 0, -1):
            if text[position : position + length] in self.ids:
                return text[position : position + length]
        raise UntokenisableError(
            f"cannot tokenise {text!r}: no token matches at position {position} "
            f"({text[position : position + 1]!r})"
        )

    def decode(self, tokens: Sequence[int]) -> Text:
        """Concatenate token strings.

        Raises
        ------
        ValueError
            A token id is out of range.
        """
        self.check(tokens)
        empty = cast(Any, self.tokens[0][:0])
        return cast(Text, empty.join(self.tokens[token] for token in tokens))

    def check(self, tokens: Sequence[int], name: str = "tokens") -> None:
        """Raise `TypeError` unless tokens are integers, `ValueError` unless they are in range."""
        size = len(self)
        for index, token in enumerate(tokens):
            if type(token) is not int and (
                not isinstance(token, Integral) or isinstance(token, bool)
            ):
                raise TypeError(f"{name}[{index}] = {token!r}: expected a token id")
            if not 0 <= token < size:
                raise ValueError(f"{name}[{index}] = {token}: expected 0 <= id < {size}")

    def is_undetermined(self, text: Text) -> bool:
        """Whether what follows can still change the first token of T(text + …).

        With `normalise` this takes for granted that normalising a longer text only makes its
        result longer.
        """
        return self.normalised(text) in self.proper_prefixes

    def ends(self, tokens: Sequence[int]) -> bool:
        """Whether a token sequence ends with EOS."""
        return self.eos is not None and tuple(tokens[-1:]) == (self.ids[self.eos],)

    def in_bytes(self) -> "Vocabulary":
        """The same vocabulary over UTF-8 bytes, to meet byte-level draft models.

        Examples
        --------
        >>> Vocabulary(["é"]).in_bytes().tokens
        (b'\\xc3\\xa9',)
        """
        if isinstance(self.tokens[0], bytes):
            return self
        if self.normalise is not None:
            raise ValueError("normalise acts on str: a normalising vocabulary has no byte form")
        encoded = [cast(str, token).encode() for token in self.tokens]
        eos = None if self.eos is None else cast(str, self.eos).encode()
        return Vocabulary(encoded, eos)


def inexpressible(source: Vocabulary, vocabulary: Vocabulary) -> tuple[Text, ...]:
    """The tokens of `source` that are no concatenation of tokens of `vocabulary`.

    Empty means `source ->> vocabulary*` in the notation of Timor et al. 2025, section 3;
    equivalently, every concatenation of `source` tokens is one of `vocabulary` tokens.

    Examples
    --------
    >>> inexpressible(Vocabulary(["ab", "c"]), Vocabulary(["a", "b"]))
    ('c',)
    """
    return tuple(token for token in source.tokens if not is_expressible(token, vocabulary))


def is_expressible(text: Text, vocabulary: Vocabulary) -> bool:
    """Whether some concatenation of tokens spells `text` (greedy or not)."""
    spelled = {0}
    for end in range(1, len(text) + 1):
        if any(text[start:end] in vocabulary.ids for start in spelled):
            spelled.add(end)
    return len(text) in spelled


def find_untokenisable(source: Vocabulary, vocabulary: Vocabulary) -> Text | None:
    """A shortest concatenation of `source` tokens on which greedy tokenisation gets stuck.

    Expressibility is not enough: with T = D = {a, ab, bc} greedy reads "abc" as "ab" and is
    stuck at "c". None means that greedy tokenisation never fails on drafts from `source`.

    Examples
    --------
    >>> words = Vocabulary(["a", "ab", "bc"])
    >>> find_untokenisable(words, words)
    'abc'
    """
    # What greedy has not yet decided is a proper prefix of a token: finitely many remainders.
    empty = source.tokens[0][:0]
    shortest = {empty: empty}
    queue = [empty]
    for remainder in queue:
        for token in source.tokens:
            text = cast(Text, cast(Any, shortest[remainder]) + token)
            rest = _undecided(cast(Any, remainder) + token, vocabulary)
            if rest is None:
                return text
            if rest not in shortest:
                shortest[rest] = text
                queue.append(rest)
    return None


def _undecided(text: Text, vocabulary: Vocabulary) -> Text | None:
    """What greedy has not yet decided of a text; None if it gets stuck in it, or at its end."""
    try:
        text = vocabulary.normalised(text)
        while not vocabulary.is_undetermined(text):
            text = text[len(vocabulary._longest_match(text, 0)) :]
        vocabulary.encode(text)
    except UntokenisableError:
        return None
    return text


def intersection(target: Vocabulary, drafter: Vocabulary) -> dict[int, int]:
    """The tokens that both have, by token string: {drafter id: target id}.

    Examples
    --------
    >>> intersection(Vocabulary(["a", "b"]), Vocabulary(["b", "x", "a"]))
    {0: 1, 2: 0}
    """
    return {
        index: target.ids[token]
        for index, token in enumerate(drafter.tokens)
        if token in target.ids
    }


def translate(tokens: Sequence[int], source: Vocabulary, vocabulary: Vocabulary) -> Tokens:
    """Token by token into another vocabulary; what it lacks is tokenised by its text.

    * raises `ValueError`: A token id is out of range of `source`.
    * raises `UntokenisableError`: A token is neither in `vocabulary` nor a concatenation that
      greedy finds there.

    Examples
    --------
    >>> translate((1, 0), Vocabulary(["ab", "a"]), Vocabulary(["b", "a"]))
    (1, 1, 0)
    """
    source.check(tokens)
    translated: Tokens = ()
    for token in tokens:
        text = source.tokens[token]
        translated += (
            (vocabulary.ids[text],) if text in vocabulary.ids else vocabulary.encode(text)
        )
    return translated


def union(target: Vocabulary, drafter: Vocabulary) -> Vocabulary:
    """All tokens of both, the target's first.

    Examples
    --------
    >>> union(Vocabulary(["a", "b"]), Vocabulary(["b", "x"])).tokens
    ('a', 'b', 'x')
    """
    extra = [token for token in drafter.tokens if token not in target.ids]
    return Vocabulary((*target.tokens, *extra), target.eos)
