"""Several drafts of every token: one step down for each position where one of them is accepted.

At each depth k siblings are drafted after what is accepted so far, and a rule emits one token; if
it is a sibling that the rule accepted, the next depth follows it. That is a tree of drafts of
which only the children of accepted nodes are drafted: the others are never read, and a tree that
is drafted at once (`trees`) has the same law. A rule is lossless if the token's law is p. Then so
is the step: whether it goes on may depend on all it knows, as what goes on or ends is p's.

Here are recursive rejection (`siblings`) and matching; `multi_draft_rules` has k-SEQ, top drafts,
SpecHub and the optimal rule. How much each accepts: `specref.theory.multi_draft`.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from specref.algorithms.siblings import draw, reject_recursively
from specref.chance import Chance
from specref.distributions import Probabilities
from specref.models import Model
from specref.theory.checks import check_count
from specref.theory.lookahead import positions
from specref.vocabulary import Tokens


class Verdict(NamedTuple):
    """The token of a position, and whether it is an accepted draft."""

    token: int
    accepted: bool


Rule: TypeAlias = Callable[[Probabilities, Probabilities, int, Chance, int], Verdict]


def recursive_rejection(
    p: Probabilities,
    q: Probabilities,
    drafts: int,
    chance: Chance,
    depth: int,
    *,
    replacement: bool = False,
) -> Verdict:
    """The first sibling that is accepted, or a token of the last residual.

    Sites ``draft[depth][j]``, ``accept[depth][j]``, ``residual``.

    Examples
    --------
    >>> from specref.chance import Replayed
    >>> from specref.distributions import as_distribution
    >>> p, q = as_distribution(["1/2", "1/2"]), as_distribution(["1/4", "3/4"])
    >>> recursive_rejection(p, q, 2, Replayed([1, 0, 0, 1]), 0)
    Verdict(token=0, accepted=True)
    """
    siblings = draw(q, drafts, chance, f"draft[{depth}]", replacement=replacement)
    index, law = reject_recursively(
        p, q, siblings, chance, f"accept[{depth}]", replacement=replacement
    )
    if index is not None:
        return Verdict(siblings[index], True)
    return Verdict(chance.draw(law, "residual"), False)


def matching(
    p: Probabilities,
    q: Probabilities,
    drafts: int,
    chance: Chance,
    depth: int,
    *,
    replacement: bool = False,
) -> Verdict:
    """A draw from p, accepted if it is a sibling: naive, and with one draft not `standard`.

    Sites ``draft[depth][j]``, ``target[depth]``.

    Examples
    --------
    >>> from specref.chance import Replayed
    >>> from specref.distributions import as_distribution
    >>> p, q = as_distribution(["1/2", "1/2"]), as_distribution(["1/4", "3/4"])
    >>> matching(p, q, 1, Replayed([1, 0]), 0)
    Verdict(token=0, accepted=False)
    """
    siblings = draw(q, drafts, chance, f"draft[{depth}]", replacement=replacement)
    token = chance.draw(p, f"target[{depth}]")
    return Verdict(token, token in siblings)


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    drafts: int = 2,
    rule: Rule = recursive_rejection,
) -> Tokens:
    """One iteration with several drafts of each token: 1 to lookahead + 1 tokens, as p.

    Parameters
    ----------
    target, drafter : Model
        Over the same vocabulary.
    context : tuple of int
        Target token ids.
    lookahead : int
        How many depths to draft; 0 draws one token from the target.
    chance : Chance
        Sites of the rule, for each depth; ``bonus``.
    drafts : int
        Siblings of each depth. With one, all rules but `matching` and SpecHub are `standard`.
    rule : callable
        (p, q, drafts, chance, depth) -> `Verdict`.

    Returns
    -------
    tuple of int
        The block. An accepted EOS ends it, without a bonus token.

    Raises
    ------
    ValueError
        The vocabularies differ, a token id is out of range, or `lookahead` or `drafts` too small.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> rows = ["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]
    >>> p, q = (iid_model(Vocabulary("abc"), row) for row in rows)
    >>> blocks = exact_distribution(lambda chance: step(p, q, (), 1, chance))
    >>> sum(len(block) * weight for block, weight in blocks.items())  # standard: 5/3
    Fraction(16, 9)
    """
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        raise ValueError("drafter has another vocabulary than target: siblings are its tokens")
    check_count(drafts)
    block: Tokens = ()
    for depth in positions(lookahead):
        if drafter.vocabulary.ends(block):
            break
        p, q = (model.next_token((*context, *block)) for model in (target, drafter))
        token, accepted = rule(p, q, drafts, chance, depth)
        block = (*block, token)
        if not accepted or target.vocabulary.ends(block):
            return block
    return (*block, chance.draw(target.next_token((*context, *block)), "bonus"))
