"""Learning-free drafts: tables from a model, matches in the context, mixtures, measurements."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.ngrams import emitted_by_calls
from specref import Replayed, Vocabulary
from specref.algorithms import ngrams
from specref.algorithms.ngrams.drafts import (
    as_table,
    context_drafts,
    mixed_drafts,
    ranked,
    table_drafts,
    unigram_drafts,
)
from specref.algorithms.ngrams.tables import (
    bigram_rows,
    bigrams,
    extended,
    extended_by_model,
    unigrams,
    unigrams_as_printed,
)
from specref.models import hashed_model, iid_model, markov_model, ngram_model

THREE = Vocabulary("abc")
TEXTS = st.lists(st.integers(0, 2), max_size=12).map(tuple)


def counted(context, query, lookahead):
    """Continuations of the last tokens, as [(length, count, last position, tokens)]."""
    found = {}
    for end in range(query, len(context)):
        if context[end - query : end] == context[len(context) - query :]:
            found.setdefault(context[end : end + lookahead], []).append(end)
    return [(len(tokens), len(ends), max(ends), tokens) for tokens, ends in found.items()]


@given(TEXTS, st.integers(1, 3), st.integers(1, 3))
def test_context_drafts_are_ranked_by_count_then_recency(context, query, lookahead):
    """Whole ones first; no continuation is left out."""
    drafts = context_drafts(query)(context, lookahead)
    ranking = sorted(counted(context, query, lookahead), reverse=True)
    assert drafts == tuple(tokens for *_, tokens in ranking)


@pytest.mark.parametrize(
    ("context", "query", "lookahead", "drafts"),
    [
        ((7, 5, 7, 1, 7, 3, 7), 1, 1, ((3,), (1,), (5,))),  # seen once each: the last first
        ((7, 5, 7, 1, 7, 5, 7, 1, 7, 3, 7), 1, 1, ((1,), (5,), (3,))),  # twice before once
        ((1, 2, 3, 1, 2), 2, 5, ((3, 1, 2),)),  # cut short by the end of the context
        ((4, 4, 4), 1, 2, ((4, 4), (4,))),  # the match may overlap its continuation
        ((1, 2, 3), 1, 2, ()),  # no earlier occurrence
        ((1, 2), 2, 1, ()),  # the query is the context
        ((1, 2), 3, 1, ()),  # longer than the context
        ((), 1, 1, ()),
    ],
)
def test_context_drafts_by_example(context, query, lookahead, drafts):
    assert context_drafts(query)(context, lookahead) == drafts


def test_oldest_first_would_be_noticed():
    """Ties by first occurrence, or by token, give another order."""
    context = (7, 5, 7, 1, 7, 3, 7)
    by_token = sorted(counted(context, 1, 1), key=lambda found: (-found[1], found[3]))
    by_age = sorted(counted(context, 1, 1), key=lambda found: (-found[1], found[2]))
    drafts = context_drafts(1)(context, 1)
    assert drafts != tuple(tokens for *_, tokens in by_token)
    assert drafts != tuple(tokens for *_, tokens in by_age)


def test_bigrams_are_the_likeliest_next_tokens():
    """Of a model that looks at more than one token: p(. | x) is that of x alone."""
    model = ngram_model(
        THREE, 2, {(0,): ["1/4", "1/4", "1/2"], (1, 0): [1, 0, 0]}, [0, "1/2", "1/2"]
    )
    assert bigrams(bigram_rows(model), 3).tolist() == [[2, 0, 1], [1, 2, 0], [1, 2, 0]]
    assert bigrams(bigram_rows(model), 1).shape == (3, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, object])
def test_ties_go_to_the_lower_id_for_every_dtype(dtype):
    rows = np.array([[1, 3, 3], [2, 2, 2], [0, 1, 0]], dtype=dtype)
    assert bigrams(rows, 3).tolist() == [[1, 2, 0], [0, 1, 2], [1, 0, 2]]
    many = np.arange(400).reshape(20, 20).T % 3
    ranking = [sorted(range(20), key=lambda token: -row[token]) for row in many.tolist()]
    assert bigrams(many.astype(dtype), 20).tolist() == ranking


def test_logits_rank_as_probabilities_do():
    rows = np.random.default_rng(5).normal(size=(6, 6))
    rows[2, 3] = -np.inf
    likely = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
    assert (bigrams(rows, 6) == bigrams(likely, 6)).all()


@given(st.integers(0, 999), st.integers(1, 3), st.integers(1, 4))
def test_extended_bigrams_follow_the_bigrams(key, drafts, lookahead):
    """First a bigram, then the likeliest bigram of each drafted token."""
    model = hashed_model(THREE, f"extended {key}")
    table = bigrams(bigram_rows(model), drafts)
    longer = extended(table, lookahead)
    assert longer.shape == (3, drafts, lookahead)
    assert (longer[:, :, 0] == table).all()
    for draft in longer.reshape(-1, lookahead).tolist():
        assert all(best == table[last, 0] for last, best in itertools.pairwise(draft))


def test_extension_by_the_model_sees_the_whole_draft():
    """Equal to the extension by bigrams for a first-order model, not for a second-order one."""
    rows = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    first = markov_model(THREE, [1, 0, 0], rows)
    table = bigrams(bigram_rows(first), 2)
    assert (extended_by_model(first, table, 3) == extended(table, 3)).all()
    after = {(0,): rows[0], (1,): rows[1], (2,): rows[2], (0, 1): [1, 0, 0]}
    second = ngram_model(THREE, 2, after, [0, 0, 1])
    assert extended(table, 3)[0, 0].tolist() == [1, 2, 0]
    assert extended_by_model(second, table, 3)[0, 0].tolist() == [1, 0, 2]


SMALL = st.integers(-3, 3)
UNIT = [(3, 4), (-3, 4), (4, 3), (0, 5), (5, 0), (-4, -3), (0, -5), (-5, 0)]


@given(st.lists(st.sampled_from(UNIT), min_size=2, max_size=8, unique=True))
def test_unigrams_of_equal_norm_are_printed_in_the_reverse_order(outputs):
    """|u| = 5 and C = 25 I: distances and "dists" rank the outputs oppositely, exactly."""
    u = np.array(outputs, dtype=object) * Fraction(1)
    assert all((row * row).sum() == 25 for row in u)
    dists = u @ u.mean(axis=0)
    stated = unigrams(np.eye(2, dtype=int) * 5, u, len(u))
    printed = unigrams_as_printed(np.eye(2, dtype=int) * 5, u, len(u))
    assert all(a >= b for a, b in itertools.pairwise(dists[stated]))
    assert all(a <= b for a, b in itertools.pairwise(dists[printed]))
    if len(set(dists)) == len(u):
        assert stated.tolist() == printed.tolist()[::-1]


@given(
    st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=5),
    st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=5),
)
def test_unigram_distance_by_definition(inputs, outputs):
    """The distance of u from the mean is the sum over last tokens of squared logit gaps."""
    exact = np.array(outputs, dtype=object) * Fraction(1)
    mean = exact.mean(axis=0)
    gaps = [
        sum((u - mean) @ np.array(e) * ((u - mean) @ np.array(e)) for e in inputs) for u in exact
    ]
    order = sorted(range(len(gaps)), key=lambda x: (gaps[x], x))
    assert unigrams(inputs, exact, len(order)).tolist() == order


def test_mixture_takes_the_context_first_and_fills_up():
    table = table_drafts([[[1, 1], [2, 1]], [[0, 1], [2, 2]], [[0, 0], [1, 1]]])
    context = (0, 1, 0)
    assert context_drafts(1)(context, 2) == ((1, 0),)
    assert mixed_drafts(context_drafts(1), table, drafts=2)(context, 2) == ((1, 0), (1, 1))
    assert mixed_drafts(context_drafts(1), table, drafts=1)(context, 2) == ((1, 0),)
    assert mixed_drafts(table, context_drafts(1), drafts=2)(context, 2) == ((1, 1), (2, 1))
    strategies = [context_drafts(1), table]
    assert ranked(strategies, context, 1, 5) == ((0, (1,)), (1, (2,)))
    assert ranked(strategies, context, 0, 5) == ()


@given(TEXTS, st.lists(st.integers(0, 2), min_size=1), st.integers(1, 4), st.integers(1, 3))
def test_mixture_counts_no_draft_twice(context, tokens, drafts, lookahead):
    """Each draft adds a node to the trie of those before it, and nothing new is left out."""
    strategies = [context_drafts(2), context_drafts(1), unigram_drafts(tokens)]
    mix = mixed_drafts(*strategies, drafts=drafts)(context, lookahead)
    tries = [str(ngrams.trie(mix[:k])) for k in range(len(mix) + 1)]
    assert len(set(tries)) == len(mix) + 1
    offered = [draft for propose in strategies for draft in propose(context, lookahead)]
    if len(mix) < drafts:
        assert {d[:w] for d in offered for w in range(4)} == {d[:w] for d in mix for w in range(4)}


def test_tables_are_looked_up_by_the_last_token():
    drafts = table_drafts([[1, 0], [0, 1]])
    assert drafts((0, 1), 3) == ((0,), (1,))
    assert drafts((), 3) == ()
    assert drafts((1,), 0) == ((), ())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mixed_drafts(drafts=2), ValueError, "number of strategies = 0"),
        (lambda: unigram_drafts([]), ValueError, "number of tokens = 0"),
        (lambda: as_table([]), ValueError, r"table has shape \(0,\)"),
        (lambda: as_table([[], []]), ValueError, r"table has shape \(2, 0\)"),
        (lambda: as_table([[0.0]]), TypeError, "table has dtype float64: expected integers"),
        (
            lambda: as_table([[0, 2], [1, 0]]),
            ValueError,
            r"table\[0, 1\] = 2: expected 0 <= id < 2",
        ),
        (lambda: as_table([[-1]]), ValueError, r"table\[0, 0\] = -1"),
        (lambda: bigrams([], 1), ValueError, r"rows have shapes \[\]"),
        (lambda: bigrams([[1.0]], 0), ValueError, "drafts = 0: expected an integer >= 1"),
        (
            lambda: extended_by_model(iid_model(THREE, [1, 0, 0]), [[0]], 0),
            ValueError,
            "lookahead",
        ),
        (lambda: unigrams([[1, 2]], [[1], [2]], 1), ValueError, r"\(1, 2\), \(2, 1\): expected"),
        (lambda: unigrams([[1]], [[1], [2]], 3), ValueError, "expected at least 3 scores"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@given(TEXTS.filter(bool), st.integers(1, 4), st.integers(0, 3), st.integers(0, 3))
def test_measured_calls_are_those_of_the_decode_loop(text, drafts, lookahead, given_tokens):
    """Each block, replayed with the text as the target's samples, is what a call emits."""
    strategies = context_drafts(1), unigram_drafts([0, 2])
    propose = mixed_drafts(*strategies, drafts=drafts)
    target, position, emitted = iid_model(THREE, ["1/3"] * 3), min(given_tokens, len(text)), []
    while position < len(text):
        choices = Replayed([*text[position:], *[0] * 4])
        block = ngrams.step(target, target, text[:position], lookahead, choices, propose=propose)
        emitted.append(min(len(block), len(text) - position))
        position += emitted[-1]
    assert emitted_by_calls(strategies, text, drafts, lookahead, given_tokens) == emitted


def test_after_one_period_the_context_drafts_everything():
    strategies = context_drafts(1), unigram_drafts([1])
    assert emitted_by_calls(strategies, (0, 1, 2) * 4, 2, 3) == [1, 2, 1, 4, 4]
