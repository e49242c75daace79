"""Traversal verification: a token tree is verified from its leaves to its root.

Weng et al. 2025 (arXiv:2505.12398). A node of the tree is a context and a draft token; the root is
the context alone. A node is verified after everything below it, so it can be accepted although all
its children are refused. Two values belong to a node and change while its children are verified:

* A is the probability with which it still has to be accepted: 1 for the root.
* p' is the distribution of the token after it: at first the target's p there.

Children are verified in the order of drawing, each with all that is below it. A child x that was
drawn from q starts with

    A_x = min(1, A p'(x) / q(x)).

If it is refused, then with R = (A p' - q)+, what the target has left,

    p' becomes norm(R),    A becomes sum R / (sum R + 1 - A).

After the last child the node itself is accepted with probability A, and a token from p' follows.

Why it is lossless, from the leaves up: a node that is reached with A and p' is accepted with
probability A, and then p' follows, and p after that. Without a child to come, that is what is
done. Otherwise the next child is x with probability q(x), whatever was read before, and is
accepted with A_x. So x follows with probability min(q, A p')(x). A child is refused with 1 less
their sum, which is sum R + 1 - A. Then, by induction, y follows with probability
sum R / (sum R + 1 - A) norm(R)(y). Together that is A p'. The new A and p' are the same for all x.
The distribution of the next child need not be, so siblings without replacement are covered: it is
q restricted to all but x.

If sum R = 0 and A < 1, A becomes 0: the node is refused. If sum R = 0 and A = 1, p' = q and no
child is refused; so the root keeps A = 1, and is accepted. Where A = 0, as where the target
excludes x, nothing below is read. A refused x has A p'(x) < q(x), so the new p'(x) is 0, and
duplicates of x are refused too; but each of them changes A and p'. A tree with one branch is
verified as by `block`: A is its A_i, R its R_i, and the new A its h_i. `specref.theory.trees` has
how much is accepted, and when that is more than top-down.
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
    """p' and A once a child from q is refused; unchanged where it was by rounding alone."""
    excess = np.maximum(survival * p - q, 0)
    total: Probability = excess.sum()
    if not total:
        return p, survival if survival == 1 else 0
    return excess / total, total / (total + (1 - survival))
