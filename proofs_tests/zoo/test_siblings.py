"""Mutants of several drafts, of trees and of traversal: lossy by exactly so much; controls: exact.

Those of greedy block verification are in `test_greedy_block`.
"""

from fractions import Fraction
from functools import partial

import pytest

from specref import is_lossless
from specref.algorithms import multi_draft, traversal
from specref.algorithms.trees import topdown
from specref.distributions import total_variation
from specref.models import iid_model
from specref.theory import multi_draft as theory
from specref.vocabulary import Vocabulary
from specref.zoo import ALL, siblings, trees
from specref.zoo.fixtures import FIXTURES, ExactFixture
from specref.zoo.parts.siblings import PAIRS, at_positions, changed, drawn_independently, judging
from specref.zoo.trees import traversed, with_rows, with_tree

F = Fraction
ENTRIES = (*siblings.ENTRIES, *trees.ENTRIES)


def proof(entry, pair):
    case = pair.target, pair.drafter, pair.context, pair.lookahead
    return is_lossless(entry.on(pair), *case)


def first_token(entry, pair):
    law = dict.fromkeys(range(len(pair.target.vocabulary)), F(0))
    for block, weight in pair.blocks(entry.step).items():
        law[block[0]] += weight
    return [str(weight) for weight in law.values()]


CLEAN = {
    "siblings": (at_positions(judging()), multi_draft.recursive_rejection),
    "siblings with replacement": (
        at_positions(judging(), drawn_independently),
        partial(multi_draft.recursive_rejection, replacement=True),
    ),
}
TREES = {
    "trees": (with_tree(with_rows(lambda context, tree, node: (*context, node.token))), topdown),
    "traversal": (
        with_tree(traversed(lambda p, node, a: traversal.refused(p, node.q, a))),
        traversal,
    ),
}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("name", ["s1", "m3", "c"])
def test_the_parts_together_are_the_clean_rules(name):
    pair = PAIRS[name]
    plain = ExactFixture(name, pair.target, pair.drafter, pair.lookahead)
    for step, rule in CLEAN.values():
        clean = partial(multi_draft.step, drafts=pair.options["branching"][0], rule=rule)
        assert pair.blocks(step) == plain.blocks(clean)
    for step, rule in TREES.values():
        assert pair.blocks(step) == pair.blocks(rule.step)


def test_pinned_laws_of_the_survey():
    """Computed once by an independent program, or from the public code itself."""
    pins = {
        "siblings-judged-apart": ("m", ["37/144", "17/72", "17/144", "7/18"]),
        "siblings-duplicates-skipped": ("m", ["3/8", "1/6", "1/12", "3/8"]),
        "traversal-knows-the-siblings-alone": ("s1", ["2/3", "0", "1/3"]),
    }
    for mutant, (name, law) in pins.items():
        assert first_token(ALL[mutant], PAIRS[name]) == law


def test_medusas_nucleus_for_its_own_two_likeliest_tokens():
    """Run on the public code: (.655, .283, .062)."""
    p = iid_model(Vocabulary("abc"), ["1/2", "1/3", "1/6"])
    pair = ExactFixture("medusa", p, p, 1, options={"branching": (2,)})
    entry = ALL["siblings-each-with-its-own-draw"]
    assert first_token(entry, pair) == ["2/3", "5/18", "1/18"]
    assert proof(entry, pair).total_variation == F(1, 6)


def test_one_certain_draft_verified_with_soft_q():
    """With one sibling it is the argmax draft of `standard`: TV 1/3 on M."""
    m = FIXTURES["m"]
    pair = ExactFixture("m1", m.target, m.drafter, 1, options={"branching": (1,)})
    entry = ALL["siblings-top-with-soft-q"]
    assert first_token(entry, pair) == ["2/3", "0", "1/6", "1/6"]


def test_the_order_of_drawing_matters_without_replacement_only():
    for name in ("s1", "m", "m3", "c"):
        pair = PAIRS[name]
        swapped = at_positions(changed(lambda siblings: siblings[::-1]))
        assert total_variation(pair.output(swapped), pair.continued()) > F(1, 30), name
        assert proof(ALL["siblings-last-first"], pair).lossless


def accepted(entry, pair):
    """E[accepted] at lookahead 1, where an accepted draft is followed by a bonus token."""
    blocks = pair.blocks(entry.step)
    return sum(weight for block, weight in blocks.items() if len(block) == 2)


def test_what_controls_are_said_to_accept():
    pair = PAIRS["m3"]
    p, q = pair.target.next_token(()), pair.drafter.next_token(())
    clean_rule = theory.recursive_rejection(p, q, 3, replacement=False)
    top = ALL["siblings-top-is-certain"]
    assert accepted(top, pair) == sum(sorted(p[i] for i in (1, 2, 3)))
    for less in ("siblings-drawn-are-certain", "siblings-matched-by-one-draw"):
        assert accepted(ALL[less], pair) < clean_rule
    s1 = PAIRS["s1"]
    rows = s1.target.next_token(()), s1.drafter.next_token(())
    sequential = accepted(ALL["siblings-top-and-one"], s1)
    assert (sequential, theory.top_drafts(*rows, 2)) == (F(7, 9), F(5, 6))


def test_merged_siblings_are_skipped_duplicates():
    """On trees of one level: verified in the order of drawing, three siblings too."""
    mutants = [ALL[id_] for id_ in ("siblings-duplicates-skipped", "tree-duplicates-merged")]
    for name in ("s1", "m", "m3"):
        pair = PAIRS[name]
        skipped, merged = (pair.blocks(mutant.step) for mutant in mutants)
        assert skipped == merged, name


def test_trees_that_are_given_have_the_law_of_trees_that_are_drafted():
    """What a mutant does at positions is what it does with a whole tree, without replacement."""
    step = with_tree(ALL["siblings-rejected-only-zeroed"].verify_tree)
    for name in ("s1", "m3", "c"):
        assert PAIRS[name].blocks(step) == PAIRS[name].blocks(
            ALL["siblings-rejected-only-zeroed"].step
        )
