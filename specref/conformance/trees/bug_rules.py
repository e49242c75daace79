"""Rules that read trees, each with one departure from `trees.verify`, beside those of the zoo.

P is what the rejections so far have left of p, and q the law of a node given its elder siblings.
"""

from collections.abc import Callable

import numpy as np

from specref.algorithms import trees
from specref.algorithms.standard import acceptance
from specref.algorithms.trees import Node, Tree
from specref.chance import Chance
from specref.conformance.trees.nodes import Verify
from specref.distributions import Probabilities, Probability, corrected, normalise
from specref.models import Model
from specref.vocabulary import Tokens


def of_tree(change: Callable[[Tree], Tree]) -> Verify:
    """Top-down verification of another tree."""
    return lambda target, context, tree, chance: trees.verify(
        target, context, change(tree), chance
    )


def q_of_the_eldest(tree: Tree) -> Tree:
    """Every sibling says that it was drawn from what its eldest was drawn from."""
    return tuple(Node(node.token, tree[0].q, q_of_the_eldest(node.children)) for node in tree)


def eldest_alone(tree: Tree) -> Tree:
    """Only the first sibling is kept."""
    return tuple(Node(node.token, node.q, eldest_alone(node.children)) for node in tree[:1])


def all_certain(tree: Tree) -> Tree:
    """Every sibling as if nothing else could have been drafted."""
    certain = np.eye(len(tree[0].q)) if tree else np.eye(0)
    return tuple(Node(x, certain[x], all_certain(children)) for x, _, children in tree)


def ratio(p: Probabilities, node: Node) -> Probability:
    """min(1, P / q)."""
    return acceptance(p, node.q, node.token)


def of_target(p: Probabilities, node: Node) -> Probability:
    """P."""
    chance: Probability = p[node.token]
    return chance


def siblings(
    *,
    order: Callable[[Probabilities, Tree], Tree] = lambda p, tree: tree,
    likely: Callable[[Probabilities, Node], Probability] = ratio,
    left: Callable[[Probabilities, Node], Probabilities] = lambda p, node: corrected(p, node.q),
    last: Callable[[Probabilities, Probabilities, Tree], Probabilities] = lambda first, p, tree: (
        normalise(p)
    ),
) -> Verify:
    """`trees.verify` in which some parts are replaced.

    Parameters
    ----------
    order : callable
        (p, siblings) -> siblings as they are verified.
    likely : callable
        (P, sibling) -> the probability that it is accepted.
    left : callable
        (P, sibling) -> P after its rejection.
    last : callable
        (p, P, siblings) -> the law of the token if all are rejected.
    """

    def verify(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
        first = p = target.next_token(context)
        for j, node in enumerate(order(p, tree)):
            if chance.accept(likely(p, node), f"accept[{j}]"):
                return descended(verify, target, context, node, chance)
            p = left(p, node)
        return (chance.draw(last(first, p, tree), "last"),)

    return verify


def descended(
    verify: Verify, target: Model, context: Tokens, node: Node, chance: Chance
) -> Tokens:
    """An accepted token, and what a rule emits after it."""
    if target.vocabulary.ends((node.token,)):
        return (node.token,)
    return (node.token, *verify(target, (*context, node.token), node.children, chance))


def best_first(p: Probabilities, tree: Tree) -> Tree:
    """The largest p / q first."""
    return tuple(sorted(tree, key=lambda node: -p[node.token] / node.q[node.token]))


def zeroed(p: Probabilities, node: Node) -> Probabilities:
    """P loses the rejected token, and nothing else."""
    others = p.copy()
    others[node.token] = 0 * p[node.token]
    return normalise(others) if others.any() else p


def not_renormalised(p: Probabilities, node: Node) -> Probabilities:
    """(P - q)+."""
    excess = np.maximum(p - node.q, 0)
    return excess if excess.any() else p


def of_the_last(first: Probabilities, p: Probabilities, tree: Tree) -> Probabilities:
    """norm((p - q)+), q that of the last sibling."""
    return corrected(first, tree[-1].q) if tree else first


def one_draw(fresh: bool) -> Verify:
    """One target draw, and on below the first sibling that is the same; else it, or another."""

    def verify(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
        p = target.next_token(context)
        token = chance.draw(p, "target")
        for node in tree:
            if node.token == token:
                return descended(verify, target, context, node, chance)
        return (chance.draw(p, "last") if fresh and tree else token,)

    return verify


def bonus_of_the_root(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
    """After a leaf the last token is drawn with the row of the root."""
    root = target.next_token(context)

    def verify(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
        p = target.next_token(context) if tree else root
        for j, node in enumerate(tree):
            if chance.accept(ratio(p, node), f"accept[{j}]"):
                return descended(verify, target, context, node, chance)
            p = corrected(p, node.q)
        return (chance.draw(p, "last"),)

    return verify(target, context, tree, chance)
