"""The view "trace": blocks that standard speculative decoding cannot make of its drafts."""

from collections.abc import Sequence

import numpy as np

from specref.arrays import Ints
from specref.statistics.campaign.blocks import as_blocks, check_ids
from specref.statistics.campaign.prefix_tree import PrefixTree
from specref.vocabulary import Tokens

GUARD = 1e-4


def impossible_traces(tree: PrefixTree, blocks: Ints, nodes: Ints, drafts: Ints) -> Ints:
    """Rows that standard speculative decoding cannot produce from these drafts.

    A draft with p >= q is never rejected, and what replaces a rejected one has p > q. A
    relative guard of 1e-4 keeps rounding from looking like a finding.
    """
    wrong = np.zeros(len(blocks), dtype=bool)
    agreed = np.ones(len(blocks), dtype=bool)
    for j in range(min(drafts.shape[1], blocks.shape[1])):
        at = agreed & (nodes[:, j] >= 0) & (drafts[:, j] >= 0)
        node, token, draft = nodes[at, j], blocks[at, j], drafts[at, j]
        differs = token != draft
        p, q = tree.p[node], tree.q[node]
        rows = np.arange(len(node))
        sure = p[rows, draft] > q[rows, draft] * (1 + GUARD)
        not_residual = p[rows, token] < q[rows, token] * (1 - GUARD)
        wrong[at] |= differs & (sure | not_residual)
        agreed[at] = ~differs
    return np.flatnonzero(wrong)


def as_drafts(tree: PrefixTree, drafts: Sequence[Tokens] | Ints | None, trials: int) -> Ints:
    """Drafts as one array, padded with -1.

    * raises `TypeError`, `ValueError`: They are missing, of the wrong shape, or no token ids.
    """
    expected = (trials, tree.lookahead)
    drafted = None if drafts is None else as_blocks(drafts, "drafts")
    if drafted is None or drafted.shape != expected:
        shape = None if drafted is None else drafted.shape
        raise ValueError(f"drafts has shape {shape}: the view trace expects {expected}")
    check_ids(drafted, tree.p.shape[1], "drafts")
    return drafted
