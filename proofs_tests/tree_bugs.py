"""Planted bugs of tree verification, each a step with the signature of `trees.step`."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from proofs_tests.tree_cases import top_tree
from specref.algorithms import traversal
from specref.algorithms.standard import acceptance
from specref.algorithms.traversal import refused
from specref.algorithms.trees import Branching, Node, Tree, draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, corrected, normalise
from specref.models import Model
from specref.vocabulary import Tokens

TreeStep = Callable[..., Tokens]
Verify = Callable[[Model, Tokens, Tree, Chance], Tokens]


def planted(verify: Verify) -> TreeStep:
    """A step with right drafts and this verification."""

    def step(
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        chance: Chance,
        *,
        branching: Branching,
        replacement: bool,
    ) -> Tokens:
        tree = draft(drafter, context, branching, chance, replacement=replacement)
        return verify(target, context, tree, chance)

    return step


def verifying(rule: Any, change: Callable[[Tree], Tree]) -> TreeStep:
    """An algorithm whose tree is changed between drafting and verification."""
    return planted(
        lambda target, context, tree, chance: rule.verify(target, context, change(tree), chance)
    )


def declared(tree: Tree) -> Tree:
    """Every sibling says that it was drawn from what its eldest was drawn from."""
    return tuple(Node(node.token, tree[0].q, declared(node.children)) for node in tree)


def merged(tree: Tree) -> Tree:
    """Only the first of equal siblings is kept."""
    seen: dict[int, Node] = {}
    for node in tree:
        seen.setdefault(node.token, Node(node.token, node.q, merged(node.children)))
    return tuple(seen.values())


def independent_paths(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
    """Each branch is matched with target draws of its own; the longest match wins."""
    matches = [
        matched(target, context, path, chance, f"target[{i}]")
        for i, path in enumerate(branches(tree))
    ]
    block = max(matches, key=len, default=())
    if target.vocabulary.ends(block):
        return block
    return (*block, chance.draw(target.next_token((*context, *block)), "bonus"))


def branches(tree: Tree) -> Iterator[Tokens]:
    """The texts from the root to each leaf."""
    for node in tree:
        for rest in branches(node.children) if node.children else [()]:
            yield (node.token, *rest)


def matched(target: Model, context: Tokens, path: Tokens, chance: Chance, site: str) -> Tokens:
    """How far target draws agree with a branch."""
    for i, token in enumerate(path):
        p = target.next_token((*context, *path[:i]))
        if chance.draw(p, f"{site}[{i}]") != token:
            return path[:i]
        if target.vocabulary.ends((token,)):
            return path[: i + 1]
    return path


def top_down(
    target: Model, context: Tokens, tree: Tree, chance: Chance, row: Callable[..., Tokens], at: Any
) -> Tokens:
    """`trees.verify` with a hole: which context the row after an accepted sibling belongs to."""
    p = target.next_token(at)
    for j, (token, q, children) in enumerate(tree):
        if chance.accept(acceptance(p, q, token), f"accept[{j}]"):
            if target.vocabulary.ends((token,)):
                return (token,)
            below = row(context, tree, j, at)
            return (token, *top_down(target, (*context, token), children, chance, row, below))
        p = corrected(p, q)
    return (chance.draw(p, "last"),)


def neighbours_row(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
    """The row after the sibling before the accepted one; the first has its own."""

    def row(context: Tokens, tree: Tree, j: int, at: Tokens) -> Tokens:
        return (*context, tree[max(j - 1, 0)].token)

    return top_down(target, context, tree, chance, row, context)


def root_row(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
    """What is below an accepted sibling is verified with the row of the root."""
    return top_down(target, context, tree, chance, lambda context, tree, j, at: at, context)


def children_only(
    target: Model, context: Tokens, tree: Tree, chance: Chance, survival: Probability | None = None
) -> Tokens:
    """q is known of the drafted children alone; a becomes sum (a P - q)+ over what q has left."""
    p, a = target.next_token(context), 1 if survival is None else survival
    left = {token: tree[0].q[token] for token, *_ in tree}
    for token, _, children in tree:
        likely = min(1, a * p[token] / left[token]) if left[token] else 0
        if block := descended(target, context, token, children, chance, likely):
            return block
        excess = np.maximum(a * p - np.array([left.get(y, 0) for y in range(len(p))]), 0)
        del left[token]
        rest = sum(left.values())
        left = {y: weight / (rest or 1) for y, weight in left.items()}
        a = min(1, excess.sum() / rest) if rest else 0
        p = normalise(excess) if excess.any() else p
    if survival is None or chance.accept(a, "accept"):
        return (chance.draw(p, "last"),)
    return ()


def descended(
    target: Model, context: Tokens, token: int, children: Tree, chance: Chance, a: Probability
) -> Tokens:
    """The child and what follows it, or ()."""
    if a == 0 or target.vocabulary.ends((token,)):
        return (token,) if a and chance.accept(a, "accept") else ()
    rest = children_only(target, (*context, token), children, chance, a)
    return (token, *rest) if rest else ()


def likeliest_children_only(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    branching: Branching,
    replacement: bool,
) -> Tokens:
    """The same for the likeliest tokens, which were not drawn from q."""
    tree = top_tree(drafter, context, branching, one_hot=False)
    return children_only(target, context, tree, chance)


def refusing(wrong: Callable[..., tuple[Probabilities, Probability]]) -> TreeStep:
    """Traversal verification with another rule for P and a after a refusal."""

    def step(*arguments: Any, **options: Any) -> Tokens:
        with mock.patch.object(traversal, "refused", wrong):
            return traversal.step(*arguments, **options)

    return step


def survival_kept(
    p: Probabilities, q: Probabilities, survival: Probability
) -> tuple[Probabilities, Probability]:
    """a stays what it was."""
    return refused(p, q, survival)[0], survival


def tokenwise(
    p: Probabilities, q: Probabilities, survival: Probability
) -> tuple[Probabilities, Probability]:
    """P becomes norm((P - q)+), without a."""
    excess = np.maximum(p - q, 0)
    return normalise(excess) if excess.any() else p, refused(p, q, survival)[1]
