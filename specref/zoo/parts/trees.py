"""Token trees in parts: how a tree is drafted, changed, and verified."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

from specref.algorithms import slem, traversal
from specref.algorithms.decoding import Step
from specref.algorithms.trees.topdown import Branching, Node, Tree, Verify, branching_of, draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, normalise
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.parts.siblings import descended, judging, ranked
from specref.zoo.parts.standard import residual_or_p

Propose: TypeAlias = Callable[[Model, Tokens, Branching, Chance], Tree]
Where: TypeAlias = Callable[[Tokens, Tree, Node], Tokens]
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
) -> Step:
    """A step that drafts a tree, changes it, and verifies it; it may be told a `branching`."""

    def step(
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        chance: Chance,
        *,
        branching: Branching | None = None,
    ) -> Tokens:
        tree = propose(drafter, context, branching_of(lookahead, branching), chance)
        return verify(target, context, submit(tree), chance)

    return step


def throughout(change: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    """A change of siblings at every node."""

    def everywhere(tree: Tree) -> Tree:
        kept = change(tree) if tree else tree
        return tuple(node._replace(children=everywhere(node.children)) for node in kept)

    return everywhere


def with_rows(where: Where) -> Verify:
    """`topdown.verify`, where the row after an accepted sibling may be that of another context.

    * `where`: (context, siblings, accepted sibling) -> the context whose row is read next.
    """

    def verify(
        target: Model, context: Tokens, tree: Tree, chance: Chance, at: Tokens | None = None
    ) -> Tokens:
        token, node = judging()(target.next_token(context if at is None else at), tree, chance)
        row = context if node is None else where(context, tree, node)
        return descended(partial(verify, at=row), target, context, token, node, chance)

    return verify


def of_elder_sibling(context: Tokens, tree: Tree, node: Node) -> Tokens:
    """After the sibling before the accepted one; the first has its own."""
    j = next(j for j, sibling in enumerate(tree) if sibling is node)
    return (*context, tree[max(j - 1, 0)].token)


def of_parent(context: Tokens, tree: Tree, node: Node) -> Tokens:
    """Where the accepted sibling itself was verified."""
    return context


def bonus_of_the_root(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
    """After a leaf the last token is drawn with the row of the root."""
    root = target.next_token(context)

    def verify(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
        p = target.next_token(context) if tree else root
        return descended(verify, target, context, *judging()(p, tree, chance), chance)

    return verify(target, context, tree, chance)


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


def children_alone(siblings: Tree) -> Tree:
    """q as far as the siblings have it: as it is for the first, then what is left of it, as 1."""
    left: dict[int, Probability] = {node.token: node.q[node.token] for node in siblings}
    nodes = []
    for node in siblings:
        q = np.array([left.get(token, 0 * x) for token, x in enumerate(node.q)])
        nodes.append(node._replace(q=q))
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
