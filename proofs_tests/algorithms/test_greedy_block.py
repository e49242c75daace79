"""Greedy block verification: lossless with its modified target, and that nothing accepts more."""

import contextlib
import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs_tests.helpers.blocks import length
from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import greedy_block, standard
from specref.algorithms.greedy_block import Modification, carry, modified
from specref.algorithms.standard import Draft
from specref.chance import Exact, Sampled, Traced, enumerate_paths
from specref.distributions import as_distribution, total_variation
from specref.models import as_float, hashed_model, iid_model, table_model
from specref.proofs import completed, is_lossless_loop, output_distribution
from specref.proofs.exact import proof
from specref.strategies import iterations, model_pairs, models, vocabularies
from specref.theory import acceptance
from specref.theory import block as jointly
from specref.theory import greedy_block as greedily
from specref.theory.block import draft_rows, length_law, survival, tokens_emitted
from specref.theory.greedy_block import accepted_prefixes, block_law
from specref.verification.rules import prove
from specref.zoo import total_variation_on
from specref.zoo.entry import first_tokens, iterated
from specref.zoo.fixtures import BLOCK_TOKENS, ExactFixture
from specref.zoo.greedy_block import CONTROLS, PAIRS, greedy_iterate
from specref.zoo.greedy_block import ENTRIES as MUTANTS

F = Fraction
AB, ABC, ABS = Vocabulary("ab"), Vocabulary("abc"), Vocabulary("abc", eos="c")
CASES = iterations(model_pairs(), max_lookahead=3)
ENDLESS = iterations(model_pairs(vocabularies(max_tokens=4)), max_lookahead=3)
SMALL = iterations(model_pairs(vocabularies(max_tokens=3, eos=True)), max_lookahead=3)
FEW = settings(max_examples=20)
blocks_of = partial(iterated, greedy_block.iterate)


def tokens_of(theory, target, context, rows):
    """Tokens of one iteration, in closed form."""
    return tokens_emitted(theory.accepted_prefixes(target, context, rows), target.vocabulary)


def loop(iterate, case, tokens):
    """The first tokens of the loop, as a proof that they are the target's."""
    target, drafter, context, lookahead = case
    fixture = ExactFixture("", target, drafter, lookahead, context, tokens)
    return proof(first_tokens(iterate, fixture), target, context, 0)


@given(CASES)
def test_a_step_is_lossless(case):
    verdict = is_lossless(greedy_block.step, *case)
    assert verdict, verdict.difference


@pytest.mark.deep
def test_a_step_is_lossless_on_all_toy_pairs():
    report = prove(greedy_block.step, "standard")
    assert (report.proved, report.refuted, report.raised) == (1296, (), ())


@FEW
@given(SMALL)
def test_the_loop_that_carries_modifications_is_lossless(case):
    """Four tokens at lookahead up to 3: modifications of modifications, and where they end."""
    verdict = loop(greedy_block.iterate, case, 4)
    assert verdict, verdict.difference


@pytest.mark.deep
@FEW
@given(SMALL)
def test_decode_is_that_loop(case):
    target, drafter, context, _ = case
    text = exact_distribution(
        lambda chance: greedy_block.decode(target, drafter, context, 2, 3, chance)
    )
    assert text == completed({(): F(1)}, target, context, 3)


@FEW
@given(SMALL)
def test_a_loop_of_steps_is_lossless(case):
    assert is_lossless_loop(greedy_block.step, *case, 4)


@FEW
@given(SMALL)
def test_a_block_goes_on_with_its_modified_target(case):
    """Blocks, completed by the target that the next iteration gets: p again, or what it was."""
    target, drafter, context, lookahead = case
    for (first, carried), _ in itertools.islice(blocks_of(case).items(), 4):
        if target.vocabulary.ends(first):
            continue
        here = (*context, *first)
        now = modified(target, drafter, here, carried)
        text = {}
        for (emitted, left), weight in blocks_of(
            (target, drafter, here, lookahead), carried
        ).items():
            later = modified(target, drafter, (*here, *emitted), left)
            rest = completed({emitted: weight}, later, here, lookahead + 1)
            text = {x: text.get(x, 0) + rest.get(x, 0) for x in text | rest}
        assert text == completed({(): F(1)}, now, here, lookahead + 1)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_the_same_proof_refutes_mutants(mutant, counterexample):
    """A mutant may also ask for a law that does not exist; that is no refutation."""

    def holds(case):
        with contextlib.suppress(ValueError):
            return bool(loop(mutant.iterate, case, 3))
        return True

    two_drafts = mutant.distances["coin"] > 0
    assert counterexample(SMALL.map(lambda x: (*x[:3], 2 if two_drafts else 3)), holds)


@given(CASES)
def test_the_law_of_the_block_is_known(case):
    target, _, context, _ = case
    blocks = {}
    for (emitted, _), weight in blocks_of(case).items():
        blocks[emitted] = blocks.get(emitted, 0) + weight
    assert blocks == block_law(target, context, draft_rows(*case))
    assert length(blocks) == tokens_of(greedily, target, context, draft_rows(*case))


@given(ENDLESS)
def test_as_much_is_accepted_as_the_joint_laws_overlap(case):
    """1 - TV(p^l, q^l), from the two laws of l tokens."""
    target, drafter, context, lookahead = case
    accepted = survival(accepted_prefixes(target, context, draft_rows(*case)))
    for k in range(lookahead + 1):
        p, q = (completed({(): F(1)}, model, context, k) for model in (target, drafter))
        assert 1 - total_variation(p, q) == (accepted[k] if k < len(accepted) else 0)


@given(CASES)
def test_no_lossless_rule_accepts_a_prefix_more_often(case):
    """It is drafted with q(x), and comes out with p(x); block and token verification do less."""
    target, drafter, context, lookahead = case
    rows = draft_rows(*case)
    greedy = accepted_prefixes(target, context, rows)
    blockwise = jointly.accepted_prefixes(target, context, rows)
    drafts = exact_distribution(
        lambda chance: tuple(d.token for d in standard.draft(drafter, context, lookahead, chance))
    )
    for x, weight in greedy.items():
        p = np.prod([F(1), *(target.next_token((*context, *x[:i]))[y] for i, y in enumerate(x))])
        drafted = sum(w for d, w in drafts.items() if d[: len(x)] == x)
        assert blockwise.get(x, 0) <= weight == min(p, drafted)
    by_token = output_distribution(standard.step, *case)[0]
    jointly_expected = tokens_of(jointly, target, context, rows)
    assert length(by_token) <= jointly_expected <= tokens_of(greedily, target, context, rows)


def test_accepts_more_than_block_verification_on_most_models():
    """30 hashed pairs with up to 4 tokens, lookahead 2 and 3: strictly more on 42 of 60."""
    strict = 0
    for seed, lookahead in itertools.product(range(30), (2, 3)):
        vocabulary = (AB, ABC, Vocabulary("abcd"))[seed % 3]
        target, drafter = (hashed_model(vocabulary, f"{role} {seed}") for role in "pq")
        rows = draft_rows(target, drafter, (), lookahead)
        greedy, blockwise = (tokens_of(theory, target, (), rows) for theory in (greedily, jointly))
        assert greedy >= blockwise
        strict += greedy > blockwise
    assert strict == 42


@given(ENDLESS)
def test_one_draft_leaves_nothing_to_modify(case):
    """Lookahead 1: the rule of token verification, and p is the next target."""
    one = (*case[:3], 1)
    blocks = blocks_of(one)
    assert {carried for _, carried in blocks} == {()}
    assert {b: w for (b, _), w in blocks.items()} == output_distribution(standard.step, *one)[0]


COIN = (BLOCK_TOKENS["coin"].target, BLOCK_TOKENS["coin"].drafter)
C = (BLOCK_TOKENS["c"].target, BLOCK_TOKENS["c"].drafter)
LENGTHS = [
    (COIN, 1, "2/3", "1/3 2/3"),
    (COIN, 2, "4/3", "1/3 0 2/3"),
    (COIN, 3, "50/27", None),
    (C, 1, "2/3", "1/3 2/3"),
    (C, 2, "41/36", None),
    (C, 3, "167/108", None),
]


@pytest.mark.parametrize(("pair", "lookahead", "mean", "lengths"), LENGTHS)
def test_pinned_accepted_lengths(pair, lookahead, mean, lengths):
    """Computed once by an independent program."""
    target, drafter = pair
    law = length_law(accepted_prefixes(target, (), draft_rows(target, drafter, (), lookahead)))
    assert str(sum(k * weight for k, weight in enumerate(law))) == mean
    assert lengths is None or " ".join(map(str, law)) == lengths
    by_tokens = acceptance.standard(target, drafter, (), lookahead)
    assert sum(k * w for k, w in enumerate(by_tokens)) <= F(mean)


def test_pinned_coins():
    """For drafts ab: P = (1, 1/2, 1), and h = (0, 1); for ba: P = (1, 2, 1), and h = (1, 1)."""
    q = as_distribution(["2/3", "1/3"])
    for x, h in (((0, 1), [1]), ((1, 0), [1]), ((0, 0), ["1/4", 0])):
        chance = Traced(Exact())
        greedy_block.verify(COIN[0], (), [Draft(y, q) for y in x], chance)
        coins = [step.weights[1] for step in chance.steps if "accept" in step.site]
        assert coins == [F(coin) for coin in h]


def test_modifications_end_where_they_should():
    """Lookahead 3, all refused twice: until 3 and until 4 tokens of text, then p again."""
    target, drafter = C
    (first,) = {m for (b, m) in blocks_of((*C, (), 3)) if b == (0,)}
    assert first == (Modification(F(2), 3),)
    second = {m for (b, m) in blocks_of((*C, (0,), 3), first) if len(b) == 1}
    assert {tuple(change.end for change in carried) for carried in second} == {(3, 4)}
    now = modified(target, drafter, (0,), first)
    assert (now.next_token((0,)) != target.next_token((0,))).any()
    assert (now.next_token((0, 1, 1)) == target.next_token((0, 1, 1))).all()


def test_few_modifications_hold_at_a_time():
    """However long the text: disjoint supports refuse everything, and nothing is owed."""
    disjoint = iid_model(ABC, [1, 0, 0]), iid_model(ABC, [0, "1/2", "1/2"])
    assert blocks_of((*disjoint, (), 3)) == {((0,), ()): F(1)}
    rng = np.random.default_rng(7)
    carried, context = (), ()
    for _ in range(60):
        emitted, carried = greedy_block.iterate(*C, context, 4, Sampled(rng), carried)
        context += emitted
        assert len(carried) <= 3
        assert all(change.ratio > 1 and change.end > len(context) for change in carried)


def test_what_cannot_be_drafted_is_not_modified():
    """The drafter excludes c: after it p follows; and its own EOS ends what it can draft."""
    target, drafter = iid_model(ABC, ["1/2", "1/4", "1/4"]), iid_model(ABC, ["3/4", "1/4", 0])
    own = (Modification(1, 3),)
    assert carry(target, drafter, (), (2,), own) == ()
    ending = iid_model(Vocabulary("abc", eos="b"), ["1/2", "1/4", "1/4"])
    assert carry(target, ending, (), (1,), own) == ()
    assert carry(target, drafter, (), (1,), own) == (Modification(F(1), 3),)


def test_disjoint_supports_and_equal_models():
    same = hashed_model(ABC, "same")
    blocks = blocks_of((same, same, (), 3))
    assert {(len(emitted), carried) for emitted, carried in blocks} == {(4, ())}
    disjoint = iid_model(ABC, [1, 0, 0]), iid_model(ABC, [0, "1/2", "1/2"])
    assert output_distribution(greedy_block.step, *disjoint, (), 2)[0] == {(0,): F(1)}


@pytest.mark.deep
@FEW
@given(models(ABC), models(ABC), st.sampled_from([None, "a", "b"]), st.integers(1, 3))
def test_either_model_may_end_texts_at_its_own_token(target, drafter, eos, lookahead):
    """The target's EOS is c; the drafter stops at another one, or never."""
    ending = type(target)(ABS, target.rows)
    other = type(drafter)(Vocabulary("abc", eos=eos), drafter.rows)
    case = (ending, other, (), lookahead)
    assert loop(greedy_block.iterate, case, 4)
    assert is_lossless(greedy_block.step, *case)


def test_a_token_that_the_target_excludes_is_refused_with_all_after_it():
    """Once P is 0 the target is not asked for more: its contexts could be impossible."""
    target = table_model(ABC, {(): ["1/2", 0, "1/2"], (0,): [1, 0, 0], (0, 0): [0, 0, 1]})
    q = as_distribution(["1/3", "1/3", "1/3"])
    drafts = [Draft(0, q), Draft(1, q), Draft(2, q)]
    blocks = exact_distribution(lambda chance: greedy_block.verify(target, (), drafts, chance))
    assert blocks == {(0, 0): F(1)}


def test_what_is_left_of_a_text_may_be_nothing_to_verify():
    """END, a draft of None, is refused like a token that the target lacks."""
    target = iid_model(ABC, ["1/2", "1/3", "1/6"])
    ended = [Draft(None, as_distribution(["1/2", "1/2", 0]) / 2)]
    blocks = exact_distribution(lambda chance: greedy_block.verify(target, (), ended, chance))
    assert blocks == {(0,): F(1, 2), (1,): F(1, 6), (2,): F(1, 3)}


@pytest.mark.deep
def test_floats_have_the_same_law():
    for name in ("coin", "m", "c", "deep", "eos"):
        case = BLOCK_TOKENS[name].target, BLOCK_TOKENS[name].drafter, (), 3
        floats = (as_float(case[0]), as_float(case[1]), (), 3)
        blocks = {}
        for path in enumerate_paths(lambda chance, c=floats: greedy_block.step(*c, chance)):
            blocks[path.outcome] = blocks.get(path.outcome, 0) + path.weight
        exact = output_distribution(greedy_block.step, *case)[0]
        assert total_variation(blocks, exact) < 1e-12


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="drafter has another vocabulary than target"):
        greedy_block.step(COIN[0], C[1], (), 1, Exact())
    with pytest.raises(ValueError, match="lookahead = -1"):
        greedy_block.step(*COIN, (), -1, Exact())
    with pytest.raises(ValueError, match=r"rows\[\(\)\] has 3 entries: expected 2"):
        block_law(COIN[0], (), draft_rows(*C, (), 1))


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("name", PAIRS)
def test_the_parts_together_are_the_clean_rule(name):
    fixture = PAIRS[name]
    law = first_tokens(greedy_iterate(), fixture)
    assert law == first_tokens(greedy_block.iterate, fixture) == fixture.continued()


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("entry", [*MUTANTS, *CONTROLS], ids=lambda entry: entry.id)
def test_entries_are_lossy_by_their_exact_distances_or_lossless(entry):
    found = {name: total_variation_on(entry, PAIRS[name]) for name in PAIRS}
    assert found == (dict.fromkeys(PAIRS, 0) if entry.lossless else entry.distances)
    assert entry.lossless == (not any(entry.distances.values()))
    assert all(text.endswith(".") for text in (entry.symptom, entry.hint))


def test_decode_ends_at_the_end_of_the_target_alone():
    """The drafter's EOS, b, is a token like any other to the target; the target's own is c."""
    target = iid_model(ABS, ["1/4", "1/2", "1/4"])
    drafter = iid_model(Vocabulary("abc", eos="b"), ["1/4", "1/4", "1/2"])
    text = exact_distribution(
        lambda chance: greedy_block.decode(target, drafter, (), 1, 3, chance)
    )
    assert text == completed({(): F(1)}, target, (), 3)
    assert {len(tokens) for tokens in text} == {1, 2, 3}
