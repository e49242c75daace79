"""Learning-free speculation: k deterministic drafts on their trie, proved lossless and optimal."""

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from specref import Exact, Model, Replayed, Vocabulary, exact_distribution, is_lossless
from specref.algorithms import autoregressive, ngrams, slem
from specref.algorithms.decoding import decode
from specref.algorithms.ngrams.drafts import context_drafts, mixed_drafts, unigram_drafts
from specref.chance import enumerate_paths
from specref.distributions import with_temperature
from specref.models import hashed_model, iid_model, markov_model, table_model
from specref.pairs import same_vocabulary_pairs
from specref.proofs import is_lossless_loop
from specref.zoo.ngrams import ENTRIES, independent_rows, sequential_coins

TWO, THREE = Vocabulary("ab"), Vocabulary("abc")
TARGETS = {
    "coin": iid_model(TWO, ["1/2", "1/2"]),
    "point mass": iid_model(TWO, [0, 1]),
    "by last token": markov_model(TWO, ["1/3", "2/3"], [[0, 1], ["3/4", "1/4"]]),
    "by position and context": hashed_model(TWO, "ngrams"),
    "EOS": hashed_model(Vocabulary("ab", eos="b"), "ends"),
}
PAIRS = {pair.name: pair for pair in same_vocabulary_pairs()}


def proposing(drafts, step=ngrams.step):
    """The step with the same drafts in every context, cut at the lookahead."""
    return partial(step, propose=lambda context, w: tuple(draft[:w] for draft in drafts))


def tokens_up_to(size, lookahead):
    """Every draft of 1 to `lookahead` tokens."""
    lengths = range(1, lookahead + 1)
    return [draft for w in lengths for draft in itertools.product(range(size), repeat=w)]


def draft_sets(size, lookahead, most):
    """Every sequence of up to `most` drafts: duplicates and prefixes of each other included."""
    drafts = tokens_up_to(size, lookahead)
    return [some for k in range(most + 1) for some in itertools.product(drafts, repeat=k)]


def accepted_law(step, target, context, drafts, lookahead):
    """{(accepted node, block): probability}, a node being what the block shares with a draft."""
    blocks = exact_distribution(lambda chance: step(target, target, context, lookahead, chance))
    nodes = {draft[:w] for draft in drafts for w in range(lookahead + 1)} | {()}
    longest = {
        block: max((node for node in nodes if block[: len(node)] == node), key=len)
        for block in blocks
    }
    return {(longest[block], block): weight for block, weight in blocks.items()}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_every_set_of_drafts_is_lossless(target):
    """Up to 2 drafts of up to 2 tokens, and up to 3 of 1: all of them, over two tokens."""
    for drafts in {*draft_sets(2, 2, 2), *draft_sets(2, 1, 3)}:
        for context in ((), (1, 0)):
            proof = is_lossless(proposing(drafts), target, target, context, 2)
            assert proof, f"drafts {drafts}: {proof.difference}"


SETS = st.lists(st.sampled_from(tokens_up_to(3, 3)), max_size=3).map(tuple)
KEYS = st.integers(0, 10**6)
ENDS = st.sampled_from([THREE, Vocabulary("abc", eos="c")])
TOYS = st.builds(hashed_model, ENDS, KEYS.map(str))


@given(TOYS, SETS, st.sampled_from([(), (2, 1)]), st.integers(0, 3))
def test_drafts_of_three_tokens_are_lossless(target, drafts, context, lookahead):
    """Rows with zeros and ties; drafts the target excludes, and drafts that go on after EOS."""
    proof = is_lossless(proposing(drafts), target, target, context, lookahead)
    assert proof, proof.difference


@given(TOYS, KEYS, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_decode_loop_of_a_mixture_is_lossless(target, key, query, drafts, lookahead):
    """Drafts that depend on the context, from the context and from another model's bigrams."""
    mix = mixed_drafts(context_drafts(query), unigram_drafts([key % 3]), drafts=drafts)
    drafter = hashed_model(target.vocabulary, f"drafter {key}")
    for step in (partial(ngrams.step, propose=mix), ngrams.step):
        proof = is_lossless_loop(step, target, drafter, (0, 1, 0), lookahead, 3)
        assert proof, proof.difference


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_default_drafts_are_lossless_on_toy_pairs(pair):
    """The default drafts, from the bigrams of any drafter, for every lookahead of the pair."""
    for lookahead, context in itertools.product(range(3), pair.contexts):
        assert is_lossless(ngrams.step, pair.target, pair.drafter, context, lookahead)


@given(TOYS, SETS.filter(bool), st.sampled_from([(), (2, 1)]))
def test_one_draft_is_string_level_exact_match(target, drafts, context):
    """With k = 1 the same paths as SLEM; duplicates and prefixes change nothing."""

    def paths(run):
        return list(enumerate_paths(lambda chance: run(chance)))

    first = drafts[0]
    alone = paths(lambda chance: slem.match(target, context, first, chance))
    for several in ((first,), (first, first), (first[:1], first, ())):
        assert alone == paths(lambda chance, s=several: ngrams.match(target, context, s, chance))


@given(TOYS, KEYS, st.integers(1, 3), st.integers(0, 3))
def test_greedy_output_is_the_greedy_output(model, key, drafts, lookahead):
    """One path, with the tokens of autoregressive argmax, in 1 to w + 1 tokens a call."""
    target = Model(model.vocabulary, lambda x: with_temperature(model.next_token(x), 0))
    mix = mixed_drafts(context_drafts(1), unigram_drafts([key % 3]), drafts=drafts)
    step, lengths = partial(ngrams.step, propose=mix), []

    def counted(*arguments):
        lengths.append(len(step(*arguments)))
        return step(*arguments)

    run = partial(decode, target=target, drafter=target, context=(0,), length=6, chance=Exact())
    assert run(counted, lookahead=lookahead) == run(autoregressive.step, lookahead=0)
    assert all(1 <= length <= lookahead + 1 for length in lengths)


@given(TOYS, SETS, st.sampled_from([(), (2, 1)]))
def test_expected_accepted_is_the_mass_of_the_trie(target, drafts, context):
    """By enumeration: the trie's node that a block leaves at, longest first."""
    law = accepted_law(proposing(drafts), target, context, drafts, 3)
    mean = sum(len(node) * weight for (node, _), weight in law.items())
    assert mean == ngrams.expected_accepted(target, context, drafts)
    first = sum(weight for (node, _), weight in law.items() if node)
    p = target.next_token(context)
    assert first == sum(p[token] for token in {draft[0] for draft in drafts})


def best_of_all_rules(target, drafts, lookahead):
    """max E[accepted] over every lossless rule: a linear programme.

    A rule is a law of (accepted node of the trie, token after it); it is lossless iff the
    blocks, completed by the target, have the target's law.
    """
    size, length = len(target.vocabulary), lookahead + 1
    nodes = sorted({draft[:w] for draft in drafts for w in range(lookahead + 1)} | {()})
    outcomes = [(node, token) for node in nodes for token in range(size)]

    def probability(tokens, given=()):
        """P(the text starts with tokens | it starts with given)."""
        if tokens[: len(given)] != given:
            return 0.0
        rest = range(len(given), len(tokens))
        return float(np.prod([float(target.next_token(tokens[:i])[tokens[i]]) for i in rest]))

    texts = list(itertools.product(range(size), repeat=length))
    completed = [[probability(text, (*node, x)) for node, x in outcomes] for text in texts]
    found = linprog(
        [-len(node) for node, _ in outcomes],
        A_eq=completed,
        b_eq=[probability(text) for text in texts],
    )
    return -found.fun


@pytest.mark.parametrize("key", range(4))
def test_no_lossless_rule_accepts_more(key):
    """The optimum over all lossless rules, by linear programming, is the mass of the trie."""
    for drafts in [((0,), (1,)), ((0, 1), (0, 1)), ((0, 1), (2,)), ((1, 2), (1, 0), (0, 0))]:
        target, lookahead = hashed_model(THREE, f"best {key}"), max(map(len, drafts))
        mass = ngrams.expected_accepted(target, (), drafts)
        assert best_of_all_rules(target, drafts, lookahead) == pytest.approx(float(mass), abs=1e-9)


def test_the_optimum_is_a_bound_on_lossless_rules_only():
    """Two equal rows, p = 1/2: the trie accepts 1/2; independent draws 3/4, and are lossy."""
    target, drafts = TARGETS["coin"], ((0,), (0,))
    assert ngrams.expected_accepted(target, (), drafts) == Fraction(1, 2)
    assert best_of_all_rules(target, drafts, 1) == pytest.approx(0.5, abs=1e-9)
    greedier = accepted_law(proposing(drafts, independent_rows), target, (), drafts, 1)
    assert sum(len(node) * weight for (node, _), weight in greedier.items()) == Fraction(3, 4)


def test_best_drafts_of_one_token_are_the_likeliest():
    """Of all k first tokens the top k of p accept most."""
    target = iid_model(Vocabulary("abcd"), ["1/10", "4/10", "2/10", "3/10"])
    for k in (1, 2, 3):
        sets = itertools.combinations(range(4), k)
        accepted = {s: ngrams.expected_accepted(target, (), [(x,) for x in s]) for s in sets}
        assert set(max(accepted, key=accepted.get)) == set([1, 3, 2][:k])


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_mutant_is_lossy_by_its_exact_distance(entry):
    case = entry.case
    proof = is_lossless(entry.on(case), case.target, case.target, (), case.lookahead)
    assert {case.name: proof.total_variation} == entry.distances
    clean = partial(ngrams.step, **case.options)
    assert is_lossless(clean, case.target, case.target, (), case.lookahead)
    assert not entry.lossless
    assert all(text.endswith(".") for text in (entry.symptom, entry.hint))


def test_independent_rows_emit_three_quarters():
    """Two rows a, p = (1/2, 1/2): a comes out with probability 3/4, on the trie with 1/2."""
    law = is_lossless(proposing([(0,), (0,)], independent_rows), TARGETS["coin"], TARGETS["coin"])
    assert sum(weight for block, weight in law.output.items() if block[0] == 0) == Fraction(3, 4)
    assert str(law.difference) == "P(0,) = 3/4, the target's is 1/2"


def test_independent_rows_that_share_a_first_token():
    """Rows ab, ac, ad, ef, p(a) = p(e) = 1/2 (fms-extras #12): a with 35/54."""
    vocabulary, half = Vocabulary("abcdef"), Fraction(1, 2)
    third = Fraction(1, 3)
    after = {(): [half, 0, 0, 0, half, 0], (0,): [0, third, third, third, 0, 0]}
    target = table_model(vocabulary, after, otherwise=[0, 0, 0, 0, 0, 1])
    rows = [(0, 1), (0, 2), (0, 3), (4, 5)]
    lossy = is_lossless(proposing(rows, independent_rows), target, target, (), 2)
    firsts = sum(weight for block, weight in lossy.output.items() if block[0] == 0)
    assert (firsts, lossy.total_variation) == (Fraction(35, 54), Fraction(4, 27))
    assert is_lossless(proposing(rows), target, target, (), 2)


@pytest.mark.parametrize("step", [independent_rows, sequential_coins])
def test_mutants_are_lossless_with_one_row_and_refuted_with_several(step, counterexample):
    """The same proof that holds for the trie rejects both, on the same cases."""
    for draft in tokens_up_to(2, 2):
        assert is_lossless(proposing([draft], step), *[TARGETS["by last token"]] * 2, (), 2)

    def holds(case):
        target, drafts = case
        return is_lossless(proposing(drafts, step), target, target, (), 3)

    assert counterexample(st.tuples(TOYS, SETS), holds)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"lookahead": -1}, ValueError, "lookahead = -1"),
        ({"context": (2,)}, ValueError, r"context\[0\] = 2: expected 0 <= id < 2"),
        ({"context": "ab"}, TypeError, r"context\[0\] = 'a'"),
        ({"drafter": iid_model(THREE, [0, 0, 1])}, ValueError, "drafter has another vocabulary"),
        ({"drafts": ((0,), (0, 3))}, ValueError, r"drafts\[1\]\[1\] = 3: expected 0 <= id < 2"),
        ({"drafts": ((0,), ("a",))}, TypeError, r"drafts\[1\]\[0\] = 'a': expected a token id"),
        ({"drafts": ((0, 1, 0),)}, ValueError, r"drafts\[0\] = \(0, 1, 0\): expected at most 2"),
    ],
)
def test_bad_input_is_named(changed, error, message):
    case = {"context": (), "lookahead": 2, "drafts": ((0,),), "drafter": TARGETS["coin"]} | changed
    drafts = case.pop("drafts")
    with pytest.raises(error, match=message):
        ngrams.step(TARGETS["coin"], chance=Exact(), propose=lambda x, w: drafts, **case)


def test_nothing_drafted_is_one_target_token():
    """k = 0, or w = 0, or only empty drafts."""
    for drafts, lookahead in [((), 2), (((),), 2), (((0, 1),), 0)]:
        law = exact_distribution(
            lambda chance, d=drafts, w=lookahead: proposing(d)(
                TARGETS["coin"], TARGETS["coin"], (), w, chance
            )
        )
        assert law == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}


def test_block_ends_where_it_leaves_the_trie():
    """Drafts ab and b: the first token that continues no draft is the last of the block."""
    step = proposing([(0, 1), (1,)])
    blocks = [(0, 1, 0), (0, 0), (1, 1)]
    target = TARGETS["coin"]
    assert all(step(target, target, (), 2, Replayed([*block])) == block for block in blocks)


def test_at_most_three_drafts_are_proposed():
    """A flat law has as many bigrams as tokens; what followed before counts among the three."""
    target = iid_model(Vocabulary("abcdef"), ["1/6"] * 6)
    assert len(ngrams.proposals(target, (0,), 2)) == 3
    assert len(ngrams.proposals(target, (0, 4, 0), 1)) == 3
    assert ngrams.proposals(target, (0, 4, 0), 1)[0] == (4,)
    assert len(ngrams.proposals(TARGETS["coin"], (0,), 1)) == 2
