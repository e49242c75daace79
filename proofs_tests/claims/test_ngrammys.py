"""What Stewart et al. 2024, "The N-Grammys", claims, row by row of the claims ledger.

The name of a test starts with the row: G.8 is `test_g_8_…`. k is the number of drafts, w the
longest of them, p the target's next-token distribution. What the paper prints as code is
transcribed here, as `printed_…`.
"""

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from proofs_tests.helpers.bugs import planted
from proofs_tests.helpers.ngrams import emitted_by_calls
from specref import Exact, Model, Vocabulary, exact_distribution, is_lossless
from specref.algorithms import autoregressive, ngrams, slem
from specref.algorithms.decoding import decode
from specref.algorithms.ngrams.drafts import context_drafts, table_drafts, unigram_drafts
from specref.algorithms.ngrams.tables import (
    bigram_rows,
    bigrams,
    extended,
    extended_by_model,
    unigrams,
    unigrams_as_printed,
)
from specref.distributions import residual, with_temperature
from specref.models import hashed_model, iid_model, table_model
from specref.zoo.ngrams import independent_rows, sequential_coins

LETTERS = Vocabulary("abcd")
COIN = iid_model(Vocabulary("ab"), ["1/2", "1/2"])


def greedy(model):
    return Model(model.vocabulary, lambda x: with_temperature(model.next_token(x), 0))


def argmax_text(target, length):
    return decode(autoregressive.step, target, target, (), 0, length, Exact())


def proposing(drafts, step=ngrams.step):
    return partial(step, propose=lambda context, w: drafts)


def first_token(step, target, lookahead=1):
    """P(the block starts with token), for each token."""
    row = [Fraction(0)] * len(target.vocabulary)
    law = exact_distribution(lambda chance: step(target, target, (), lookahead, chance))
    for block, weight in law.items():
        row[block[0]] += weight
    return list(map(str, row))


def distance(step, target, lookahead=1):
    return is_lossless(step, target, target, (), lookahead).total_variation


@pytest.mark.parametrize("key", range(20))
def test_g_1_greedy_output_is_unchanged(key):
    """k rows of w tokens give the argmax text, with 1 to w + 1 tokens a call."""
    target = greedy(hashed_model(LETTERS, f"greedy {key}"))
    table = table_drafts(extended(bigrams(bigram_rows(target), 2), 3))
    for propose in (table, context_drafts(1), unigram_drafts([0, 3])):
        step = partial(ngrams.step, propose=propose)
        assert decode(step, target, target, (), 3, 10, Exact()) == argmax_text(target, 10)
        assert {*emitted_by_calls([propose], argmax_text(target, 10), 2, 3)} <= {1, 2, 3, 4}


def test_g_2_tokens_per_call_is_one_more_than_the_longest_match():
    """It is neither accepted over drafted tokens nor a per-token acceptance rate."""
    target, drafts = hashed_model(LETTERS, "metric"), ((0, 1), (1, 3))
    law = exact_distribution(lambda chance: ngrams.match(target, (), drafts, chance))
    emitted = sum(len(block) * weight for block, weight in law.items())
    accepted = ngrams.expected_accepted(target, (), drafts)
    assert emitted == 1 + accepted
    assert accepted / sum(map(len, drafts)) < 1 < emitted


def test_g_4_strategies_are_35_in_the_text_and_30_in_the_figures():
    """Five k and seven w; the axis of Fig. 9 leaves out w = 12."""
    stated = list(itertools.product((1, 5, 10, 20, 25), range(2, 15, 2)))
    assert len(stated) == 35
    assert len([kw for kw in stated if kw[1] in (2, 4, 6, 8, 10, 14)]) == 30


def test_g_5_unigram_code_is_not_the_stated_distance():
    """Outputs 1, 2, 3, -2 on a line: nearest the mean first, and "dists" ascending."""
    line = [[1], [2], [3], [-2]]
    assert unigrams([[1]], line, 4).tolist() == [0, 1, 2, 3]
    assert unigrams_as_printed([[1]], line, 4).tolist() == [3, 0, 1, 2]


def test_g_5_unigram_code_reverses_outputs_of_equal_norm():
    """Five points of a circle, C a multiple of I."""
    circle = [(5, 0), (4, 3), (3, 4), (0, 5), (-3, 4)]
    stated = unigrams([(1, 0), (0, 1)], circle, 5).tolist()
    assert unigrams_as_printed([(1, 0), (0, 1)], circle, 5).tolist() == stated[::-1]


def test_g_5_unigram_code_rarely_agrees_on_the_first_token():
    """Gaussian embeddings, V = 20, d = 8: fewer than 1 in 10 of 300."""
    rng = np.random.default_rng(1)
    pairs = [rng.normal(size=(2, 20, 8)) for _ in range(300)]
    agree = sum(unigrams(*pair, 1)[0] == unigrams_as_printed(*pair, 1)[0] for pair in pairs)
    assert agree < 30


def test_g_6_close_in_that_norm_is_not_the_same_next_distribution():
    """It compares how likely two tokens are after each token, not what follows them.

    First two tokens that the same follows, farther apart than any other pair; then two at
    distance 0, which other tokens follow.
    """
    inputs, outputs = np.array([[1, 0], [1, 0], [0, 1]]), np.array([[1, 0], [-1, 0], [0, 1]])
    logits, metric = inputs @ outputs.T, inputs.T @ inputs
    assert (logits[0] == logits[1]).all()
    gaps = {pair: outputs[pair[0]] - outputs[pair[1]] for pair in ((0, 1), (0, 2), (1, 2))}
    assert [int(gap @ metric @ gap) for gap in gaps.values()] == [8, 3, 3]
    inputs = np.array([[1, 0], [0, 1], [1, 1]])
    outputs = np.array([[2, 1], [2, 1], [0, 3]])
    logits = inputs @ outputs.T
    metric = inputs.T @ inputs
    for x, y in itertools.product(range(3), repeat=2):
        gap = outputs[x] - outputs[y]
        assert gap @ metric @ gap == ((logits[:, x] - logits[:, y]) ** 2).sum()
    assert (outputs[0] == outputs[1]).all()
    after = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert [round(float(x), 2) for x in after[:2, 2]] == [0.06, 0.79]


def test_g_7_bigram_code_does_not_run_and_keeps_only_the_last_row():
    """`range(len(V))` for an integer V; then `lookup` is assigned anew in each turn."""

    def printed_bigrams(model, size):
        for x in range(len(size)):
            lookup = model.next_token((x,))
        return lookup

    model = hashed_model(LETTERS, "bigrams")
    with pytest.raises(TypeError, match="has no len"):
        printed_bigrams(model, 4)
    assert (printed_bigrams(model, range(4)) == model.next_token((3,))).all()
    assert bigrams(bigram_rows(model), 2).shape == (4, 2)


def printed_context(context, query, lookahead):
    """Whole windows, counted; sorted by count, then as `unique` returns them: by token."""
    windows = np.lib.stride_tricks.sliding_window_view(np.array(context), query + lookahead)
    follows = [tuple(w[query:].tolist()) for w in windows if (*w[:query],) == context[-query:]]
    return tuple(sorted(set(follows), key=lambda tokens: (-follows.count(tokens), tokens)))


def test_g_8_context_code_does_not_prefer_recent_matches():
    """Seen once each: the text takes 3, seen last; the code 1, the least token."""
    context = (7, 5, 7, 1, 7, 3, 7)
    assert context_drafts(1)(context, 1) == ((3,), (1,), (5,))
    assert printed_context(context, 1, 1) == ((1,), (3,), (5,))
    contexts = list(itertools.product(range(3), repeat=6))
    pairs = [(context_drafts(1)(c, 1), printed_context(c, 1, 1)) for c in contexts]
    assert all(set(text) == set(code) for text, code in pairs)
    assert sum(text[:1] != code[:1] for text, code in pairs) == 102


def test_g_9_context_code_drops_what_the_end_cuts_short():
    """1231, w = 4: three tokens could be proposed. Shorter contexts raise."""
    context = (1, 2, 3, 1)
    assert context_drafts(1)(context, 3) == printed_context(context, 1, 3) == ((2, 3, 1),)
    assert context_drafts(1)((0, *context), 4) == ((2, 3, 1),)
    assert printed_context((0, *context), 1, 4) == ()
    assert context_drafts(1)((1, 1), 4) == ((1,),)
    with pytest.raises(ValueError, match="window"):
        printed_context((1, 1), 1, 4)


def calls(text, drafts, lookahead, prompt=1):
    return len(emitted_by_calls([context_drafts(1)], text, drafts, lookahead, prompt))


def test_g_10_tokens_per_call_can_fall_with_k_and_with_w():
    """Drafts from the context are ranked anew for each w: that of w = 2 is (1, 0), and fails."""
    assert [calls((0, 1, 0, 0, 0, 0), 1, w) for w in range(4)] == [5, 4, 5, 5]
    drafts = context_drafts(1)
    assert [drafts((0, 1, 0, 0), w)[0] for w in (1, 2)] == [(0,), (1, 0)]
    text = (0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1)
    assert [calls(text, k, 3) for k in range(1, 5)] == [9, 7, 8, 7]


def test_g_10_one_call_never_accepts_less_with_more_drafts_or_longer_ones():
    """Expected accepted tokens, exactly: cut drafts are a subtree."""
    target, drafts = hashed_model(LETTERS, "nested"), ((0, 1, 2), (1, 1, 1), (0, 3, 0))
    accepted = {
        (k, w): ngrams.expected_accepted(target, (), [draft[:w] for draft in drafts[:k]])
        for k, w in itertools.product(range(4), repeat=2)
    }
    for (k, w), value in accepted.items():
        assert value >= max(accepted.get((k - 1, w), 0), accepted.get((k, w - 1), 0))


@pytest.mark.deep
def test_g_10_extended_bigrams_alone_are_monotone():
    """One token on, the chain matches all but one: a call that starts later ends no earlier."""
    for best in itertools.product(range(3), repeat=3):
        rows = [(token, (token + 1) % 3) for token in best]
        table = [table_drafts(extended(rows, 3))]
        for rest in itertools.product(range(3), repeat=4):
            count = [
                [len(emitted_by_calls(table, (0, *rest), k, w, 1)) for w in range(4)]
                for k in (1, 2)
            ]
            assert all((np.diff(count, axis=axis) <= 0).all() for axis in (0, 1))


def test_g_10_bigrams_that_the_model_continues_can_cost_more_with_longer_drafts():
    sure = {0: [1, 0], 1: [0, 1]}
    greedy = {(): 0, (0,): 0, (0, 0): 0, (0, 0, 0): 1, (1,): 0, (1, 0): 1, (1, 0, 1): 0}
    greedy |= {(0, 0, 0, 1): 0, (0, 0, 0, 1, 0): 1, (0, 0, 0, 1, 0, 1): 0}
    rows = {context: sure[token] for context, token in greedy.items()}
    drafts = extended_by_model(table_model(Vocabulary("ab"), rows, sure[0]), [[0], [0]], 3)
    assert drafts.tolist() == [[[0, 0, 1]], [[0, 1, 0]]]
    table, text = [table_drafts(drafts)], (0, 0, 0, 1, 0, 1, 0)
    assert [len(emitted_by_calls(table, text, 1, w, 1)) for w in range(4)] == [6, 4, 2, 3]


def test_g_11_one_draw_on_the_trie_is_lossless_and_accepts_p_of_the_drafts():
    """P(accept) = p(S), S the distinct first tokens; the best S of its size is the top k."""
    target = iid_model(LETTERS, ["1/8", "1/2", "1/8", "1/4"])
    for drafts in ([(1,), (3,)], [(1,), (1,)], [(0, 1), (0, 2), (2, 3)]):
        assert distance(proposing(drafts), target, 2) == 0
        mass = sum(target.next_token(())[token] for token in {draft[0] for draft in drafts})
        assert ngrams.expected_accepted(target, (), [draft[:1] for draft in drafts]) == mass
    pairs = itertools.combinations(range(4), 2)
    best = max(pairs, key=lambda two: ngrams.expected_accepted(target, (), [(x,) for x in two]))
    assert best == (1, 3)


def test_g_12_independent_draws_per_row_are_lossy():
    """Equal rows a: (3/4, 1/4), total variation 1/4."""
    rows = proposing([(0,), (0,)], independent_rows)
    assert first_token(rows, COIN) == ["3/4", "1/4"]
    assert distance(rows, COIN) == Fraction(1, 4)


def test_g_12_distinct_rows_are_lossy_too():
    """Rows a and b: 1/8 with a fresh draw where no row matches, 1/16 with the first row's own."""

    def fresh_if_none(target, drafter, context, lookahead, chance):
        for token in (0, 1):
            block = slem.match(target, context, (token,), chance)
            if block[0] == token:
                return block
        return slem.match(target, context, (), chance)

    assert first_token(fresh_if_none, COIN) == ["5/8", "3/8"]
    assert distance(fresh_if_none, COIN) == Fraction(1, 8)
    target = iid_model(Vocabulary("abc"), ["1/2", "1/4", "1/4"])
    rows = proposing([(0,), (1,)], independent_rows)
    assert first_token(rows, target) == ["1/2", "5/16", "3/16"]
    assert distance(rows, target) == Fraction(1, 16)
    assert distance(proposing([(0,), (1,)], independent_rows), COIN) == 0


def test_g_13_coins_without_renormalising_are_lossy():
    """Drafts a and b of (1/2, 1/4, 1/4): (1/2, 1/8, 3/8); the residual mends the same coins."""

    def with_residual(target, drafter, context, lookahead, chance, drafts=(0, 1)):
        p, accepted, left = target.next_token(context), np.full(3, Fraction(0)), Fraction(1)
        for row, token in enumerate(drafts):
            if chance.accept(p[token], f"accept[{row}]"):
                return (token,)
            accepted[token], left = accepted[token] + left * p[token], left * (1 - p[token])
        return (chance.draw(residual(p, accepted), "residual"),)

    target = iid_model(Vocabulary("abc"), ["1/2", "1/4", "1/4"])
    coins = proposing([(0,), (1,)], sequential_coins)
    assert first_token(coins, target) == ["1/2", "1/8", "3/8"]
    assert distance(coins, target) == Fraction(1, 8)
    assert distance(with_residual, target) == 0
    accepted = np.array([Fraction(1, 2), Fraction(1, 8), Fraction(0)])
    assert list(map(str, residual(target.next_token(()), accepted))) == ["0", "1/3", "2/3"]
    assert first_token(proposing([(0,)], sequential_coins), target) == ["1/2", "1/4", "1/4"]
    assert first_token(partial(with_residual, drafts=(0, 0)), target) == ["3/4", "1/8", "1/8"]


def test_g_14_deterministic_draft_tested_as_if_sampled_is_lossy():
    """Draft argmax q, accept min(1, p/q), q = (3/4, 1/4): (2/3, 1/3); by exact match p."""
    drafter = iid_model(COIN.vocabulary, ["3/4", "1/4"])
    proof = is_lossless(planted.argmax_drafted_soft_q_tested, COIN, drafter, (), 1)
    assert sum(weight for text, weight in proof.output.items() if text[0] == 0) == Fraction(2, 3)
    assert proof.total_variation == Fraction(1, 6)
    assert distance(proposing([(0,)]), COIN) == 0


def test_g_15_attention_cost_is_of_order_k_w_times_w_plus_l():
    """(w + 1) queries by (l + w) keys in k rows: at most 2 k w (w + l), if w >= 1."""
    for k, w, length in itertools.product((1, 5, 25), range(1, 15), (1, 100, 4000)):
        products = sum(length + w for _ in range(k) for _ in range(w + 1))
        assert k * w * (w + length) < products <= 2 * k * w * (w + length)


def test_g_16_repeated_prefixes_accept_nothing_more():
    """Context rows ranked by whole w-grams repeat prefixes: only distinct nodes count."""
    context = (0, 1, 2, 0, 1, 3, 0, 1)
    rows = context_drafts(1)(context, 3)
    assert rows == ((3, 0, 1), (2, 0, 1))
    target, repeated = hashed_model(LETTERS, "repeated"), (*rows, (3,), (3, 0), *rows)
    law = exact_distribution(lambda chance: ngrams.match(target, context, rows, chance))
    assert law == exact_distribution(lambda c: ngrams.match(target, context, repeated, c))
    accepted = [ngrams.expected_accepted(target, context, some) for some in (rows, repeated)]
    assert accepted[0] == accepted[1]


def cached_text(target, rows, length, *, overwritten):
    """A greedy text by calls on rows that each read their own cache of tokens."""
    text = ()
    caches = [()] * len(rows)
    while len(text) < length:
        found = []
        for cache, row in zip(caches, rows, strict=True):
            accepted = next(
                (i for i, x in enumerate(row) if argmax_of(target, cache + row[:i]) != x), len(row)
            )
            kept = (*row[:accepted], argmax_of(target, cache + row[:accepted]))
            found.append((accepted, kept, cache + row))
        _, kept, _ = max(found, key=lambda one: one[0])
        text += kept
        own = [cache[: len(text) - 1] + kept[-1:] for _, _, cache in found]
        caches = [text] * len(rows) if overwritten else own
    return text[:length]


def argmax_of(target, context):
    return int(np.argmax(target.next_token(context)))


def test_g_19_rows_need_the_cache_of_the_longest_match():
    """Overwritten by it, all emit the greedy text; with their own, some emit another."""
    rows, wrong = [(0, 1, 2), (1, 2, 3), (2, 3, 0), (3, 0, 1)], 0
    for key in range(6):
        target = greedy(hashed_model(LETTERS, f"cache {key}"))
        wanted = argmax_text(target, 10)
        assert cached_text(target, rows, 10, overwritten=True) == wanted
        wrong += cached_text(target, rows, 10, overwritten=False) != wanted
    assert wrong
