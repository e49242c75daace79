"""Verification of token trees, by both rules: lossless, closed forms, and pinned fractions."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.bugs.trees import BUGS
from proofs_tests.helpers.published import PINS, models
from proofs_tests.helpers.tree_cases import (
    BRANCHINGS,
    SMALL,
    Case,
    accepted,
    cases,
    expected,
    iteration,
    law,
    length,
    looped,
    prefixes,
    proved,
    shaped,
    top_tree,
)
from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import ngrams, standard, traversal
from specref.algorithms.trees import siblings, topdown
from specref.algorithms.trees.topdown import Node
from specref.chance import Exact, Replayed, Sampled, Traced, enumerate_paths
from specref.distributions import total_variation
from specref.models import as_float, hashed_model, iid_model
from specref.strategies import models as model_of
from specref.theory import multi_draft
from specref.theory import trees as theory

F = Fraction
ABC, ABS = Vocabulary("abc"), Vocabulary("abc", eos="c")
RULES = {"topdown": topdown, "traversal": traversal}
EACH_RULE = pytest.mark.parametrize("rule", RULES)
COIN, S1 = models("A"), models("S1")


@EACH_RULE
@given(case=cases())
def test_lossless(rule, case):
    proof = proved(RULES[rule], case)
    assert proof, proof.difference


@pytest.mark.deep(one_in=2)
@EACH_RULE
@given(case=cases(SMALL))
def test_decode_loops_are_lossless(rule, case):
    assert looped(RULES[rule], case, length=3)


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("bug", BUGS)
def test_the_same_proof_refutes_bugs(bug, counterexample):
    step = partial(BUGS[bug], branching=(2, 1))
    assert counterexample(cases(((2, 1),)), lambda case: is_lossless(step, *iteration(case)))


@EACH_RULE
@given(case=cases())
def test_the_law_and_the_lengths_of_the_block_are_known(rule, case):
    """Without EOS a block is the accepted drafts and one token."""
    blocks = law(RULES[rule], case)
    assert blocks == theory.block_law(
        *case[:4], rule=getattr(theory, rule), replacement=case.replacement
    )
    assert length(blocks) == expected(case, rule)
    if case.target.vocabulary.eos is not None:
        return
    formula = theory.accepted_length_distribution(
        *case[:4], rule=getattr(theory, rule), replacement=case.replacement
    )
    counted = [F(0)] * len(formula)
    for block, weight in blocks.items():
        counted[len(block) - 1] += weight
    assert counted == list(formula)


def test_closed_forms_tell_the_rules_apart(counterexample):
    assert counterexample(
        cases(),
        lambda case: (
            law(topdown, case)
            == theory.block_law(*case[:4], rule=theory.traversal, replacement=case.replacement)
        ),
    )


@given(cases(((), (1,), (1, 1), (1, 1, 1))))
def test_one_branch_is_verified_as_by_standard(case):
    target, drafter, context, branching, _ = case
    alone = exact_distribution(
        lambda chance: standard.step(target, drafter, context, len(branching), chance)
    )
    assert law(topdown, case) == alone


@given(cases(((1,), (2,), (3,))))
def test_siblings_are_verified_by_recursive_rejection(case):
    target, drafter, context, (width,), replacement = case
    p, q = (model.next_token(context) for model in (target, drafter))

    def program(chance):
        drawn = siblings.draw(q, width, chance, "draft", replacement=replacement)
        index, left = siblings.reject_recursively(
            p, q, drawn, chance, "accept", replacement=replacement
        )
        return index is not None, chance.draw(left, "residual") if index is None else drawn[index]

    tokens = exact_distribution(program)
    kept = {(token,): w for (is_kept, token), w in tokens.items() if is_kept}
    assert {x: w for x, w in accepted(case, "topdown").items() if x} == kept
    assert sum(kept.values()) == multi_draft.recursive_rejection(
        p, q, width, replacement=replacement
    )


def tree_name(pin):
    kind = "without" if pin["without_replacement"] else "with"
    return f"{pin['rule']} {pin['inst']} {pin['branching']} {kind} replacement"


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("pin", PINS["tree"], ids=tree_name)
def test_pinned_accepted_lengths(pin):
    """Computed once by an independent program."""
    rule = "traversal" if pin["rule"] == "traversal" else "topdown"
    case = Case(*models(pin["inst"]), (), tuple(pin["branching"]), not pin["without_replacement"])
    assert str(length(law(RULES[rule], case)) - 1) == pin["E_accepted"]
    formula = theory.accepted_length_distribution(
        *case[:4], rule=getattr(theory, rule), replacement=case.replacement
    )
    assert [str(weight) for weight in formula] == pin["depth_law"]


def verified(rule, tree, target, context=()):
    return exact_distribution(lambda chance: RULES[rule].verify(target, context, tree, chance))


@pytest.mark.deep(one_in=2)
@EACH_RULE
@given(case=cases())
def test_the_likeliest_tokens_are_a_tree_too(rule, case):
    """Nothing is drawn, q is one-hot: a match with the target's own draws, the most possible."""
    target, drafter, context, branching, _ = case
    tree = top_tree(drafter, context, branching)
    texts = sorted(prefixes(tree))
    matched = exact_distribution(lambda chance: ngrams.match(target, context, texts, chance))
    assert verified(rule, tree, target, context) == matched


@pytest.mark.deep(one_in=4)
@EACH_RULE
@given(st.data())
def test_siblings_may_come_from_several_drafters(rule, data):
    """SpecInfer: each sibling from its own law, here from two drafters in turn."""
    target, *drafters = (data.draw(model_of(ABS)) for _ in range(3))

    def step(target, drafter, context, lookahead, chance):
        drafts = [
            topdown.draft(each, context, (1, 2), chance, replacement=True) for each in drafters
        ]
        return RULES[rule].verify(target, context, (*drafts[0], *drafts[1]), chance)

    assert is_lossless(step, target, target, (), 2)


@pytest.mark.deep(one_in=2)
@EACH_RULE
@given(st.data())
def test_either_model_may_end_texts_at_its_own_token(rule, data):
    target, drafter = (data.draw(model_of(ABC)) for _ in range(2))
    other = Vocabulary("abc", eos=data.draw(st.sampled_from([None, "a", "b"])))
    pair = type(target)(ABS, target.rows), type(drafter)(other, drafter.rows)
    case = Case(*pair, (), data.draw(st.sampled_from([(2,), (1, 2), (2, 1)])), False)
    assert proved(RULES[rule], case)
    assert law(RULES[rule], case) == theory.block_law(*case[:4], rule=getattr(theory, rule))


@EACH_RULE
@pytest.mark.parametrize("replacement", [False, True])
def test_extremes(rule, replacement):
    """Disjoint supports, equal models, a greedy pair, EOS alone, and no draft."""

    def blocks(p, q, branching, vocabulary=ABC):
        pair = (iid_model(vocabulary, row) for row in (p, q))
        return law(RULES[rule], Case(*pair, (), branching, replacement))

    half = [0, "1/2", "1/2"]
    assert blocks([1, 0, 0], half, (2, 1)) == {(0,): F(1)}
    assert {len(block) for block in blocks(half, half, (2, 1))} == {3}
    assert blocks([0, 1, 0], [0, 1, 0], (3, 1)) == {(1, 1, 1): F(1)}
    assert blocks([0, 0, 1], [0, 0, 1], (2, 2), ABS) == {(2,): F(1)}
    assert blocks(half, [1, 0, 0], ()) == {(1,): F(1, 2), (2,): F(1, 2)}


def test_the_tree_is_drafted_in_order():
    """Without replacement siblings differ and end with the support of q; EOS is a leaf."""
    drafter = iid_model(ABS, ["1/2", 0, "1/2"])
    chance = Traced(Replayed([2, 0, 0, 2]))
    tree = topdown.draft(drafter, (), (3, 2), chance, replacement=False)
    assert [asked.site for asked in chance.steps] == [
        "draft[0]",
        "draft[1]",
        "draft[1][0]",
        "draft[1][1]",
    ]
    assert [(node.token, [str(x) for x in node.q]) for node in tree] == [
        (2, ["1/2", "0", "1/2"]),
        (0, ["1", "0", "0"]),
    ]
    assert [[node.token for node in sibling.children] for sibling in tree] == [[], [0, 2]]


def test_what_is_asked():
    """The second sibling, then its first child, then the bonus token."""
    chance = Traced(Replayed([2, 0, 1, 1, 0, 1, 1, 2]))
    block = topdown.step(*S1, (), 2, chance, branching=(2, 1))
    assert block == (0, 1, 2)
    sites = "draft[0] draft[1] draft[0][0] draft[1][0] accept[0] accept[1] accept[1][0] bonus"
    assert [asked.site for asked in chance.steps] == sites.split()


@EACH_RULE
@pytest.mark.parametrize("branching", BRANCHINGS[:5])
@pytest.mark.parametrize("replacement", [False, True])
def test_floats_have_the_same_law(rule, branching, replacement):
    exact = Case(
        *(hashed_model(ABC, f"{role} floats") for role in "pq"), (), branching, replacement
    )
    floats = exact._replace(target=as_float(exact.target), drafter=as_float(exact.drafter))
    step = shaped(RULES[rule], floats)
    blocks = {}
    for path in enumerate_paths(lambda chance: step(*iteration(floats), chance)):
        blocks[path.outcome] = blocks.get(path.outcome, 0) + path.weight
    assert total_variation(blocks, law(RULES[rule], exact)) < 1e-12


@EACH_RULE
def test_rounding_alone_never_leaves_nothing_to_draw_from(rule):
    """q is p up to the last bit, and every coin is 1 - 2^-53: all refused, p is drawn from."""

    class Unlucky:
        def random(self):
            return 1 - 2**-53

    p = np.array([0.1, 0.2, 0.7])
    nearly = np.nextafter(p, 1)
    below = tuple(Node(token, nearly, ()) for token in range(3))
    tree = tuple(Node(token, nearly, below) for token in range(3))
    block = RULES[rule].verify(iid_model(ABC, p), (), tree, Sampled(Unlucky()))
    assert block[-1] == 2


def test_bad_input_is_named():
    target, drafter = COIN
    for rule in RULES.values():
        with pytest.raises(ValueError, match="drafter has another vocabulary than target"):
            rule.step(target, S1[1], (), 1, Exact())
        with pytest.raises(ValueError, match="lookahead = -1"):
            rule.step(target, drafter, (), -1, Exact())
        with pytest.raises(ValueError, match=r"branching = \(2, 1\): expected lookahead = 1 int"):
            rule.step(target, drafter, (), 1, Exact(), branching=(2, 1))
        with pytest.raises(ValueError, match=r"branching = \(0,\): expected lookahead = 1 int"):
            rule.step(target, drafter, (), 1, Exact(), branching=(0,))
        with pytest.raises(ValueError, match=r"branching = \(1\.5,\): expected lookahead = 1 int"):
            rule.step(target, drafter, (), 1, Exact(), branching=(1.5,))
    with pytest.raises(ValueError, match="drafter has another vocabulary than target"):
        theory.accepted_prefixes(target, S1[1], (), (1,))
    with pytest.raises(ValueError, match=r"branching = \(2, 0\): expected a tuple of integers"):
        theory.accepted_prefixes(target, drafter, (), (2, 0))
