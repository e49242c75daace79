"""Which drafts and blocks exclude each other under standard verification, one by one."""

import itertools

import numpy as np
import pytest

from specref.models import iid_model
from specref.statistics.campaign.prefix_tree import PrefixTree, prefix_tree, walk
from specref.statistics.campaign.traces import as_drafts, impossible_traces
from specref.vocabulary import Tokens, Vocabulary

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
