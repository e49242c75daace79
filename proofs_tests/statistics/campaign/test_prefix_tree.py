"""The tree of prefixes and the walk of blocks through it, by hand."""

from fractions import Fraction

import numpy as np
import pytest

from specref.models import Model, iid_model
from specref.statistics.campaign import prefix_tree as file
from specref.statistics.campaign.prefix_tree import prefix_tree, starts, walk
from specref.vocabulary import Vocabulary

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
