"""Block verification: lossless, its closed forms, and that nothing lossless accepts more."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.blocks import F, law, length, most
from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import block, standard, tli, union
from specref.algorithms.standard import Draft
from specref.chance import Exact, Replayed, Sampled, Traced, enumerate_paths
from specref.distributions import as_distribution, total_variation
from specref.models import as_float, hashed_model, iid_model, markov_model, table_model
from specref.pairs import same_vocabulary_pairs
from specref.proofs import completed, is_lossless_loop
from specref.strategies import iterations, model_pairs, models, token_level_pairs, vocabularies
from specref.theory import acceptance
from specref.theory.block import (
    accepted_prefixes,
    block_law,
    draft_rows,
    length_law,
    tokens_emitted,
)
from specref.verification.rules import prove
from specref.zoo import ALL
from specref.zoo.fixtures import BLOCK_TOKENS


def emitted(target, context, rows):
    """Tokens of one iteration, in closed form."""
    return tokens_emitted(accepted_prefixes(target, context, rows), target.vocabulary)


AB, ABC, ABS = Vocabulary("ab"), Vocabulary("abc"), Vocabulary("abc", eos="c")
CASES = iterations(model_pairs(), max_lookahead=3)
ENDLESS = iterations(model_pairs(vocabularies(max_tokens=4)), max_lookahead=3)


def rows_of(case):
    return draft_rows(*case)


def by_token(target, context, rows):
    """W of token verification: min(W q, W p)."""
    accepted, pending = {(): F(1)}, [()]
    for prefix in pending:
        if target.vocabulary.ends(prefix):
            continue
        p, q = target.next_token((*context, *prefix)), rows[prefix]
        for token in map(int, np.flatnonzero(np.minimum(p, q))):
            accepted[*prefix, token] = accepted[prefix] * min(p[token], q[token])
            pending.append((*prefix, token))
    return accepted


@given(CASES)
def test_lossless(case):
    proof = is_lossless(block.step, *case)
    assert proof, proof.difference


def drafted_by(draft):
    """Block verification of drafts from elsewhere; a None draft is END."""

    def step(target, drafter, context, lookahead, chance):
        drafts = draft(target, drafter, context, lookahead, chance)
        return block.verify(target, context, drafts, chance)

    return step


@pytest.mark.parametrize("rule", [union, tli], ids=["union", "tli"])
@given(case=iterations(token_level_pairs()))
def test_lossless_with_the_drafts_of_other_algorithms(rule, case):
    """Union: a draft that the target lacks is END, and the laws are sub-laws."""
    assert is_lossless(drafted_by(rule.draft), *case)
    assert length(law(drafted_by(rule.draft), case)) >= length(law(rule.step, case))


@pytest.mark.deep
def test_lossless_on_all_toy_pairs():
    report = prove(block.step, "standard")
    assert (report.proved, report.refuted, report.raised) == (1296, (), ())


@pytest.mark.deep
@given(CASES)
def test_decode_loops_are_lossless(case):
    assert is_lossless_loop(block.step, *case[:3], case[3], length=3)


@pytest.mark.parametrize("mutant", ["block-tokenwise-residual", "block-uncapped-at-the-end"])
def test_the_same_proof_refutes_mutants(mutant, counterexample):
    step = ALL[mutant].step
    assert counterexample(CASES, lambda case: is_lossless(step, *case))


@given(CASES)
def test_the_law_and_the_expected_length_of_the_block_are_known(case):
    """Expected lengths from W, with and without EOS, by both rules."""
    target, _, context, _ = case
    accepted = accepted_prefixes(target, context, rows_of(case))
    blocks = law(block.step, case)
    assert blocks == block_law(target, context, rows_of(case))
    assert length(blocks) == emitted(target, context, rows_of(case))
    tokens = by_token(target, context, rows_of(case))
    open_tokens = [w for prefix, w in tokens.items() if not target.vocabulary.ends(prefix)]
    assert sum(open_tokens) == length(law(standard.step, case))
    assert all(tokens[prefix] <= accepted[prefix] for prefix in tokens)


@given(ENDLESS)
def test_accepted_lengths_are_known(case):
    """Without EOS, so that a block is the accepted drafts and one token."""
    target, _, context, _ = case
    counted = {}
    for tokens, weight in law(block.step, case).items():
        counted[len(tokens) - 1] = counted.get(len(tokens) - 1, 0) + weight
    formula = length_law(accepted_prefixes(target, context, rows_of(case)))
    assert [counted.get(k, 0) for k in range(len(formula))] == list(formula)
    assert max(counted) < len(formula)


def drafts_and_lengths(case):
    """{(drafts, accepted length): probability}, by enumeration."""
    target, drafter, context, lookahead = case

    def program(chance):
        drafts = standard.draft(drafter, context, lookahead, chance)
        tokens = tuple(draft.token for draft in drafts)
        return tokens, len(block.verify(target, context, drafts, chance)) - 1

    return exact_distribution(program)


@given(ENDLESS)
def test_a_drafted_prefix_is_accepted_with_p_k(case):
    """P(tau >= k | X^k) = A_k, the claim of Sun et al. 2024, Appendix B; W = Q A_k."""
    target, _, context, _ = case
    both = drafts_and_lengths(case)
    accepted = accepted_prefixes(target, context, rows_of(case))
    for drafts in {drafts for drafts, _ in both}:
        survival = F(1)
        for k in range(len(drafts) + 1):
            start = {key: w for key, w in both.items() if key[0][:k] == drafts[:k]}
            drafted = sum(start.values())
            kept = sum(w for (_, accepted_length), w in start.items() if accepted_length >= k)
            assert kept == drafted * survival == accepted.get(drafts[:k], 0)
            if k < len(drafts):
                p = target.next_token((*context, *drafts[:k]))[drafts[k]]
                survival = min(1, survival * p / rows_of(case)[drafts[:k]][drafts[k]])


@given(CASES)
def test_what_is_accepted_is_a_minimum_over_cuts(case):
    """W(x) = min over j of Q(x_1 … x_j) p(x_{j+1} … x_k | x_1 … x_j)."""
    target, _, context, _ = case
    rows = rows_of(case)
    for x, weight in accepted_prefixes(target, context, rows).items():
        q = [rows[x[:i]][x[i]] for i in range(len(x))]
        p = [target.next_token((*context, *x[:i]))[x[i]] for i in range(len(x))]
        assert weight == min(np.prod([F(1), *q[:j], *p[j:]]) for j in range(len(x) + 1))


def test_closed_forms_tell_the_rules_apart(counterexample):
    """What they say of block verification is not what standard or a mutant does."""
    mutant = ALL["block-one-uniform"].step
    for step in (standard.step, mutant):
        assert counterexample(
            CASES,
            lambda case, s=step: law(s, case) == block_law(case[0], case[2], rows_of(case)),
        )


@given(CASES)
def test_accepts_at_least_as_much_as_token_verification(case):
    assert length(law(block.step, case)) >= length(law(standard.step, case))


@pytest.mark.parametrize(("rule", "accepted"), [(block, F(3, 4)), (standard, F(7, 8))])
def test_of_given_drafts_token_verification_can_accept_more(rule, accepted):
    """On average over drafts block verification accepts no fewer; of these two it does."""
    target = table_model(AB, {(): ["1/2", "1/2"]}, ["3/5", "2/5"])
    drafts = [Draft(0, as_distribution(q)) for q in (["1", "0"], ["4/5", "1/5"])]
    blocks = exact_distribution(lambda chance: rule.verify(target, (), drafts, chance))
    assert length(blocks) - 1 == accepted


@pytest.mark.deep
def test_accepts_more_than_token_verification_on_most_models():
    """60 hashed pairs with up to 4 tokens, lookahead 2, 3, 4: strictly more on 143 of 180."""
    strict = 0
    for seed, lookahead in itertools.product(range(60), (2, 3, 4)):
        vocabulary = (AB, ABC, Vocabulary("abcd"))[seed % 3]
        target, drafter = (hashed_model(vocabulary, f"{role} {seed}") for role in "pq")
        rows = draft_rows(target, drafter, (), lookahead)
        lengths = acceptance.standard(target, drafter, (), lookahead)
        token = 1 + sum(k * weight for k, weight in enumerate(lengths))
        assert emitted(target, (), rows) >= token
        strict += emitted(target, (), rows) > token
    assert strict == 143


def greedy(model, key):
    """A model that always says the same: one-hot rows."""
    rows = [[int(token == (key + last) % 3) for token in range(3)] for last in range(3)]
    return markov_model(model.vocabulary, rows[0], rows)


@given(models(ABC), st.integers(0, 2), st.integers(1, 3))
def test_the_rules_are_one_for_one_draft_and_for_certain_ones(model, key, lookahead):
    """Lookahead 1; a one-hot drafter; a greedy target."""
    certain = greedy(model, key)
    for case in ((model, certain, (), lookahead), (certain, model, (), lookahead)):
        assert law(block.step, case) == law(standard.step, case)
    other = hashed_model(ABC, f"one {key}")
    assert law(block.step, (model, other, (), 1)) == law(standard.step, (model, other, (), 1))


@pytest.mark.parametrize("seed", range(12))
def test_no_lossless_rule_accepts_more(seed):
    """Over all rules that keep a prefix, add a token, and leave the rest to the target."""
    vocabulary, lookahead = ((AB, 3), (ABC, 2))[seed % 2]
    target, drafter = (hashed_model(vocabulary, f"{role} most {seed}") for role in "pq")
    rows = draft_rows(target, drafter, (), lookahead)
    drafts = completed({(): F(1)}, drafter, (), lookahead)
    best = most(target, (), drafts)
    assert best == pytest.approx(float(emitted(target, (), rows) - 1), abs=1e-9)


COIN = (iid_model(AB, ["1/3", "2/3"]), iid_model(AB, ["2/3", "1/3"]))
C = (BLOCK_TOKENS["c"].target, BLOCK_TOKENS["c"].drafter)
LENGTHS = [
    (COIN, 1, "2/3", "2/3", "1/3 2/3"),
    (COIN, 2, "10/9", "11/9", "1/3 1/9 5/9"),
    (COIN, 3, "38/27", "5/3", None),
    (C, 1, "2/3", "2/3", "1/3 2/3"),
    (C, 2, "37/36", "13/12", "1/3 1/4 5/12"),
    (C, 3, "91/72", "299/216", None),
]


@pytest.mark.parametrize(("pair", "lookahead", "token", "jointly", "lengths"), LENGTHS)
def test_pinned_accepted_lengths(pair, lookahead, token, jointly, lengths):
    """Computed once by an independent program: E of token and of block verification."""
    target, drafter = pair
    formula = length_law(accepted_prefixes(target, (), draft_rows(target, drafter, (), lookahead)))
    by_tokens = acceptance.standard(target, drafter, (), lookahead)
    means = [sum(k * w for k, w in enumerate(found)) for found in (by_tokens, formula)]
    assert [str(mean) for mean in means] == [token, jointly]
    assert lengths is None or " ".join(map(str, formula)) == lengths


EMITTED = {
    COIN: "000 1/27 001 2/27 010 2/27 011 4/27 1 1/3 100 1/27 101 2/27 11 1/9 110 1/27 111 2/27",
    C: "0 1/6 000 1/24 001 1/24 01 1/36 010 1/108 011 1/36 012 1/54 100 1/36 101 1/36 11 1/6 "
    "120 1/27 121 2/27 2 1/6 200 1/36 201 1/36 21 1/18 210 1/108 211 1/36 212 1/54",
}


@pytest.mark.parametrize("pair", EMITTED, ids=["coin", "c"])
def test_pinned_blocks(pair):
    words = EMITTED[pair].split()
    pinned = dict(zip(words[::2], words[1::2], strict=True))
    blocks = law(block.step, (*pair, (), 2))
    assert {"".join(map(str, tokens)): str(w) for tokens, w in blocks.items()} == pinned


def test_pinned_coins():
    """For drafts ba: P = (1, 1, 1/2), and h = (1, 1/2); the last coin first."""
    target, _ = COIN
    q = as_distribution(["2/3", "1/3"])
    drafts = [Draft(1, q), Draft(0, q)]
    chance = Traced(Exact())
    block.verify(target, (), drafts, chance)
    tossed = [(step.site, str(step.weights[1])) for step in chance.steps if "accept" in step.site]
    assert tossed == [("accept[1]", "1/2"), ("accept[0]", "1")]


def test_no_coin_is_tossed_for_nothing():
    """For drafts aa: P = (1, 1/2, 1/4), h = (0, 1/4); after both fail, only a token is drawn."""
    target, _ = COIN
    drafts = [Draft(0, as_distribution(["2/3", "1/3"]))] * 2
    chance = Traced(Replayed([0, 0, 1]))
    assert block.verify(target, (), drafts, chance) == (1,)
    assert [asked.site for asked in chance.steps] == ["accept[1]", "accept[0]", "residual"]


HALF = as_distribution(["1/2", "1/2", 0])
NOTHING = HALF * 0


@pytest.mark.parametrize(
    ("drafts", "expected"),
    [
        ([], {(0,): F(1, 2), (1,): F(1, 3), (2,): F(1, 6)}),
        ([Draft(None, NOTHING)], {(0,): F(1, 2), (1,): F(1, 3), (2,): F(1, 6)}),
        ([Draft(None, HALF / 2)], {(0,): F(1, 2), (1,): F(1, 6), (2,): F(1, 3)}),
    ],
    ids=["no draft", "END, all mass", "END, half of it"],
)
def test_nothing_to_accept(drafts, expected):
    """END at once: the token is from norm((p - q)+), p itself if all mass is END's."""
    target = iid_model(ABC, ["1/2", "1/3", "1/6"])
    blocks = exact_distribution(lambda chance: block.verify(target, (), drafts, chance))
    assert blocks == expected


def test_a_token_that_the_target_excludes_is_refused_with_all_after_it():
    """Once P is 0 the target is not asked for more: its contexts could be impossible."""
    target = table_model(ABC, {(): ["1/2", 0, "1/2"], (0,): [1, 0, 0], (0, 0): [0, 0, 1]})
    q = as_distribution(["1/3", "1/3", "1/3"])
    drafts = [Draft(0, q), Draft(1, q), Draft(2, q)]
    blocks = exact_distribution(lambda chance: block.verify(target, (), drafts, chance))
    assert blocks == {(0, 0): F(1)}


def test_disjoint_supports_and_equal_models():
    disjoint = iid_model(ABC, [1, 0, 0]), iid_model(ABC, [0, "1/2", "1/2"])
    assert law(block.step, (*disjoint, (), 2)) == {(0,): F(1)}
    same = hashed_model(ABC, "same")
    assert {len(tokens) for tokens in law(block.step, (same, same, (), 3))} == {4}


@given(models(ABC), models(ABC), st.sampled_from([None, "a", "b"]), st.integers(1, 3))
def test_either_model_may_end_texts_at_its_own_token(target, drafter, eos, lookahead):
    """The target's EOS is c; the drafter stops at another one, or never."""
    ending = type(target)(ABS, target.rows)
    other = type(drafter)(Vocabulary("abc", eos=eos), drafter.rows)
    case = (ending, other, (), lookahead)
    assert is_lossless(block.step, *case)
    assert law(block.step, case) == block_law(ending, (), rows_of(case))


def test_an_accepted_eos_ends_the_block_and_asks_for_nothing_more():
    target = table_model(ABS, {(): [0, 0, 1]})
    drafter = iid_model(ABC, [0, 0, 1])
    assert law(block.step, (target, drafter, (), 3)) == {(2,): F(1)}


def test_no_draft_is_a_draw_from_the_target():
    target, drafter = C
    p = target.next_token(())
    assert law(block.step, (target, drafter, (), 0)) == {(x,): p[x] for x in range(3)}


@pytest.mark.parametrize("pair", [*same_vocabulary_pairs()], ids=lambda pair: pair.name)
def test_floats_have_the_same_law(pair):
    case = (pair.target, pair.drafter, (), 2)
    floats = (as_float(pair.target), as_float(pair.drafter), (), 2)
    paths = enumerate_paths(lambda chance: block.step(*floats, chance))
    blocks = {}
    for path in paths:
        blocks[path.outcome] = blocks.get(path.outcome, 0) + path.weight
    assert total_variation(blocks, law(block.step, case)) < 1e-12


def test_rounding_alone_never_leaves_nothing_to_draw_from():
    """q is p up to the last bit, and every coin is 1 - 2^-53: all refused, p is drawn from."""

    class Unlucky:
        def random(self):
            return 1 - 2**-53

    p = np.array([0.1, 0.2, 0.7])
    nearly = np.nextafter(p, 1)
    target = iid_model(ABC, p)
    for tokens in itertools.product(range(3), repeat=2):
        drafts = [Draft(token, nearly) for token in tokens]
        assert block.verify(target, (), drafts, Sampled(Unlucky())) in {(2,), (*tokens, 2)}


def test_bad_input_is_named():
    target, drafter = COIN
    with pytest.raises(ValueError, match="drafter has another vocabulary than target: use block_"):
        block.step(target, C[1], (), 1, Exact())
    with pytest.raises(ValueError, match="lookahead = -1"):
        block.step(target, drafter, (), -1, Exact())
    with pytest.raises(ValueError, match="drafter has another vocabulary than target: use cond"):
        draft_rows(target, C[1], (), 1)
    with pytest.raises(ValueError, match=r"rows\[\(\)\] has 3 entries: expected 2"):
        block_law(target, (), draft_rows(*C, (), 1))
    with pytest.raises(ValueError, match="lookahead = -1"):
        draft_rows(target, drafter, (), -1)
