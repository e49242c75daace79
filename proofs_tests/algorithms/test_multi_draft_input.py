"""Several drafts and trees: bad input is refused by name, and every site has its own."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from specref import Vocabulary
from specref.algorithms import block, greedy_block, multi_draft, standard, traversal
from specref.algorithms.standard import Draft
from specref.algorithms.trees import topdown, transport
from specref.algorithms.trees.k_seq import k_seq_law, smallest_rho
from specref.algorithms.trees.multi_draft import k_seq, optimal, spechub, top_drafts
from specref.algorithms.trees.siblings import reject_recursively
from specref.algorithms.trees.topdown import Node, branching_of
from specref.chance import Exact, Replayed, Traced, enumerate_paths
from specref.distributions import as_distribution, corrected
from specref.models import iid_model
from specref.proofs import output_distribution
from specref.theory import multi_draft as theory
from specref.theory import trees as tree_theory

F = Fraction
AB, ABC = Vocabulary("ab"), Vocabulary("abc")
HALF = as_distribution(["1/2", "1/2"])
P, Q = as_distribution(["1/2", "1/3", "1/6"]), as_distribution(["1/6", "1/3", "1/2"])
TARGET, DRAFTER = iid_model(ABC, P), iid_model(ABC, Q)
BOTH_NUMBERS = pytest.mark.parametrize("kind", [object, np.float64], ids=["exact", "floats"])

COUNTED = {
    "recursive, with": partial(theory.recursive_rejection, P, Q, replacement=True),
    "recursive, without": partial(theory.recursive_rejection, P, Q, replacement=False),
    "k-SEQ": lambda drafts: theory.k_seq(P, Q, drafts, 1),
    "k-SEQ law": lambda drafts: k_seq_law(P, Q, drafts, 1),
    "smallest rho": partial(smallest_rho, P, Q),
    "top drafts": partial(theory.top_drafts, P, Q),
    "optimum": partial(transport.optimal_acceptance_independent, P, Q),
    "law": partial(transport.drafts_law, Q, replacement=True),
    "a step that drafts nothing": lambda drafts: multi_draft.step(
        TARGET, DRAFTER, (), 0, Exact(), drafts=drafts
    ),
    "SpecHub": lambda drafts: spechub(P, Q, drafts, Exact(), 0),
}


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("drafts", [0, -1, 2.0, True, "2", None])
def test_drafts_are_counted(name, drafts):
    with pytest.raises(ValueError, match=f"drafts = {drafts!r}: expected an integer >= 1"):
        COUNTED[name](drafts)


LAWS = [
    ({(0, 3): F(1)}, r"law\[\(0, 3\)\]: token 3 is out of range, expected 0 to 2"),
    ({(-1,): F(1)}, r"law\[\(-1,\)\]: token -1 is out of range"),
    ({(0,): F(1, 2)}, "law sums to 1/2: expected 1"),
    ({}, "law sums to 0: expected 1"),
    ({(0,): F(3, 2), (1,): F(-1, 2)}, r"law\[\(1,\)\] = -1/2: expected a non-negative"),
]
READERS = (
    transport.optimal_acceptance,
    transport.coupling,
    transport.optimal_rows,
    theory.matching,
)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize(("law", "message"), LAWS)
def test_laws_of_drafts_are_laws(reader, law, message):
    with pytest.raises(ValueError, match=message):
        reader(P, law)


def test_no_draft_is_accepted_where_there_is_none():
    law = {(): F(1, 4), (0,): F(3, 4)}
    assert transport.optimal_acceptance(HALF, law) == (F(1, 2), (0,))
    assert transport.optimal_acceptance(HALF, {(): F(1)}) == (0, ())
    assert sum(transport.coupling(HALF, law).values()) == F(1, 2)


@pytest.mark.parametrize(
    "judge",
    [
        partial(theory.recursive_rejection, drafts=2, replacement=True),
        partial(theory.top_drafts, drafts=2),
        partial(smallest_rho, drafts=2),
        partial(theory.k_seq, drafts=2, rho=2),
        partial(transport.optimal_acceptance_independent, drafts=2),
    ],
)
def test_two_laws_are_of_one_kind(judge):
    with pytest.raises(ValueError, match="q has length 3: expected 2, as p has"):
        judge(HALF, Q)
    with pytest.raises(TypeError, match="q has floats, p has not: expected one kind"):
        judge(P, Q.astype(np.float64))
    with pytest.raises(TypeError, match="p has floats, q has not: expected one kind"):
        judge(P.astype(np.float64), Q)


@pytest.mark.parametrize("branching", [(1.5,), (0,), (True,), 2, "2", ("2",), (2, None)])
def test_branchings_are_counts(branching):
    with pytest.raises(ValueError, match=r"branching = .*: expected a tuple of integers >= 1"):
        tree_theory.accepted_prefixes(TARGET, DRAFTER, (), branching)
    for rule in (topdown, traversal):
        with pytest.raises(ValueError, match=r"branching = .*: expected lookahead = 1 integers"):
            rule.step(TARGET, DRAFTER, (), 1, Exact(), branching=branching)


@pytest.mark.parametrize("rule", [standard, block, greedy_block, topdown, traversal])
@pytest.mark.parametrize("token", [0, -1, 3])
@BOTH_NUMBERS
def test_a_draft_that_its_q_cannot_draw_is_refused(rule, token, kind):
    q = np.array([F(0), F(1, 2), F(1, 2)]).astype(kind)
    tree = rule in (topdown, traversal)
    drafts = (Node(token, q, ()),) if tree else [Draft(token, q)]
    with pytest.raises(ValueError, match=rf"draft = {token}: expected a token that the q"):
        rule.verify(iid_model(ABC, P.astype(kind)), (), drafts, Exact())


@pytest.mark.parametrize("token", [0, -1, 3])
@BOTH_NUMBERS
def test_a_sibling_that_its_q_cannot_draw_is_refused(token, kind):
    q = np.array([F(0), F(1, 2), F(1, 2)]).astype(kind)
    with pytest.raises(ValueError, match=rf"siblings\[1\] = {token}: expected a token that what"):
        reject_recursively(
            np.array([F(1), F(0), F(0)]).astype(kind),
            q,
            (1, token),
            Exact(),
            "accept[0]",
            replacement=True,
        )


def test_a_tree_has_two_siblings_at_its_root_unless_told_otherwise():
    assert branching_of(3) == (2, 1, 1)
    assert branching_of(0) == ()
    for rule in (topdown, traversal):
        laws = [
            output_distribution(partial(rule.step, branching=widths), TARGET, DRAFTER, (), 2)[0]
            for widths in (None, (2, 1), (1, 2))
        ]
        assert laws[0] == laws[1] != laws[2]


def test_the_residual_that_an_accepted_sibling_was_verified_against():
    for choices, expected in (([1], P), ([0, 1], corrected(P, Q))):
        index, left = reject_recursively(
            P, Q, (2, 0), Replayed(choices), "accept[0]", replacement=True
        )
        assert index == len(choices) - 1
        assert (left == expected).all()


def asked(step, target=TARGET, drafter=DRAFTER, lookahead=2):
    """{(sites in their order, without what is between them): block} over all paths of chance."""

    def program(chance):
        traced = Traced(chance)
        emitted = step(target, drafter, (), lookahead, traced)
        return tuple(decision.site for decision in traced.steps), len(emitted)

    return {path.outcome for path in enumerate_paths(program)}


RULES = {
    "recursive": (multi_draft.recursive_rejection, "draft0 draft1 accept0 accept1 residual"),
    "matching": (multi_draft.matching, "draft0 draft1 target"),
    "k-SEQ": (k_seq, "draft0 draft1 accept0 accept1 residual"),
    "top drafts": (top_drafts, "draft0 accept0 residual"),
    "SpecHub": (spechub, "draft0 draft1 accept residual"),
    "optimal": (optimal, "draft0 draft1 token"),
}


def at(depth, names):
    """``accept1`` is ``accept[depth][1]``; ``residual`` is not of a depth."""
    stems = [(name.rstrip("01"), name[-1]) for name in names.split()]
    return {
        stem if stem == "residual" else f"{stem}[{depth}]" + (f"[{j}]" if j in "01" else "")
        for stem, j in stems
    }


@pytest.mark.parametrize("name", RULES)
def test_every_site_has_its_name(name):
    rule, names = RULES[name]
    paths = asked(partial(multi_draft.step, rule=rule))
    assert {site for sites, _ in paths for site in sites} == {
        *at(0, names),
        *at(1, names),
        "bonus",
    }
    for sites, length in paths:
        assert (sites[-1] == "bonus") == (length == 3)
        assert ("bonus" in sites) == (length == 3)
        assert any("[1]" in site[5:9] for site in sites) == (length > 1)


@pytest.mark.parametrize("rule", [standard, block, topdown, traversal])
def test_a_residual_ends_short_blocks_and_a_bonus_full_ones(rule):
    for sites, length in asked(rule.step):
        assert sites[-1] == ("bonus" if length == 3 else "residual")
        assert not {"bonus", "residual"} & {*sites[:-1]}


@pytest.mark.parametrize("rule", [topdown, traversal])
def test_a_tree_without_drafts_asks_for_a_bonus_alone(rule):
    assert asked(rule.step, lookahead=0) == {(("bonus",), 1)}


def test_nothing_is_drafted_after_the_end_of_the_drafter():
    """Its EOS, and not the target's: b ends what it drafts, though not the block."""
    drafter = iid_model(Vocabulary("abc", eos="b"), Q)
    chance = Traced(Replayed([1, 0, 1, 2]))
    assert multi_draft.step(TARGET, drafter, (), 2, chance) == (1, 2)
    sites = [decision.site for decision in chance.steps]
    assert sites == ["draft[0][0]", "draft[0][1]", "accept[0][0]", "bonus"]


def test_the_end_of_the_target_does_not_end_the_drafter():
    """Tokens so far end the text of the target at c; the drafter's own EOS is b."""
    target, drafter = iid_model(Vocabulary("abc", eos="c"), P), iid_model(ABC, Q)
    chance = Traced(Replayed([2, 0, 1]))
    assert multi_draft.step(target, drafter, (), 2, chance) == (2,)
    assert [decision.site for decision in chance.steps][-1] == "accept[0][0]"
