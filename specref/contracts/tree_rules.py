"""Rules of trees: batch rows as trees of `specref.algorithms`, and the exact laws of rules."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from specref.algorithms.trees.topdown import Node, Tree, Verify
from specref.arrays import Floats, Ints, one_hot_rows
from specref.chance import Chance, Sampled
from specref.contracts.batch import ROOT, TreeBatch, batch_of_one
from specref.contracts.fixtures import TreeFixture, TreePlace, tree_place
from specref.models import Model
from specref.proofs.lazy import Enumerator, ReadableModel
from specref.rules import RULES, declarable
from specref.vocabulary import Tokens, Vocabulary

Contracted: TypeAlias = Callable[..., tuple[Ints, Ints]]


def as_verifier(verify: Verify) -> Contracted:
    """A rule on trees as an implementation of the contract ``tree``, row by row."""

    def contracted(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        parents: Ints,
        *,
        rng: np.random.Generator,
    ) -> tuple[Ints, Ints]:
        p = target_probs / target_probs.sum(axis=2, keepdims=True)
        q = one_hot_rows(draft_tokens, p.shape[2]) if draft_probs is None else draft_probs
        tokens = np.full((len(parents), parents.shape[1] + 1), -1)
        chance = Sampled(rng)
        for row, above in enumerate(parents.tolist()):
            target, tree = read(p[row], q[row], draft_tokens[row].tolist(), above)
            block = verify(target, (), tree, chance)
            tokens[row, : len(block)] = block
        return tokens, (tokens >= 0).sum(axis=1)

    return contracted


def read(p: Floats, q: Floats, tokens: list[int], parents: list[int]) -> tuple[Model, Tree]:
    """A model with the target's laws after each path, and the tree."""
    below: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    paths: list[Tokens] = [()]
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        if parent < ROOT:
            break
        below[parent + 1].append(node)
        paths.append((*paths[parent + 1], token))

    def children(row: int) -> Tree:
        return tuple(Node(tokens[node], q[node], children(node + 1)) for node in below[row])

    return GivenRows(dict(zip(paths, p, strict=False))), children(0)


class GivenRows(Model):
    """The target, limited to given laws {context: law}."""

    def __init__(self, laws: Mapping[Tokens, Floats]) -> None:
        super().__init__(numbered(len(laws[()])), laws.__getitem__)
        self.laws = laws

    def next_token(self, context: Sequence[int]) -> Floats:
        return self.laws[tuple(context)]


@cache
def numbered(size: int) -> Vocabulary:
    """A vocabulary of `size` tokens."""
    return Vocabulary([f"{token}," for token in range(size)])


def one_row(target: Model, context: Tokens, tree: Tree, *, one_hot: bool = False) -> TreeBatch:
    """A tree as a batch of one row, parents first and siblings in draw order."""
    flat = list(_flat(tree, ROOT, context))
    p = np.stack([target.next_token(path) for path in (context, *(path for _, _, path in flat))])
    laws = np.array([node.q for node, _, _ in flat]).reshape(len(flat), p.shape[1])
    tokens, parents = [node.token for node, _, _ in flat], [parent for _, parent, _ in flat]
    return batch_of_one(tokens, parents, p, None if one_hot else laws)


def _flat(tree: Tree, parent: int, context: Tokens) -> Iterator[tuple[Node, int, Tokens]]:
    """Each node with the index of its parent and its text, by depth."""
    level = [(node, parent, context) for node in tree]
    start = 0
    while level:
        found = [(node, above, (*text, node.token)) for node, above, text in level]
        yield from found
        level = [
            (child, start + index, text)
            for index, (node, _, text) in enumerate(found)
            for child in node.children
        ]
        start += len(found)


MAX_PATHS = 100_000


@dataclass(frozen=True)
class TreeStep:
    """A step with correct drafts and a given verification, for the tree of a place."""

    verify: Verify

    def __call__(
        self,
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        chance: Chance,
        *,
        place: TreePlace | None = None,
    ) -> Tokens:
        """One iteration; by default with two siblings at each depth."""
        where = place or tree_place(context, (2,) * lookahead)
        return self.verify(target, context, where.tree(drafter, chance), chance)


def tree_step(rule: str) -> TreeStep:
    """The step of a rule of trees."""
    verify = RULES[rule].verify_tree
    if verify is None:
        raise ValueError(f"rule = {rule!r}: expected one of {declarable(tree=True)}")
    return TreeStep(verify)


@cache
def law(fixture: TreeFixture, place: TreePlace, rule: str) -> Mapping[Tokens, float]:
    """The law of the block of a rule at a place."""
    target, drafter = ReadableModel(fixture.target), ReadableModel(fixture.drafter)
    step = partial(tree_step(rule), place=place)
    found = Enumerator(MAX_PATHS).law(step, target, drafter, place.context, place.lookahead)
    return {block: float(weight) for block, weight in found.items()}


def lengths(fixture: TreeFixture, place: TreePlace, rule: str) -> tuple[float, ...]:
    """The probability of a block of 1, 2, … tokens; an EOS ends it."""
    counted = [0.0] * (place.lookahead + 1)
    for block, weight in law(fixture, place, rule).items():
        counted[len(block) - 1] += weight
    return tuple(counted)
