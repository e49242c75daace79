"""Traversal verification: a token tree is verified from its leaves to its root.

Weng et al. 2025 (arXiv:2505.12398). A node is verified after everything below it: it may survive
that its own children are all refused. Let a be the probability with which it still has to be
accepted, 1 for the root, and P the distribution of the token after it, at first p. In the order of
drawing, a child x from q gets

    a_x = min(1, a P(x) / q(x)),

and is verified with all that is below it. If it is refused, then with Z = sum (a P - q)+

    P becomes norm((a P - q)+),    a becomes Z / (Z + 1 - a).

After the last child the node itself is accepted with probability a, and a token from P follows.

What is shown, from the leaves up: a node that is reached with a and P is accepted with probability
a, and then P follows, and p after that. Without a child to come, that is what is done. Otherwise
the next child is x with probability q(x), whatever was read before, and accepted with a_x: so x
follows with probability min(q, a P)(x). It is refused with 1 less their sum, which is Z + 1 - a;
then, by induction, y follows with probability Z / (Z + 1 - a) norm((a P - q)+)(y). Together that
is a P. The new a and P are the same for all x; the distribution of the next child need not be, so
siblings without replacement are covered: it is q restricted to all but x.

Z = 0 with a < 1 makes a 0: the node is refused. Z = 0 with a = 1 means P = q, where no child is
refused; so the root keeps a = 1, and is accepted. Below a = 0, as where the target excludes x,
nothing is read. A refused x has a P(x) < q(x), so P(x) = 0, and its duplicates are refused too;
but each of them changes a and P. A tree with one branch is verified as by `block`, whose P_i is a
and whose h_i is Z / (Z + 1 - a). How much is accepted, and when more than top-down, is a matter
of `specref.theory.trees`.
"""

import numpy as np

from specref.algorithms.standard import acceptance
from specref.algorithms.trees import topdown
from specref.algorithms.trees.topdown import Branching, Node, Tree
from specref.chance import Chance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.vocabulary import Tokens


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    branching: Branching | None = None,
    replacement: bool = False,
) -> Tokens:
    """One iteration of traversal verification: 1 to lookahead + 1 tokens, distributed as p.

    Parameters, returns and errors as `topdown.step`, with its sites: ``accept[i][j]`` here comes
    before ``accept[i]``.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> vocabulary = Vocabulary("ab")
    >>> p, q = iid_model(vocabulary, ["1/3", "2/3"]), iid_model(vocabulary, ["2/3", "1/3"])
    >>> blocks = exact_distribution(lambda chance: step(p, q, (), 2, chance))
    >>> sum(len(block) * weight for block, weight in blocks.items())  # topdown: 8/3
    Fraction(25, 9)
    """
    return topdown.step(
        target, drafter, context, lookahead, chance,
        branching=branching, replacement=replacement, verifier=verify,
    )  # fmt: skip


def verify(
    target: Model,
    context: Tokens,
    tree: Tree,
    chance: Chance,
    survival: Probability = 1,
    site: str = "accept",
) -> Tokens:
    """What follows the context; () if it is refused, with probability 1 - `survival`."""
    p = target.next_token(context)
    for j, node in enumerate(tree):
        likely = acceptance(survival * p, node.q, node.token)
        if block := accept(target, context, node, chance, likely, f"{site}[{j}]"):
            return block
        p, survival = refused(p, node.q, survival)
    if survival < 1 and not chance.accept(survival, site):
        return ()
    return (chance.draw(p, "residual" if tree else "bonus"),)


def accept(
    target: Model, context: Tokens, node: Node, chance: Chance, survival: Probability, site: str
) -> Tokens:
    """A node and what follows it; () if it is refused."""
    token, _, children = node
    if survival == 0:
        return ()
    if target.vocabulary.ends((token,)):
        return (token,) if chance.accept(survival, site) else ()
    rest = verify(target, (*context, token), children, chance, survival, site)
    return (token, *rest) if rest else ()


def refused(
    p: Probabilities, q: Probabilities, survival: Probability
) -> tuple[Probabilities, Probability]:
    """P and a once a child from q is refused; unchanged where it was by rounding alone."""
    excess = np.maximum(survival * p - q, 0)
    total: Probability = excess.sum()
    if not total:
        return p, survival if survival == 1 else 0
    return excess / total, total / (total + (1 - survival))
