"""The tree of block prefixes: where a token can be bet on, and what was counted there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from specref.algorithms.lookahead import positions
from specref.arrays import NO_TOKEN, Floats, Ints
from specref.distributions import Probabilities, Probability, relabel
from specref.models import Model, as_float
from specref.statistics.campaign.blocks import check_ids
from specref.vocabulary import Tokens, UntokenisableError, intersection, translate

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
    """Build the tree of prefixes shorter than `length` (by default lookahead + 1).

    * raises `ValueError`: The tree has more than two million cells: use `Campaign.observe`, which
      needs none.
    """
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

    * `blocks` (ndarray of int, shape (trials, longest)): Padded with -1; `longest` is at most the
      length of the tree (`fitted`).
    * returns: nodes : ndarray of int, shape (trials, longest): -1 where there is no token, or past
      an impossible one.
    * returns: Rows with a token that the target excludes, or that goes on after the end.
    * raises `ValueError`: A token id is out of range, or a block is empty.
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
