"""Tokenisation, expressibility, and what two vocabularies have in common."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.bugs import planted
from specref import Vocabulary
from specref.strategies import contexts, merge_spaces, vocabularies
from specref.theory import decompositions
from specref.vocabulary import (
    UntokenisableError,
    find_untokenisable,
    inexpressible,
    intersection,
    is_expressible,
    translate,
    union,
)

TEXTS = st.sampled_from(
    ["".join(word) for n in range(7) for word in itertools.product("ab", repeat=n)]
)
TWO = st.tuples(vocabularies(), vocabularies())
WORDS = Vocabulary(["a", "ab", "bc"])


def encode(vocabulary, text):
    return vocabulary.encode(text)


def reads_longest_first(encoder, vocabulary, text):
    """Every token is the longest that matches there; failure means that none matches."""
    try:
        tokens = encoder(vocabulary, text)
    except UntokenisableError:
        tokens, stuck = longest_matches(vocabulary, text)
        return stuck
    return (tokens, False) == longest_matches(vocabulary, text)


def longest_matches(vocabulary, text):
    """(tokens, whether some of the text is left that no token matches)."""
    tokens = ()
    while matching := [token for token in vocabulary.tokens if text.startswith(token)]:
        longest = max(matching, key=len)
        tokens, text = (*tokens, vocabulary.ids[longest]), text.removeprefix(longest)
    return tokens, bool(text)


@given(vocabularies(), TEXTS)
def test_encode_is_greedy_longest_match(vocabulary, text):
    assert reads_longest_first(encode, vocabulary, text)


def test_shortest_match_is_rejected(counterexample):
    def holds(case):
        return reads_longest_first(planted.shortest_match, *case)

    assert counterexample(st.tuples(vocabularies(), TEXTS), holds)


@given(vocabularies(complete=True), TEXTS)
def test_text_survives_the_round_trip(vocabulary, text):
    assert vocabulary.decode(vocabulary.encode(text)) == text


@given(vocabularies(complete=True).flatmap(lambda v: st.tuples(st.just(v), contexts(v, 4))))
def test_encoding_is_idempotent(case):
    vocabulary, tokens = case
    canonical = vocabulary.encode(vocabulary.decode(tokens))
    assert vocabulary.encode(vocabulary.decode(canonical)) == canonical


def test_tokens_do_not_survive_the_round_trip():
    vocabulary = Vocabulary(["a", "b", "ab"])
    assert vocabulary.encode(vocabulary.decode((0, 1))) == (2,)


@given(vocabularies(), TEXTS)
def test_text_is_undetermined_iff_a_longer_token_could_still_match(vocabulary, text):
    longer = [token for token in vocabulary.tokens if token.startswith(text) and token != text]
    assert vocabulary.is_undetermined(text) == bool(longer)


@given(vocabularies(complete=True), TEXTS, TEXTS)
def test_nothing_changes_the_first_token_of_a_determined_text(vocabulary, text, more):
    if not vocabulary.is_undetermined(text):
        assert vocabulary.encode(text)[0] == vocabulary.encode(text + more)[0]


@given(TWO)
def test_inexpressible_tokens_have_no_decomposition(both):
    source, vocabulary = both
    expected = [token for token in source.tokens if not decompositions(token, vocabulary)]
    assert list(inexpressible(source, vocabulary)) == expected


@given(vocabularies(), TEXTS)
def test_expressible_iff_decomposable(vocabulary, text):
    assert is_expressible(text, vocabulary) == bool(decompositions(text, vocabulary))


def is_tokenisable(vocabulary, text):
    return not longest_matches(vocabulary, text)[1]


def finds_shortest_failure(find, source, vocabulary, most=4):
    """Against all concatenations of up to four source tokens."""
    found = find(source, vocabulary)
    for count in range(1, most + 1):
        texts = map("".join, itertools.product(source.tokens, repeat=count))
        failing = [text for text in texts if not is_tokenisable(vocabulary, text)]
        if failing:
            return found in failing
    return found is None or not is_tokenisable(vocabulary, found)


@given(TWO)
def test_find_untokenisable(both):
    assert finds_shortest_failure(find_untokenisable, *both)


def test_expressible_is_not_enough(counterexample):
    def holds(both):
        return finds_shortest_failure(planted.first_inexpressible, *both)

    assert counterexample(TWO, holds)


def test_greedy_fails_on_text_that_is_expressible():
    assert is_expressible("abc", WORDS)
    assert find_untokenisable(WORDS, WORDS) == "abc"
    with pytest.raises(UntokenisableError, match=r"cannot tokenise 'abc': .* position 2 \('c'\)"):
        WORDS.encode("abc")


@given(vocabularies(), vocabularies(complete=True))
def test_all_single_characters_are_enough(source, vocabulary):
    assert find_untokenisable(source, vocabulary) is None


@given(TWO)
def test_intersection_pairs_ids_by_token_string(both):
    target, drafter = both
    shared = intersection(target, drafter)
    assert {drafter.tokens[d]: target.tokens[t] for d, t in shared.items()} == {
        token: token for token in set(target.tokens) & set(drafter.tokens)
    }


@given(vocabularies(eos=True), vocabularies())
def test_union_keeps_the_target_ids_and_eos(target, drafter):
    both = union(target, drafter)
    assert both.tokens[: len(target)] == target.tokens
    assert set(both.tokens) == {*target.tokens, *drafter.tokens}
    assert both.eos == target.eos


@given(vocabularies(), vocabularies(complete=True), st.data())
def test_translation_keeps_text_and_shared_tokens(source, vocabulary, data):
    tokens = data.draw(contexts(source, 4))
    translated = translate(tokens, source, vocabulary)
    assert vocabulary.decode(translated) == source.decode(tokens)
    shared = intersection(vocabulary, source)
    if all(token in shared for token in tokens):
        assert translated == tuple(shared[token] for token in tokens)


def test_translation_never_merges_tokens():
    assert translate((0, 1), Vocabulary("ab"), Vocabulary(["a", "b", "ab"])) == (0, 1)


def test_translation_names_the_token_it_cannot_spell():
    with pytest.raises(UntokenisableError, match="cannot tokenise 'c'"):
        translate((0, 1), Vocabulary("ac"), Vocabulary("ab"))


@pytest.mark.parametrize("token", [-1, 2])
def test_translation_checks_ids(token):
    with pytest.raises(ValueError, match="expected 0 <= id < 2"):
        translate((token,), Vocabulary("ab"), Vocabulary("ab"))


@pytest.mark.parametrize(
    ("normalise", "texts"), [(str.lower, ["aB", "AB"]), (merge_spaces, ["a  b", "a b"])]
)
def test_normalising_tokenisers_are_not_injective(normalise, texts):
    vocabulary = Vocabulary("ab ", normalise=normalise)
    one, other = map(vocabulary.encode, texts)
    assert one == other
    assert vocabulary.decode(one) == normalise(texts[0])


def test_find_untokenisable_reads_as_encode_does():
    folding = Vocabulary("a", normalise=str.lower)
    assert folding.encode("A") == (0,)
    assert find_untokenisable(Vocabulary("A"), folding) is None


def test_ends_only_with_eos():
    vocabulary = Vocabulary("ab$", eos="$")
    assert vocabulary.ends((0, 2))
    assert not any(vocabulary.ends(tokens) for tokens in [(), (2, 0), (1,)])
    assert not Vocabulary("ab$").ends((2,))


def test_bytes_and_text_agree():
    vocabulary = Vocabulary(["é", "€", "a"], eos="a")
    in_bytes = vocabulary.in_bytes()
    assert in_bytes.eos == b"a"
    assert in_bytes.encode("€aé".encode()) == vocabulary.encode("€aé") == (1, 2, 0)
    assert in_bytes.decode(()) == b""
    assert in_bytes.in_bytes() is in_bytes


def test_byte_vocabularies_may_cut_characters():
    halves = Vocabulary([bytes([byte]) for byte in "é".encode()])
    assert halves.decode(halves.encode("é".encode())).decode() == "é"


def test_normalising_vocabulary_has_no_byte_form():
    with pytest.raises(ValueError, match="a normalising vocabulary has no byte form"):
        Vocabulary("a", normalise=str.lower).in_bytes()


@pytest.mark.parametrize(
    ("tokens", "eos", "error", "message"),
    [
        ([], None, ValueError, "tokens is empty: expected at least one token"),
        (["a", ""], None, ValueError, r"tokens\[1\] = '': expected a non-empty token"),
        (["a", "b", "a"], None, ValueError, r"tokens\[2\] = 'a': already at index 0"),
        (["a", b"b"], None, TypeError, r"tokens\[1\] = b'b': expected str"),
        ([b"a", "b"], None, TypeError, r"tokens\[1\] = 'b': expected bytes"),
        ([0, 1], None, TypeError, r"tokens\[0\] = 0: expected str"),
        (["a"], "$", ValueError, r"eos = '\$': expected one of the tokens"),
    ],
)
def test_bad_vocabulary(tokens, eos, error, message):
    with pytest.raises(error, match=message):
        Vocabulary(tokens, eos)


@pytest.mark.parametrize("token", [-1, 2, 7])
def test_ids_out_of_range(token):
    with pytest.raises(ValueError, match=rf"tokens\[1\] = {token}: expected 0 <= id < 2"):
        Vocabulary("ab").decode((0, token))


def test_vocabularies_compare_by_value():
    assert Vocabulary("ab") == Vocabulary(["a", "b"])
    assert len({Vocabulary("ab"), Vocabulary("ab"), Vocabulary("ba"), Vocabulary("ab", "a")}) == 3
