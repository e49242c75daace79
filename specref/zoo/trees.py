"""Mutants and controls of token trees and of traversal verification."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from specref.algorithms import slem, traversal
from specref.algorithms.decoding import Step
from specref.algorithms.trees import topdown
from specref.algorithms.trees.topdown import Branching, Node, Tree, Verify, branching_of, draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, normalise
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry, Stage, exactly
from specref.zoo.parts.siblings import at_nodes, changed, descended, distinct, judging, ranked
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
    """A as it was."""
    return traversal.refused(p, node.q, a)[0], a


def tokenwise(p: Probabilities, node: Node, a: Probability) -> Left:
    """norm((p' - q)+), without A."""
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
    """A = sum (A p' - q)+ over what q has left among the siblings."""
    excess = np.maximum(a * p - node.q, 0)
    rest = node.q.sum() - node.q[node.token]
    law = normalise(excess) if excess.any() else p
    return law, min(1, excess.sum() / rest) if rest else 0


def tree(
    id_: str,
    stage: Stage,
    verify: Verify,
    propose: Propose = drawn,
    submit: Callable[[Tree], Tree] = lambda tree: tree,
    *,
    given: bool = False,
    **described: Any,
) -> Entry:
    """A rule for trees; `given` if trees that others draft show it, too."""
    step = with_tree(verify, propose, submit)
    return Entry(id_, stage, step=step, verify_tree=verify if given else None, **described)


ENTRIES = (
    tree(
        "tree-duplicates-merged",
        "accept",
        at_nodes(changed(distinct)),
        drawn_independently,
        given=True,
        rule="topdown",
        formula="drawn with replacement; of equal siblings the first is kept, with its subtree",
        symptom="Tokens that were drawn twice are under-weighted, at every node.",
        hint="Merge nodes for the forward pass alone, and verify every one that was drawn.",
        distances=exactly(s1="0", m="1/24", m3="1/16", c="1/36", eos="0"),
        note="0 where the first residual is one point mass.",
    ),
    tree(
        "tree-wrong-slice",
        "context",
        with_rows(of_elder_sibling),
        given=True,
        rule="topdown",
        formula="below sibling j, p after sibling j - 1",
        symptom="Right at the root, and below the eldest siblings.",
        hint="A row belongs to a node: its context is the path from the root.",
        cites=("NVIDIA/TensorRT-LLM#15098",),
        distances=exactly(s1="0", m="0", m3="0", c="491/3240", eos="1741/167310"),
        note="0 for trees of one level.",
    ),
    tree(
        "tree-row-of-the-parent",
        "context",
        with_rows(of_parent),
        given=True,
        rule="topdown",
        formula="below an accepted node, p before it",
        symptom="Right for trees of one level; a token may come twice.",
        hint="The children of a node are verified with the row after it.",
        distances=exactly(s1="0", m="0", m3="0", c="10/27", eos="16712447/64782432"),
    ),
    tree(
        "tree-paths-with-their-own-draws",
        "randomness",
        paths_apart,
        rule="topdown",
        formula="each path is matched with its own draws t ~ p; the longest match wins",
        symptom="Drafted tokens come out too often, the more paths share them.",
        hint="One draw of the target for each node.",
        cites=("foundation-model-stack/fms-extras#12",),
        distances=exactly(s1="1/24", m="7/162"),
    ),
    tree(
        "traversal-survival-kept",
        "accept",
        traversed(survival_kept),
        given=True,
        rule="traversal",
        formula="after a refusal p' as it should be, A as it was",
        symptom="Inner nodes are accepted too often, once their children are refused.",
        hint="A becomes sum R / (sum R + 1 - A), R = (A p' - q)+.",
        distances=exactly(s1="0", m="0", m3="0", c="1/12", eos="55/832"),
        note="0 for trees of one level: the root has A = 1 throughout.",
    ),
    tree(
        "traversal-tokenwise-residual",
        "residual",
        traversed(tokenwise),
        given=True,
        rule="traversal",
        formula="after a refusal p' becomes norm((p' - q)+), A as it should be",
        symptom="Only the last token of a block that ends inside the tree is off.",
        hint="(A p' - q)+: the node itself is not accepted for certain.",
        distances=exactly(s1="0", m="0", m3="0", c="1/24", eos="1/156"),
    ),
    tree(
        "traversal-knows-the-siblings-alone",
        "accept",
        traversed(by_remaining_children),
        top,
        throughout(children_alone),
        rule="traversal",
        formula="q on the siblings only, A = sum (A p' - q)+ / sum of q not yet refused",
        symptom="Wrong for drawn siblings, and far off for the likeliest tokens.",
        hint="q of the whole vocabulary, A = sum R / (sum R + 1 - A); for certain siblings q = 1.",
        cites=("arXiv:2505.12398",),
        distances=exactly(s1="1/3", m="11/48", m3="29/108", c="4/9", eos="4/9"),
        note="As one public implementation has it; siblings are the likeliest tokens.",
    ),
    tree(
        "traversal-drawn-siblings-alone",
        "accept",
        traversed(by_remaining_children),
        submit=throughout(children_alone),
        rule="traversal",
        formula="as `traversal-knows-the-siblings-alone`, siblings drawn without replacement",
        symptom="Less far off.",
        hint="q of the whole vocabulary, and A = sum R / (sum R + 1 - A).",
        cites=("arXiv:2505.12398",),
        distances=exactly(s1="2/27", m="191/2268", m3="5/72", c="5003/30780"),
    ),
    tree(
        "tree-bonus-of-the-root",
        "bonus",
        bonus_of_the_root,
        given=True,
        rule="topdown",
        formula="after a leaf the last token from row 0",
        symptom="Only the token after a whole branch is off.",
        hint="After leaf i the last token is drawn from row i + 1 of target_probs.",
    ),
)
CONTROLS = (
    tree(
        "tree-last-first",
        "accept",
        at_nodes(changed(lambda siblings: siblings[::-1])),
        drawn_independently,
        rule="topdown",
        formula="drawn with replacement, siblings verified from the last to the first",
        symptom="Not the order of drawing.",
        hint="Exact: independent drafts have no order.",
        lossless=True,
    ),
    tree(
        "traversal-last-first",
        "accept",
        traversal.verify,
        drawn_independently,
        throughout(lambda siblings: siblings[::-1]),
        rule="traversal",
        formula="drawn with replacement, siblings verified from the last to the first",
        symptom="Leaves are visited in another order.",
        hint="Exact: independent drafts have no order.",
        lossless=True,
    ),
    tree(
        "tree-topdown",
        "length",
        topdown.verify,
        given=True,
        rule="traversal",
        formula="recursive rejection, from the root down",
        symptom="It does not accept as often as traversal.",
        hint="what is below a rejected sibling is never read.",
        cites=("arXiv:2305.09781",),
        lossless=True,
    ),
    tree(
        "tree-traversal",
        "length",
        traversal.verify,
        given=True,
        rule="topdown",
        formula="a node after everything below it, with what is left of its acceptance",
        symptom="It does not accept as often as top-down verification.",
        hint="a refused child leaves A p' to its parent, and no more.",
        cites=("arXiv:2505.12398",),
        lossless=True,
    ),
    tree(
        "tree-eldest-alone",
        "length",
        at_nodes(changed(lambda siblings: siblings[:1])),
        given=True,
        rule="topdown",
        formula="only the first sibling of each node is verified",
        symptom="It accepts no more than a single draft.",
        hint="drafts that are not read change nothing.",
        lossless=True,
    ),
)
