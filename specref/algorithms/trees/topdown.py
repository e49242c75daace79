"""Token trees, verified top-down: several drafts of each position, and drafts after all of them.

SpecInfer (Miao et al. 2023, arXiv:2305.09781), whose siblings are drawn with replacement; Sequoia
(Chen et al. 2024, arXiv:2402.12374), whose siblings are drawn without. From the root down, the
siblings after the accepted prefix are verified by recursive rejection, in the order of drawing:

    accept x with probability min(1, p'(x) / q(x)); else p' becomes norm((p' - q)+),

from p' = p. The drafts after an accepted sibling are read next, those after a refused one never;
and since these were not read, they say nothing about it. If no sibling is accepted, the block ends
with a draw from p': the residual, or p where nothing was drafted.

A draft carries the distribution that it was drawn from once its elder siblings were known. So the
verifier need not know how they were drawn: with replacement that distribution is q; without, q
restricted to the others; for several draft models, each one's own; for siblings that are not drawn
at all, such as the k likeliest tokens, one-hot.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from specref.algorithms.lookahead import positions
from specref.algorithms.standard import acceptance
from specref.algorithms.trees.siblings import draw, remaining
from specref.chance import Chance
from specref.distributions import Probabilities, corrected
from specref.models import Model
from specref.validation import check_branching
from specref.vocabulary import Tokens


class Node(NamedTuple):
    """A drafted token, its distribution given its elder siblings, and what follows it."""

    token: int
    q: Probabilities
    children: "Tree"


Tree: TypeAlias = tuple[Node, ...]
Verify: TypeAlias = Callable[[Model, Tokens, Tree, Chance], Tokens]
Branching: TypeAlias = tuple[int, ...]


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    branching: Branching | None = None,
    replacement: bool = False,
    verifier: Verify | None = None,
) -> Tokens:
    """One iteration of top-down tree verification: 1 to lookahead + 1 tokens, distributed as p.

    Parameters
    ----------
    target, drafter : Model
        Over the same vocabulary.
    context : tuple of int
        Target token ids.
    lookahead : int
        The depth of the tree; 0 draws one token from the target.
    chance : Chance
        Sites ``draft[i]``, ``draft[i][j]``, …: sibling j below sibling i. Then ``accept[i]``,
        ``accept[i][j]``, … for the siblings that are read, and ``residual`` or ``bonus``.
    branching : tuple of int, optional
        How many siblings are drafted at each depth; by default (2, 1, …, 1).
    replacement : bool
        Whether siblings may repeat. If not, and q has too few tokens, there are fewer.
    verifier : callable, optional
        (target, context, tree, chance) -> block, in place of `verify`.

    Returns
    -------
    tuple of int
        The block. An accepted EOS ends it, without a bonus token.

    Raises
    ------
    ValueError
        The vocabularies differ, a token id is out of range, `lookahead` < 0, or `branching` is
        not `lookahead` integers >= 1.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> vocabulary = Vocabulary("ab")
    >>> p, q = iid_model(vocabulary, ["1/3", "2/3"]), iid_model(vocabulary, ["2/3", "1/3"])
    >>> blocks = exact_distribution(lambda chance: step(p, q, (), 2, chance))
    >>> sum(len(block) * weight for block, weight in blocks.items())  # standard: 19/9
    Fraction(8, 3)
    """
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        raise ValueError("drafter has another vocabulary than target: drafts are target tokens")
    widths = branching_of(lookahead, branching)
    tree = draft(drafter, context, widths, chance, replacement=replacement)
    return (verifier or verify)(target, context, tree, chance)


def branching_of(lookahead: int, branching: Branching | None = None) -> Branching:
    """The siblings at each of `lookahead` depths: two, then one each, unless `branching` is given.

    Examples
    --------
    >>> branching_of(3)
    (2, 1, 1)
    """
    widths = tuple(1 if depth else 2 for depth in positions(lookahead))
    if branching is None:
        return widths
    expected = f"lookahead = {lookahead} integers >= 1"
    check_branching(branching, expected)
    if len(branching) != lookahead:
        raise ValueError(f"branching = {branching}: expected {expected}")
    return branching


def draft(
    drafter: Model,
    context: Tokens,
    branching: Branching,
    chance: Chance,
    site: str = "draft",
    *,
    replacement: bool,
) -> Tree:
    """Draft siblings, and below each of them a tree of its own; nothing below EOS."""
    if not branching:
        return ()
    q, tree = drafter.next_token(context), []
    for j, token in enumerate(draw(q, branching[0], chance, site, replacement=replacement)):
        below = () if drafter.vocabulary.ends((token,)) else branching[1:]
        place, longer = f"{site}[{j}]", (*context, token)
        children = draft(drafter, longer, below, chance, place, replacement=replacement)
        tree.append(Node(token, q, children))
        q = q if replacement else remaining(q, token)
    return tuple(tree)


def verify(
    target: Model, context: Tokens, tree: Tree, chance: Chance, site: str = "accept"
) -> Tokens:
    """Descend into the first sibling that is accepted; if none is, one more token."""
    p = target.next_token(context)
    for j, (token, q, children) in enumerate(tree):
        if chance.accept(acceptance(p, q, token), f"{site}[{j}]"):
            if target.vocabulary.ends((token,)):
                return (token,)
            return (token, *verify(target, (*context, token), children, chance, f"{site}[{j}]"))
        p = corrected(p, q)
    return (chance.draw(p, "residual" if tree else "bonus"),)
