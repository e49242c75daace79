"""Blocks of token ids, the tree of their prefixes, and what was counted there.

A token can be bet on at each node. Blocks are one array, padded with -1. Of the view "trace" there
are blocks that standard speculative decoding cannot make of its drafts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from specref.algorithms.lookahead import positions
from specref.arrays import NO_TOKEN, Floats, Ints
from specref.distributions import Probabilities, Probability, relabel
from specref.models import Model, as_float
from specref.vocabulary import Tokens, UntokenisableError, intersection, translate


def as_blocks(blocks: Sequence[Tokens] | Ints, name: str = "blocks") -> Ints:
    """Blocks as one array, padded with -1."""
    if isinstance(blocks, np.ndarray):
        if not np.issubdtype(blocks.dtype, np.integer):
            raise TypeError(f"{name} has dtype {blocks.dtype}: expected integers")
        array = blocks.astype(np.int64)
    else:
        flat = [token for block in blocks for token in block]
        kind = np.array(flat).dtype
        if flat and (bool in set(map(type, flat)) or not np.issubdtype(kind, np.integer)):
            raise TypeError(f"{name} has tokens of dtype {kind}, or bool: expected integers")
        array = np.full((len(blocks), max(map(len, blocks), default=0)), NO_TOKEN)
        for row, block in zip(array, blocks, strict=True):
            row[: len(block)] = block
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}: expected two dimensions")
    wrong = np.argwhere(array < NO_TOKEN)
    if len(wrong):
        row, column = wrong[0]
        value = array[row, column]
        raise ValueError(f"{name}[{row}, {column}] = {value}: expected a token id, or -1 for none")
    gaps = np.flatnonzero(((array[:, 1:] >= 0) & (array[:, :-1] < 0)).any(axis=1))
    if len(gaps):
        raise ValueError(f"{name}[{gaps[0]}] = {array[gaps[0]]}: a token follows padding")
    return array


def fitted(blocks: Ints, length: int) -> Ints:
    """The same blocks in `length` columns; `ValueError` if one is longer."""
    longer = np.argwhere(blocks[:, length:] >= 0)
    if len(longer):
        raise ValueError(f"blocks[{longer[0, 0]}] has more than {length} tokens")
    missing = length - blocks.shape[1]
    if missing <= 0:
        return blocks[:, :length]
    return np.pad(blocks, ((0, 0), (0, missing)), constant_values=NO_TOKEN)


def check_ids(tokens: Ints, size: int, name: str) -> None:
    """Raise `ValueError` unless every token is an id, or -1 for none."""
    wrong = np.argwhere((tokens >= size) | (tokens < NO_TOKEN))
    if len(wrong):
        row, column = wrong[0]
        value = tokens[row, column]
        raise ValueError(f"{name}[{row}, {column}] = {value}: expected a token id < {size}, or -1")


MAX_CELLS = 2_000_000


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """Every prefix that a block can have, with the target's and the drafter's law after it.

    Given the past and that the block is still open, the next token of *every* lossless rule
    has law p, however the rule accepts. So a node, not a block length, is where to look.

    * `p`, `q` (ndarray, shape (nodes, V)): Next-token laws; a row of q sums to less than 1 where
      the drafter has other tokens.
    * `child` (ndarray of int, shape (nodes, V)): The node after a token, or -1 at full length and
      after EOS.
    * `position` (ndarray of int, shape (nodes,)): How many tokens the prefix has.
    * `prefixes`: The prefix of each node.
    """

    target: Model = field(repr=False)
    drafter: Model = field(repr=False)
    context: Tokens
    lookahead: int
    p: Floats = field(repr=False)
    q: Floats = field(repr=False)
    child: Ints = field(repr=False)
    position: Ints = field(repr=False)
    prefixes: tuple[Tokens, ...] = field(repr=False)

    @property
    def length(self) -> int:
        """The longest block."""
        return int(self.position.max()) + 1

    @cached_property
    def leaves(self) -> NDArray[np.bool_]:
        """Where completed blocks end; shape (nodes, V)."""
        return (self.child < 0) & (self.p > 0)

    @cached_property
    def law(self) -> Floats:
        """The probability of every completed block."""
        return self.completed(np.zeros_like(self.p), 1)

    def completed(self, counts: Floats, trials: int) -> Floats:
        """The mass of every completed block: counted tokens, then p where blocks had ended."""
        return np.asarray(self.mass(counts, trials)[self.leaves])

    def mass(self, counts: Floats, trials: int) -> Floats:
        """How often completed blocks start with each prefix and token; shape (nodes, V)."""
        arriving = np.zeros(len(self.p))
        arriving[0] = trials
        mass = np.empty_like(self.p)
        for level in range(self.length):
            here = self.position == level
            ended = arriving[here] - counts[here].sum(axis=1)
            mass[here] = counts[here] + ended[:, None] * self.p[here]
            onward = self.child[here] >= 0
            arriving[self.child[here][onward]] = mass[here][onward]
        return mass


def prefix_tree(
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    length: int | None = None,
) -> PrefixTree:
    """Build the tree of prefixes shorter than `length` (by default lookahead + 1)."""
    longest = len(positions(lookahead)) + 1 if length is None else length
    p_model, q_model = as_float(target), as_float(drafter)
    prefixes: list[Tokens] = [()]
    rows: list[tuple[Floats, Floats]] = []
    child: list[Ints] = []
    for prefix in prefixes:
        if len(prefixes) * len(target.vocabulary) > MAX_CELLS:
            raise ValueError(f"the prefix tree has more than {MAX_CELLS} cells: use observe")
        p = p_model.next_token((*context, *prefix))
        rows.append((p, drafter_row(target, q_model, (*context, *prefix))))
        links = np.full(len(p), NO_TOKEN)
        for token in np.flatnonzero(p > 0) if len(prefix) + 1 < longest else ():
            longer = (*prefix, int(token))
            if not target.vocabulary.ends(longer):
                links[token] = len(prefixes)
                prefixes.append(longer)
        child.append(links)
    # Floats sum to 1 within 1e-9 only; a bet must not win from what is missing.
    rows = [(p / p.sum(), q) for p, q in rows]
    p_rows, q_rows = (np.stack(column) for column in zip(*rows, strict=True))
    position = np.array([len(prefix) for prefix in prefixes])
    return PrefixTree(
        target, drafter, context, lookahead, p_rows, q_rows, np.stack(child), position,
        tuple(prefixes),
    )  # fmt: skip


def drafter_row(target: Model, drafter: Model, context: Tokens) -> Probabilities:
    """The drafter's law over the target's tokens; zeros after a context that it cannot spell."""
    size = len(target.vocabulary)
    try:
        seen = translate(context, target.vocabulary, drafter.vocabulary)
    except UntokenisableError:
        return np.zeros(size)
    shared = intersection(target.vocabulary, drafter.vocabulary)
    return relabel(drafter.next_token(seen), shared, size)


def walk(tree: PrefixTree, blocks: Ints) -> tuple[Ints, Ints]:
    """The node before each token, and the rows whose block the target excludes.

    The node is -1 where there is no token, or past an impossible one. Blocks are no longer than
    the tree (`fitted`).
    """
    trials, longest = blocks.shape
    size = tree.p.shape[1]
    check_ids(blocks, size, "blocks")
    if (blocks[:, 0] < 0).any():
        raise ValueError("blocks has an empty block: expected at least one token in each")
    nodes = np.full((trials, longest), NO_TOKEN)
    here = np.zeros(trials, dtype=np.int64)
    bad = np.zeros(trials, dtype=bool)
    for j in range(longest):
        token = blocks[:, j]
        going = (token >= 0) & ~bad
        bad |= going & (here < 0)
        going &= here >= 0
        nodes[going, j] = here[going]
        bad[going] |= tree.p[here[going], token[going]] <= 0
        following = np.full(trials, NO_TOKEN)
        following[going] = tree.child[here[going], token[going]]
        here = following
    return nodes, np.flatnonzero(bad)


def starts(tree: PrefixTree, blocks: Mapping[Tokens, Probability]) -> Floats:
    """P(block starts with prefix + token), for a law of blocks; shape (nodes, V)."""
    mass = np.zeros_like(tree.p)
    index = {prefix: node for node, prefix in enumerate(tree.prefixes)}
    for block, probability in blocks.items():
        for j, token in enumerate(block):
            if block[:j] in index:
                mass[index[block[:j]], token] += float(probability)
    return mass


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
    """Drafts as one array, padded with -1."""
    expected = (trials, tree.lookahead)
    drafted = None if drafts is None else as_blocks(drafts, "drafts")
    if drafted is None or drafted.shape != expected:
        shape = None if drafted is None else drafted.shape
        raise ValueError(f"drafts has shape {shape}: the view trace expects {expected}")
    check_ids(drafted, tree.p.shape[1], "drafts")
    return drafted
