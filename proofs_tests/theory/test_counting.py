"""Counts of decompositions, against listing them."""

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref import Vocabulary
from specref.strategies import vocabularies
from specref.theory import decompositions, n_max, spellings
from specref.vocabulary import Text, UntokenisableError

Figures = tuple[int, int, int]


def texts(longest: int = 7) -> st.SearchStrategy[str]:
    return st.text("ab", max_size=longest)


CASES = st.tuples(texts(), vocabularies(max_tokens=6))


def counted(text: Text, vocabulary: Vocabulary) -> Figures:
    found = spellings(text, vocabulary)
    return found.count, found.forwards, found.n_max


def listed(text: Text, vocabulary: Vocabulary) -> Figures:
    """The same from the list: its length, the distinct proper prefixes, the longest."""
    found = decompositions(text, vocabulary)
    inner = {tokens[:cut] for tokens in found for cut in range(len(tokens))}
    return len(found), len(inner), max(map(len, found), default=0)


@given(CASES)
def test_counts_are_those_of_the_list(case) -> None:
    text, vocabulary = case
    assert counted(text, vocabulary) == listed(text, vocabulary)
    assert counted(text.encode(), vocabulary.in_bytes()) == counted(text, vocabulary)


@given(CASES)
def test_before_and_after_are_counts_of_the_parts(case) -> None:
    text, vocabulary = case
    found = spellings(text, vocabulary)
    for place, count in enumerate(found.before):
        assert count == len(decompositions(text[:place], vocabulary))
        if count:
            assert found.after[place] == len(decompositions(text[place:], vocabulary))


def arcs(text: str, vocabulary: Vocabulary, beyond: int = 1) -> Iterator[tuple[int, int]]:
    for start in range(len(text)):
        for end in range(start + 1, min(start + vocabulary.longest, len(text)) + beyond):
            if text[start:end] in vocabulary.ids:
                yield start, end


def ways(text: str, vocabulary: Vocabulary, beyond: int = 1) -> list[int]:
    """The dynamic programme once more; right with `beyond` = 1."""
    before = [1] + [0] * len(text)
    for start, end in arcs(text, vocabulary, beyond):
        before[end] += before[start]
    return before


def stops_one_early(text: str, vocabulary: Vocabulary) -> Figures:
    _, forwards, most = counted(text, vocabulary)
    return ways(text, vocabulary, beyond=0)[-1], forwards, most


def counts_starts_with(text: str, vocabulary: Vocabulary) -> Figures:
    """Lemma 3.1 as printed: drafts whose concatenation *starts with* the text."""
    count, forwards, most = counted(text, vocabulary)
    beyond = sum(
        before * sum(len(t) > len(text) - i and t.startswith(text[i:]) for t in vocabulary.tokens)
        for i, before in enumerate(ways(text, vocabulary)[:-1])
    )
    return count + beyond, forwards, most


def reads_dead_ends(text: str, vocabulary: Vocabulary) -> Figures:
    count, _, most = counted(text, vocabulary)
    return count, sum(ways(text, vocabulary)[:-1]), most


def forgets_the_root(text: str, vocabulary: Vocabulary) -> Figures:
    count, forwards, most = counted(text, vocabulary)
    return count, forwards - 1, most


def forwards_once_per_position(text: str, vocabulary: Vocabulary) -> Figures:
    count, _, most = counted(text, vocabulary)
    found = spellings(text, vocabulary)
    inner = zip(found.before[:-1], found.after, strict=False)
    return count, sum(bool(b and a) for b, a in inner), most


def n_max_is_the_length(text: str, vocabulary: Vocabulary) -> Figures:
    return (*counted(text, vocabulary)[:2], len(text))


@pytest.mark.parametrize(
    "wrong",
    [
        stops_one_early,
        counts_starts_with,
        reads_dead_ends,
        forgets_the_root,
        forwards_once_per_position,
        n_max_is_the_length,
    ],
    ids=lambda wrong: wrong.__name__,
)
def test_wrong_counts_are_rejected(wrong: Callable[..., Figures], counterexample) -> None:
    assert counterexample(CASES, lambda case: wrong(*case) == listed(*case))


@given(CASES)
def test_the_copy_with_the_holes_is_right_without_bugs(case) -> None:
    assert ways(*case)[-1] == listed(*case)[0]


def test_hello_has_14_of_16_without_llo_and_16_forwards() -> None:
    pieces = dict.fromkeys("hello"[i:j] for i in range(5) for j in range(i + 1, 6))
    assert counted("hello", Vocabulary(pieces)) == (16, 16, 5)
    without = Vocabulary([piece for piece in pieces if piece != "llo"])
    assert counted("hello", without) == (14, 16, 5)


@pytest.mark.parametrize("length", range(1, 9))
def test_complete_vocabularies_have_powers_of_two(length: int) -> None:
    complete = Vocabulary(["a" * n for n in range(1, length + 1)])
    for m in range(1, length + 1):
        assert counted("a" * m, complete) == (2 ** (m - 1), 2 ** (m - 1), m)


def test_what_cannot_be_listed_is_counted_exactly() -> None:
    spaces = Vocabulary([b" " * length for length in range(1, 129)])
    assert counted(b" " * 128, spaces) == (2**127, 2**127, 128)
    long = spellings("ab" * 5000, Vocabulary(["a", "b", "ab"]))
    assert (long.count, long.n_max) == (2**5000, 10_000)


def test_random_tokens_of_a_random_vocabulary() -> None:
    rng = random.Random(7)
    words = ["".join(rng.choices("abc", k=rng.randint(1, 8))) for _ in range(400)]
    vocabulary = Vocabulary(dict.fromkeys([*"abc", *words]))
    for token in rng.sample(vocabulary.tokens, 100):
        assert counted(token, vocabulary) == listed(token, vocabulary)


TOKENS = st.tuples(st.text("ab", min_size=1, max_size=6), vocabularies(max_tokens=6))


def is_at_most_n_max_of_pairs(case) -> bool:
    token, drafter = case
    return spellings(token, drafter).n_max <= n_max(Vocabulary([token]), drafter)


@given(TOKENS)
def test_n_max_of_a_token_is_at_most_that_of_a_pair(case) -> None:
    assert is_at_most_n_max_of_pairs(case)


def test_they_are_not_the_same(counterexample) -> None:
    def same(case) -> bool:
        return spellings(case[0], case[1]).n_max == n_max(Vocabulary([case[0]]), case[1])

    assert counterexample(TOKENS, same)


def test_the_empty_text_has_one_decomposition() -> None:
    assert counted("", Vocabulary("ab")) == listed("", Vocabulary("ab")) == (1, 0, 0)


def test_another_kind_of_text_is_named() -> None:
    with pytest.raises(TypeError, match=r"text = b'a': expected str, as the tokens are"):
        spellings(b"a", Vocabulary("a"))
    with pytest.raises(TypeError, match=r"text = 'a': expected bytes"):
        spellings("a", Vocabulary("a").in_bytes())


@given(CASES)
def test_check_raises_where_there_is_none(case) -> None:
    found = spellings(*case)
    if found.count:
        found.check()
    else:
        with pytest.raises(UntokenisableError, match=r"cannot spell .* and no further"):
            found.check()
