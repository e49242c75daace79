"""The tree of prefixes and the walk of blocks through it, by hand."""

import itertools
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from specref.models import Model, iid_model
from specref.statistics.campaign import prefix_tree as file
from specref.statistics.campaign.prefix_tree import (
    PrefixTree,
    as_blocks,
    as_drafts,
    check_ids,
    fitted,
    impossible_traces,
    prefix_tree,
    starts,
    walk,
)
from specref.vocabulary import Tokens, Vocabulary

# "c" ends a text; "b" is impossible after "a".
TARGET = Model(
    Vocabulary("abc", eos="c"),
    lambda context: [0.5, 0.0, 0.5] if context[-1:] == (0,) else [0.25, 0.5, 0.25],
)
# It shares "b" and "a", in another order, and has no "c".
DRAFTER = iid_model(Vocabulary("xba"), [0.5, 0.25, 0.25])
TREE = prefix_tree(TARGET, DRAFTER, (), 1)


def test_the_tree_by_hand() -> None:
    assert TREE.prefixes == ((), (0,), (1,))
    assert TREE.p.tolist() == [[0.25, 0.5, 0.25], [0.5, 0, 0.5], [0.25, 0.5, 0.25]]
    assert TREE.q.tolist() == [[0.25, 0.25, 0]] * 3
    assert TREE.child.tolist() == [[1, 2, -1], [-1] * 3, [-1] * 3]
    assert TREE.position.tolist() == [0, 1, 1]
    assert TREE.length == 2
    assert TREE.leaves.tolist() == [[False, False, True], [True, False, True], [True] * 3]
    # c; aa, ac; ba, bb, bc
    assert TREE.law.tolist() == [0.25, 0.125, 0.125, 0.125, 0.25, 0.125]


def test_contexts_and_lengths_are_those_that_are_given() -> None:
    tree = prefix_tree(TARGET, DRAFTER, (0,), 3, length=1)
    assert (tree.prefixes, tree.length, tree.context, tree.lookahead) == (((),), 1, (0,), 3)
    assert tree.p.tolist() == [[0.5, 0, 0.5]]
    assert prefix_tree(TARGET, DRAFTER).prefixes == TREE.prefixes
    unread = prefix_tree(TARGET, DRAFTER, (2,), 0)  # the drafter cannot spell "c"
    assert unread.q.tolist() == [[0, 0, 0]]


def test_rows_that_miss_one_by_rounding_are_divided_by_their_sum() -> None:
    near = Model(Vocabulary("ab"), lambda context: [0.5, 0.5 + 5e-10])
    assert prefix_tree(near, near, (), 0).p.sum() == pytest.approx(1, abs=1e-15)


def test_completed_blocks_keep_what_was_counted_and_add_the_law_where_blocks_ended() -> None:
    counts = np.array([[4.0, 2.0, 2.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    # Of 4 blocks that began with a, 2 ended there; of 2 with b, both; 2 of 10 were impossible.
    found = TREE.completed(counts, 10)
    first = counts[0] + 2 * TREE.p[0]
    after_a = counts[1] + (first[0] - 2) * TREE.p[1]
    after_b = first[1] * TREE.p[2]
    assert found == pytest.approx([first[2], after_a[0], after_a[2], *after_b])


def test_large_trees_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "MAX_CELLS", 9)
    assert prefix_tree(TARGET, DRAFTER, (), 1).p.size == 9
    monkeypatch.setattr(file, "MAX_CELLS", 8)
    with pytest.raises(ValueError, match="the prefix tree has more than 8 cells: use observe"):
        prefix_tree(TARGET, DRAFTER, (), 1)


def test_a_walk_by_hand() -> None:
    blocks = np.array([[0, 0], [1, -1], [2, -1], [0, 1], [2, 0], [1, 2]])
    nodes, bad = walk(TREE, blocks)
    assert nodes.tolist() == [[0, 1], [0, -1], [0, -1], [0, 1], [0, -1], [0, 2]]
    assert bad.tolist() == [3, 4]  # b after a, and what goes on after EOS


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([[0], [3]], r"blocks\[1, 0\] = 3: expected a token id < 3, or -1"),
        ([[0], [-1]], "blocks has an empty block: expected at least one token in each"),
    ],
)
def test_what_is_no_block_is_refused(blocks: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        walk(TREE, np.array(blocks))


def test_starts_of_blocks_add_up() -> None:
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    mass = starts(TREE, {(0, 2): half, (0, 0): quarter, (2,): quarter, (1, 1, 0): half})
    assert mass.tolist() == [[0.75, 0.5, 0.25], [0.25, 0, 0.5], [0, 0.5, 0]]


PADDED = [[2, -1, -1], [0, 1, 0], [-1, -1, -1]]


@pytest.mark.parametrize(
    "blocks",
    [
        [(2,), (0, 1, 0), ()],
        ([2, -1], [0, 1, 0], [-1]),
        [np.array([2]), (np.int32(0), np.int8(1), 0), ()],
        np.array(PADDED, dtype=np.int8),
        np.array(PADDED),
    ],
)
def test_blocks_are_one_array(blocks: Any) -> None:
    array = as_blocks(blocks)
    assert array.tolist() == PADDED
    assert array.dtype == np.int64
    assert array is not blocks


def test_no_blocks_are_an_array_without_rows() -> None:
    assert as_blocks([]).shape == (0, 0)
    assert as_blocks([(), ()]).shape == (2, 0)
    assert as_blocks(np.zeros((0, 4), dtype=int)).shape == (0, 4)


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        (np.zeros((1, 2)), TypeError, "drafts has dtype float64: expected integers"),
        (np.ones((1, 2), dtype=bool), TypeError, "drafts has dtype bool: expected integers"),
        (
            [(0,), (1, 0.5)],
            TypeError,
            "drafts has tokens of dtype float64, or bool: expected integers",
        ),
        (
            [(0,), (1, True)],
            TypeError,
            "drafts has tokens of dtype int64, or bool: expected integers",
        ),
        (np.zeros(3, dtype=int), ValueError, "drafts has shape (3,): expected two dimensions"),
        (
            np.zeros((1, 2, 3), dtype=int),
            ValueError,
            "drafts has shape (1, 2, 3): expected two dimensions",
        ),
        (
            [(0, 1), (0, -2), (-3,)],
            ValueError,
            "drafts[1, 1] = -2: expected a token id, or -1 for none",
        ),
        (
            [(0, 1, 1), (0, -1, 1), (-1, 0)],
            ValueError,
            "drafts[1] = [ 0 -1  1]: a token follows padding",
        ),
        (
            np.array([[0, -1, -1], [-1, 0, -1], [-1, 2, -1]]),
            ValueError,
            "drafts[1] = [-1  0 -1]: a token follows padding",
        ),
    ],
)
def test_what_is_no_block_is_named(blocks: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        as_blocks(blocks, "drafts")


def test_blocks_are_fitted_to_a_length() -> None:
    blocks = np.array([[2, -1, -1], [0, 1, -1]])
    for length in (2, 3, 5):
        padding = [-1] * (length - 2)
        assert fitted(blocks, length).tolist() == [[2, -1, *padding], [0, 1, *padding]]
    with pytest.raises(ValueError, match=r"^blocks\[1\] has more than 1 tokens$"):
        fitted(np.vstack([blocks, blocks]), 1)
    with pytest.raises(ValueError, match=r"^blocks\[0\] has more than 0 tokens$"):
        fitted(blocks, 0)


def test_ids_are_below_the_size() -> None:
    check_ids(np.array([[0, 2, -1]]), 3, "drafts")
    for tokens, place in (([[0, 3], [3, 3]], "[0, 1] = 3"), ([[0, 2], [-2, 4]], "[1, 0] = -2")):
        message = f"drafts{place}: expected a token id < 3, or -1"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            check_ids(np.array(tokens), 3, "drafts")


ABC = Vocabulary("abc")


def tree_of(p: list, q: list, lookahead: int = 1) -> PrefixTree:
    return prefix_tree(iid_model(ABC, p), iid_model(ABC, q), (), lookahead)


def wrong(tree: PrefixTree, pairs: list[tuple[Tokens, Tokens]]) -> list[int]:
    """The places of those (drafts, block) that are impossible."""
    drafts = np.array([drafts for drafts, _ in pairs])
    longest = tree.length
    blocks = np.array([(*block, *[-1] * (longest - len(block))) for _, block in pairs])
    nodes, bad = walk(tree, blocks)
    assert not len(bad)
    return impossible_traces(tree, blocks, nodes, drafts).tolist()


def test_a_draft_is_rejected_where_p_is_smaller_and_replaced_where_it_is_larger() -> None:
    tree = tree_of(["1/2", "3/10", "1/5"], ["1/5", "3/10", "1/2"])
    pairs = [((draft,), (token,)) for draft, token in itertools.product(range(3), repeat=2)]
    # Where p = q rounding may do either.
    assert [pairs[i] for i in wrong(tree, pairs)] == [
        ((0,), (1,)),
        ((0,), (2,)),
        ((1,), (2,)),
    ]


@pytest.mark.parametrize(("relative", "found"), [(0.5e-4, []), (2e-4, [0])])
def test_a_difference_of_one_in_ten_thousand_may_be_rounding(relative: float, found: list) -> None:
    kept = 0.3 / (1 + relative)  # a draft with p above q by so much was rejected
    assert wrong(tree_of([0.3, 0.5, 0.2], [kept, 0.4, 0.6 - kept]), [((0,), (1,))]) == found
    more = 0.3 * (1 + relative)  # a token with p below q by so much replaces another
    assert wrong(tree_of([0.3, 0.5, 0.2], [more, 0.3, 0.7 - more]), [((2,), (0,))]) == found


def test_only_the_first_difference_of_a_block_is_told() -> None:
    tree = tree_of(["1/2", "3/10", "1/5"], ["1/5", "3/10", "1/2"], 2)
    pairs: list[tuple[Tokens, Tokens]] = [
        ((2, 0), (0, 1)),  # rejected with reason; what follows was not drafted here
        ((0, 0), (0, 1)),  # rejected without
        ((0, 0), (0, 0, 2)),  # both accepted
        ((0, -1), (0, 1)),  # one draft, accepted, and a bonus token
        ((-1, -1), (2,)),  # no drafts
    ]
    assert wrong(tree, pairs) == [1]


def test_drafts_have_a_row_for_each_block_and_a_column_for_each_position() -> None:
    tree = tree_of(["1/2", "3/10", "1/5"], ["1/5", "3/10", "1/2"], 2)
    assert as_drafts(tree, [(0, 1), (2,)], 2).tolist() == [[0, 1], [2, -1]]
    for drafts, shape in ((None, "None"), ([(0, 1)], r"\(1, 2\)"), ([(0,), (1,)], r"\(2, 1\)")):
        with pytest.raises(ValueError, match=rf"drafts has shape {shape}: .* expects \(2, 2\)"):
            as_drafts(tree, drafts, 2)
    with pytest.raises(ValueError, match=r"drafts\[0, 1\] = 3: expected a token id < 3, or -1"):
        as_drafts(tree, [(0, 3), (2, 1)], 2)
