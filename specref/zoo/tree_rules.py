"""Verification of token trees, as it has been got wrong: the tree, its rows, a and P."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

from specref.algorithms import Step, slem, traversal
from specref.algorithms.standard import acceptance
from specref.algorithms.trees import Branching, Node, Tree, draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, corrected, normalise
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.clean import residual_or_p
from specref.zoo.multi_draft_parts import ranked

Verify: TypeAlias = Callable[[Model, Tokens, Tree, Chance], Tokens]
Propose: TypeAlias = Callable[[Model, Tokens, Branching, Chance], Tree]
Where: TypeAlias = Callable[[Tokens, Tree, int], Tokens]
Left: TypeAlias = tuple[Probabilities, Probability]
Refused: TypeAlias = Callable[[Probabilities, Node, Probability], Left]

drawn: Propose = partial(draft, replacement=False)
drawn_independently: Propose = partial(draft, replacement=True)


def top(drafter: Model, context: Tokens, branching: Branching, chance: Chance) -> Tree:
    """The likeliest tokens after each node, with q as their law, though they were not drawn."""
    if not branching or drafter.vocabulary.ends(context):
        return ()
    q = drafter.next_token(context)
    below = (
        (x, top(drafter, (*context, x), branching[1:], chance)) for x in ranked(q, branching[0])
    )
    return tuple(Node(token, q, children) for token, children in below)


def with_tree(
    verify: Verify,
    propose: Propose = drawn,
    submit: Callable[[Tree], Tree] = lambda tree: tree,
) -> Callable[[Branching], Step]:
    """A step that drafts a tree, changes it, and verifies it."""

    def build(branching: Branching) -> Step:
        def step(
            target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
        ) -> Tokens:
            tree = propose(drafter, context, branching, chance)
            return verify(target, context, submit(tree), chance)

        return step

    return build


def merged(tree: Tree) -> Tree:
    """The first of equal siblings, with what is below it."""
    first = {node.token: node for node in reversed(tree)}
    kept = [node for node in tree if first[node.token] is node]
    return tuple(node._replace(children=merged(node.children)) for node in kept)


def last_first(tree: Tree) -> Tree:
    """Siblings in reverse order, at every node."""
    return tuple(node._replace(children=last_first(node.children)) for node in tree[::-1])


def with_rows(where: Where) -> Verify:
    """`trees.verify`, where the row after an accepted sibling may be that of another context."""

    def verify(
        target: Model, context: Tokens, tree: Tree, chance: Chance, at: Tokens | None = None
    ) -> Tokens:
        p = target.next_token(context if at is None else at)
        for j, (token, q, children) in enumerate(tree):
            if chance.accept(acceptance(p, q, token), f"accept[{j}]"):
                if target.vocabulary.ends((token,)):
                    return (token,)
                row = where(context, tree, j)
                return (token, *verify(target, (*context, token), children, chance, row))
            p = corrected(p, q)
        return (chance.draw(p, "residual"),)

    return verify


def of_elder_sibling(context: Tokens, tree: Tree, j: int) -> Tokens:
    """After the sibling before the accepted one; the first has its own."""
    return (*context, tree[max(j - 1, 0)].token)


def of_parent(context: Tokens, tree: Tree, j: int) -> Tokens:
    """Where the accepted sibling itself was verified."""
    return context


def paths_apart(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
    """Each path is matched with target draws of its own; the longest wins, ended by its draw."""
    blocks = (slem.match(target, context, path, chance) for path in paths(tree))
    return max(blocks, key=len)


def paths(tree: Tree) -> Iterator[Tokens]:
    """The texts from the root to each leaf; () for no tree."""
    if not tree:
        yield ()
    for node in tree:
        yield from ((node.token, *rest) for rest in paths(node.children))


def traversed(refused: Refused) -> Verify:
    """`traversal.verify` with another rule for P and a after a refusal."""

    def verify(
        target: Model,
        context: Tokens,
        tree: Tree,
        chance: Chance,
        a: Probability = 1,
        root: bool = True,
    ) -> Tokens:
        p = target.next_token(context)
        for node in tree:
            if block := accept(
                target, context, node, chance, min(1, a * p[node.token] / node.q[node.token])
            ):
                return block
            p, a = refused(p, node, a)
        if not root and not chance.accept(a, "accept"):
            return ()
        return (chance.draw(p, "residual"),)

    def accept(
        target: Model, context: Tokens, node: Node, chance: Chance, a: Probability
    ) -> Tokens:
        if a == 0:
            return ()
        if target.vocabulary.ends((node.token,)):
            return (node.token,) if chance.accept(a, "accept") else ()
        rest = verify(target, (*context, node.token), node.children, chance, a, False)
        return (node.token, *rest) if rest else ()

    return verify


def survival_kept(p: Probabilities, node: Node, a: Probability) -> Left:
    """a as it was."""
    return traversal.refused(p, node.q, a)[0], a


def tokenwise(p: Probabilities, node: Node, a: Probability) -> Left:
    """norm((P - q)+), without a."""
    return residual_or_p(p, node.q), traversal.refused(p, node.q, a)[1]


def children_alone(tree: Tree) -> Tree:
    """q as far as the siblings have it: as it is for the first, then what is left of it, as 1."""
    left: dict[int, Probability] = {node.token: node.q[node.token] for node in tree}
    nodes = []
    for node in tree:
        q = np.array([left.get(token, 0 * x) for token, x in enumerate(node.q)])
        nodes.append(Node(node.token, q, children_alone(node.children)))
        left.pop(node.token, None)
        rest = sum(left.values())
        left = {token: x / rest for token, x in left.items()}
    return tuple(nodes)


def by_remaining_children(p: Probabilities, node: Node, a: Probability) -> Left:
    """a = sum (a P - q)+ over what q has left among the siblings."""
    excess = np.maximum(a * p - node.q, 0)
    rest = node.q.sum() - node.q[node.token]
    law = normalise(excess) if excess.any() else p
    return law, min(1, excess.sum() / rest) if rest else 0
