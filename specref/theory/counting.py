"""Decompositions, the ways to spell a text with tokens: listed, and counted without listing.

The spellings of a text are the paths of an acyclic graph: its nodes are the positions, its arcs
the tokens. A list of them is as long as they are many, 2^127 for a run of 128 spaces under a
real vocabulary; sums over the graph are short: length x longest token steps, exact integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from specref.vocabulary import Text, Tokens, UntokenisableError, Vocabulary


@dataclass(frozen=True)
class Spellings:
    """The token sequences that spell a text, as a graph: made by `spellings`.

    Parameters
    ----------
    text : str or bytes
    ends : sequence of sequence of int
        For each position but the last, where the tokens end that start there; none where no
        token sequence arrives.
    before : sequence of int
        For each position, how many token sequences spell what is before it.

    Examples
    --------
    >>> found = spellings("abb", Vocabulary(["a", "b", "ab", "bb"]))
    >>> found.count, found.forwards, found.n_max
    (3, 4, 3)
    """

    text: Text
    ends: Sequence[Sequence[int]]
    before: Sequence[int]

    @property
    def count(self) -> int:
        """How many there are: the decompositions of Timor et al. 2025, Lemma 3.1."""
        return self.before[-1]

    @cached_property
    def after(self) -> Sequence[int]:
        """For each position that is reached, how many token sequences spell the rest."""
        counts = [0] * len(self.text) + [1]
        for start in range(len(self.text) - 1, -1, -1):
            for end in self.ends[start]:
                counts[start] += counts[end]
        return counts

    @property
    def forwards(self) -> int:
        """At how many contexts the draft model is asked, for all their masses.

        The inner nodes of the tree of decompositions, the root among them: the token sequences
        that are a proper prefix of a spelling. All are known beforehand, so that one forward
        with tree attention reads them together.
        """
        inner = zip(self.before[:-1], self.after, strict=False)
        return sum([count for count, rest in inner if rest])

    @property
    def n_max(self) -> int:
        """The most tokens that one of them has, 0 if there is none.

        At most `specref.theory.n_max` of a target with this one token: that also counts drafts
        that go on beyond the text.
        """
        most = [0] + [-1] * len(self.text)
        for start, ends in enumerate(self.ends):
            for end in ends:
                most[end] = max(most[end], most[start] + 1)
        return max(0, most[-1])

    def check(self) -> None:
        """Raise unless there is one.

        Raises
        ------
        UntokenisableError
            Names the longest start of the text that tokens spell.

        Examples
        --------
        >>> spellings("abc", Vocabulary(["a", "b", "bc!"])).check()
        Traceback (most recent call last):
        UntokenisableError: cannot spell 'abc': tokens spell 'ab' and no further
        """
        if not self.count:
            reached = max(place for place, count in enumerate(self.before) if count)
            raise UntokenisableError(
                f"cannot spell {self.text!r}: tokens spell {self.text[:reached]!r} and no further"
            )


def spellings(text: Text, vocabulary: Vocabulary) -> Spellings:
    """The decompositions of a text as a graph; `decompositions` lists them.

    It takes time in proportion to the length of the text times that of the longest token. As in
    `decompositions`, the vocabulary's `normalise` and EOS play no part.

    Parameters
    ----------
    text : str or bytes
        Of the tokens' own kind. The empty text has one decomposition, of no tokens.
    vocabulary : Vocabulary

    Raises
    ------
    TypeError
        The text is of another kind than the tokens.

    Examples
    --------
    >>> spaces = Vocabulary([" " * length for length in range(1, 129)])
    >>> spellings(" " * 128, spaces).count == 2**127
    True
    """
    kind = bytes if isinstance(vocabulary.tokens[0], bytes) else str
    if not isinstance(text, kind):
        raise TypeError(f"text = {text!r}: expected {kind.__name__}, as the tokens are")
    tokens, longest, positions = vocabulary.ids, vocabulary.longest, range(len(text) + 1)
    before, ends = [1] + [0] * len(text), []
    for start in positions[:-1]:
        found: list[int] = []
        if ways := before[start]:
            for end in positions[start + 1 : start + longest + 1]:
                if text[start:end] in tokens:
                    before[end] += ways
                    found.append(end)
        ends.append(found)
    return Spellings(text, ends, before)


def decompositions(text: Text, vocabulary: Vocabulary) -> tuple[Tokens, ...]:
    """Every token sequence whose concatenation equals `text`.

    Timor et al. 2025, Lemma 3.1, counts these ("equals", not "starts with", is what its
    number 2^(m-1) is true for). Their mass is not psi: see `specref.theory.psi`.

    Returns
    -------
    tuple of tuple of int
        In lexicographic order of the cuts; the empty text has one decomposition, ``()``.

    Examples
    --------
    >>> decompositions("abb", Vocabulary(["a", "b", "ab", "bb"]))
    ((0, 1, 1), (0, 3), (2, 1))
    """
    if not text:
        return ((),)
    found: list[Tokens] = []
    for cut in range(1, min(vocabulary.longest, len(text)) + 1):
        if text[:cut] in vocabulary.ids:
            head = vocabulary.ids[text[:cut]]
            found += [(head, *tail) for tail in decompositions(text[cut:], vocabulary)]
    return tuple(found)
