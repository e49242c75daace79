"""psi, lookahead rules, n_max and decompositions against brute force."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.bugs import planted
from specref import Vocabulary, exact_distribution
from specref.algorithms import slem
from specref.distributions import as_distribution
from specref.models import iid_model
from specref.strategies import (
    contexts,
    distributions,
    heterogeneous_pairs,
    lookaheads,
    non_injective_pairs,
    vocabularies,
)
from specref.theory import (
    at_most_n_max,
    conditional_psi,
    decompositions,
    fixed,
    n_max,
    proposals,
    psi,
    psi_iid,
    until_determined,
)
from specref.vocabulary import UntokenisableError

HELLO = Vocabulary(["hello_", "world", "wo", "rld"])
HELLO_WORLD = Vocabulary([*HELLO.tokens, "hello_world"])
RULES = st.sampled_from([fixed, until_determined, at_most_n_max])
COMPLETE = vocabularies(max_tokens=5, complete=True)


@st.composite
def draftings(draw, pairs):
    """(target vocabulary, drafter, drafter context, lookahead)."""
    target, drafter = draw(pairs)
    context = draw(contexts(drafter.vocabulary))
    return target.vocabulary, drafter, context, draw(lookaheads())


STRINGS = draftings(heterogeneous_pairs())


def drafted(vocabulary, drafter, context, lookahead, rule=fixed):
    """The law of the proposal, from every path of the drafting program itself."""
    stop = rule(vocabulary, drafter.vocabulary, lookahead)
    return exact_distribution(
        lambda chance: vocabulary.encode(
            drafter.vocabulary.decode(slem.draft(drafter, context, stop, chance))
        )
    )


def push_forward(law, size, prefix=()):
    """P(next token | the proposal starts with the prefix), from the law of proposals."""
    started = {t: w for t, w in law.items() if t[: len(prefix)] == prefix}
    row = [Fraction(0)] * size
    for tokens, weight in started.items():
        if len(tokens) > len(prefix):
            row[tokens[len(prefix)]] += weight / sum(started.values())
    return row


def is_push_forward(law, case):
    return list(law(*case)) == push_forward(drafted(*case), len(case[0]))


@given(STRINGS, RULES)
def test_proposals_and_conditional_psi_are_the_push_forward(case, rule):
    law = drafted(*case, rule)
    assert proposals(*case, rule) == law
    rows = conditional_psi(*case, rule)
    assert rows.keys() == {t[:length] for t in law for length in range(len(t) + 1)}
    for prefix, row in rows.items():
        assert list(row) == push_forward(law, len(case[0]), prefix)


@given(STRINGS | draftings(non_injective_pairs()))
def test_psi_is_the_push_forward(case):
    assert is_push_forward(psi, case)
    assert psi(*case).sum() == (case[3] > 0)


@pytest.mark.parametrize("name", ["psi_by_decompositions", "psi_of_fixed_q"])
def test_wrong_psi_is_rejected(name, counterexample):
    assert counterexample(STRINGS, lambda case: is_push_forward(getattr(planted, name), case))


def test_psi_that_forgets_the_context_is_rejected(counterexample):
    def holds(case):
        return planted.proposals_forgetting_context(*case) == drafted(*case)

    assert counterexample(STRINGS, holds)


@st.composite
def iid_draftings(draw):
    target, drafter = draw(COMPLETE), draw(COMPLETE)
    return target, drafter, draw(distributions(len(drafter))), draw(lookaheads(4))


def psi_iid_is_psi(law, case):
    vocabulary, drafter, q, lookahead = case
    return list(law(*case)) == list(psi(vocabulary, iid_model(drafter, q), (), lookahead))


@given(iid_draftings())
def test_psi_iid_is_psi_of_a_drafter_without_context(case):
    assert psi_iid_is_psi(psi_iid, case)


def test_sum_over_decompositions_is_not_psi_iid(counterexample):
    def law(vocabulary, drafter, q, lookahead):
        return planted.psi_by_decompositions(vocabulary, iid_model(drafter, q))

    assert counterexample(iid_draftings(), lambda case: psi_iid_is_psi(law, case))


def test_psi_iid_stops_at_eos():
    target, drafter = Vocabulary(["$", "a", "$a"]), Vocabulary(["$", "a"], eos="$")
    assert psi_iid_is_psi(psi_iid, (target, drafter, as_distribution(["1/2", "1/2"]), 2))


def test_psi_iid_is_fast_where_enumeration_is_not():
    powers = Vocabulary(["a" * length for length in range(1, 41)])
    law = psi_iid(powers, Vocabulary(["a", "aa", "aaa"]), as_distribution(["1/3"] * 3), 40)
    assert list(law) == [0] * 39 + [1]


def rule_keeps_psi(rule, case):
    return list(psi(*case, rule)) == list(psi(*case))


@given(STRINGS)
def test_stopping_when_the_first_token_is_determined_keeps_psi(case):
    assert rule_keeps_psi(until_determined, case)
    assert rule_keeps_psi(at_most_n_max, case)


def test_a_normalising_tokeniser_is_not_determined_too_early():
    target = Vocabulary(["a", "aa"], normalise=str.lower)
    drafter = iid_model(Vocabulary("A"), [1])
    assert rule_keeps_psi(until_determined, (target, drafter, (), 2))


def test_stopping_earlier_changes_psi(counterexample):
    assert counterexample(STRINGS, lambda case: rule_keeps_psi(planted.stop_at_first_draft, case))


@pytest.mark.parametrize(("extra", "expected"), [("", 3), ("world", 6), ("hello_wrd", 11)])
def test_n_max_of_hello_world(extra, expected):
    assert n_max(HELLO_WORLD, Vocabulary(dict.fromkeys([*HELLO.tokens, *extra]))) == expected


def longest_undetermined_draft(target, drafter):
    """The most drafts whose text is a proper prefix of a target token, by trying them all."""
    most, undetermined = 0, {""}
    while undetermined:
        longer = {text + token for text in undetermined for token in drafter.tokens}
        undetermined = {text for text in longer if target.is_undetermined(text)}
        most += bool(undetermined)
    return most


def n_max_is_right(formula, target, drafter):
    return formula(target, drafter) == 1 + longest_undetermined_draft(target, drafter)


ANY_TWO = st.tuples(vocabularies(), vocabularies())


@given(ANY_TWO)
def test_n_max_is_one_more_than_the_longest_undetermined_draft(both):
    assert n_max_is_right(n_max, *both)
    assert n_max(*both) <= both[0].longest


def test_longest_token_is_not_n_max(counterexample):
    def formula(target, drafter):
        return target.longest

    assert counterexample(ANY_TWO, lambda both: n_max_is_right(formula, *both))


def enough(lookahead, case):
    """Whether drafting one more than `lookahead` would leave psi as it is."""
    vocabulary, drafter, context, _ = case
    fewer, more = (psi(vocabulary, drafter, context, n) for n in (lookahead, lookahead + 1))
    return list(fewer) == list(more)


@given(STRINGS)
def test_more_than_n_max_drafts_change_nothing(case):
    assert enough(n_max(case[0], case[1].vocabulary), case)


def test_fewer_than_n_max_drafts_are_not_enough(counterexample):
    def holds(case):
        n = n_max(case[0], case[1].vocabulary)
        return n < 2 or enough(n - 1, case)

    assert counterexample(STRINGS, holds)


def all_words(alphabet, length):
    lengths = range(1, length + 1)
    return ["".join(word) for n in lengths for word in itertools.product(alphabet, repeat=n)]


@pytest.mark.parametrize("length", range(1, 7))
def test_complete_vocabulary_has_a_power_of_two_of_decompositions(length):
    complete = Vocabulary(all_words("ab", length))
    for text in all_words("ab", length):
        assert len(decompositions(text, complete)) == 2 ** (len(text) - 1)


def test_hello_has_14_of_16_decompositions_without_llo():
    cuts = itertools.combinations(range(6), 2)
    pieces = dict.fromkeys("hello"[start:end] for start, end in cuts)
    assert len(decompositions("hello", Vocabulary(pieces))) == 16
    without = Vocabulary([piece for piece in pieces if piece != "llo"])
    assert len(decompositions("hello", without)) == 14


def spells_all(decompose, text, vocabulary):
    """Whether these are all token sequences that spell the text, each once."""
    sequences = itertools.chain.from_iterable(
        itertools.product(range(len(vocabulary)), repeat=n) for n in range(len(text) + 1)
    )
    expected = [tokens for tokens in sequences if vocabulary.decode(tokens) == text]
    return sorted(decompose(text, vocabulary)) == sorted(expected)


TEXTS = st.sampled_from(["", *all_words("ab", 5)])


@given(TEXTS, vocabularies())
def test_decompositions_are_all_spellings(text, vocabulary):
    assert spells_all(decompositions, text, vocabulary)
    assert len(decompositions(text, vocabulary)) <= 2 ** max(0, len(text) - 1)


def test_greedy_spelling_is_not_all_of_them(counterexample):
    def holds(case):
        return spells_all(planted.greedy_decomposition, *case)

    assert counterexample(st.tuples(TEXTS, COMPLETE), holds)


@pytest.mark.parametrize("rule", [fixed, until_determined, at_most_n_max])
@pytest.mark.parametrize("lookahead", [-1, 1.0, True, "1"])
def test_lookahead_must_be_a_natural_number(rule, lookahead):
    with pytest.raises(ValueError, match=r"lookahead = .*: expected an integer >= 0"):
        rule(HELLO_WORLD, HELLO, lookahead)


def test_prefixes_of_a_normalising_tokeniser_determine_nothing():
    folding = Vocabulary("ab", normalise=str.lower)
    with pytest.raises(ValueError, match="n_max needs a target vocabulary without normalise"):
        n_max(folding, HELLO)
    with pytest.raises(ValueError, match="psi_iid needs a target vocabulary without normalise"):
        psi_iid(folding, Vocabulary("A"), as_distribution([1]), 1)


def test_psi_names_the_draft_that_the_target_cannot_read():
    with pytest.raises(UntokenisableError, match=r"cannot tokenise 'bb': no token .* position 0"):
        psi(Vocabulary("a"), iid_model(Vocabulary("ab"), [0, 1]), (), 2)
