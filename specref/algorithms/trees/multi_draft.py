"""Several drafts of every token: one step down for each position where one of them is accepted.

At each depth k siblings are drafted after what is accepted, and a rule emits one token; if
it is a sibling that the rule accepted, the next depth follows it. That is a tree of drafts of
which only the children of accepted nodes are drafted: the others are never read, and a tree that
is drafted at once (`topdown`) has the same distribution. A rule is lossless if the token's
distribution is p. Then so is the step: whether it goes on may depend on all it knows, as what goes
on or ends is p's.

The rules: recursive rejection (`siblings`), matching, k-SEQ, top drafts, SpecHub and the optimal
one. How much each accepts: `specref.theory.multi_draft`.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from specref.algorithms.lookahead import positions
from specref.algorithms.trees.k_seq import k_seq_law, smallest_rho
from specref.algorithms.trees.siblings import draw, reject_recursively, remaining
from specref.algorithms.trees.transport import drafts_law, optimal_rows
from specref.chance import Chance
from specref.distributions import ExactNumber, Probabilities, Probability, corrected
from specref.models import Model
from specref.validation import check_count, check_exact
from specref.vocabulary import Tokens


class Verdict(NamedTuple):
    """The token of a position, and whether it is an accepted draft."""

    token: int
    accepted: bool


PositionRule: TypeAlias = Callable[[Probabilities, Probabilities, int, Chance, int], Verdict]


def recursive_rejection(
    p: Probabilities,
    q: Probabilities,
    drafts: int,
    chance: Chance,
    depth: int,
    *,
    replacement: bool = False,
) -> Verdict:
    """The first accepted of siblings drawn without replacement, or a token of the last residual.

    With `replacement`, siblings may be alike. Sites ``draft[depth][j]``, ``accept[depth][j]``,
    ``residual``.

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


def k_seq(
    p: Probabilities,
    q: Probabilities,
    drafts: int,
    chance: Chance,
    depth: int,
    *,
    rho: Probability | None = None,
) -> Verdict:
    """k-SEQ (SpecTr: Sun et al. 2023, arXiv:2310.15141): accept with min(1, p / rho q).

    Siblings are drawn with replacement. `rho` is by default the least multiple of 1/64 that
    is not below rho*, which accepts most and may be irrational; one that leaves no residual is a
    `ValueError`. Sites ``draft[depth][j]``, ``accept[depth][j]``, ``residual``.

    Examples
    --------
    >>> from specref.chance import Replayed
    >>> from specref.distributions import as_distribution
    >>> p, q = as_distribution(["1/2", "1/2"]), as_distribution(["1/4", "3/4"])
    >>> k_seq(p, q, 2, Replayed([1, 0, 0, 1]), 0, rho=2)
    Verdict(token=0, accepted=True)
    """
    siblings = draw(q, drafts, chance, f"draft[{depth}]", replacement=True)
    rho = smallest_rho(p, q, drafts) if rho is None else rho
    kept, accepted = k_seq_law(p, q, drafts, rho)
    for j, token in enumerate(siblings):
        if chance.accept(kept[token] / q[token], f"accept[{depth}][{j}]"):
            return Verdict(token, True)
    return Verdict(chance.draw(corrected(p, accepted), "residual"), False)


def top_drafts(
    p: Probabilities, q: Probabilities, drafts: int, chance: Chance, depth: int
) -> Verdict:
    """Greedy drafts (Hu et al. 2025, arXiv:2502.18779): the top k - 1 of q, and one draw outside.

    The draw is verified as a single draft, against q without the top; if it is rejected, the token
    is from the residual, and accepted if it is one of the top. Ties go to the lower id. For these
    drafts no rule accepts more. Sites ``draft[depth][0]``, ``accept[depth][0]``, ``residual``.

    Examples
    --------
    >>> from specref.chance import Replayed
    >>> from specref.distributions import as_distribution
    >>> p, q = as_distribution(["1/6", "1/2", "1/3"]), as_distribution(["1/4", "1/2", "1/4"])
    >>> top_drafts(p, q, 2, Replayed([0, 0, 1]), 0)
    Verdict(token=1, accepted=True)
    """
    check_count(drafts)
    top: Tokens = ()
    while len(top) < drafts - 1 and q.any():
        top = (*top, int(np.argmax(q)))
        q = remaining(q, top[-1])
    outside = draw(q, 1, chance, f"draft[{depth}]", replacement=True)
    index, law = reject_recursively(p, q, outside, chance, f"accept[{depth}]", replacement=True)
    if index is not None:
        return Verdict(outside[index], True)
    token = chance.draw(law, "residual")
    return Verdict(token, token in top)


def spechub(
    p: Probabilities, q: Probabilities, drafts: int, chance: Chance, depth: int
) -> Verdict:
    """Sun et al. 2024 (SpecHub): two drafts, one of which is the hub, the top of q.

    (x, hub) comes with probability q(x), and (hub, x) with q(hub) q(x) / (1 - q(hub)). x is
    accepted up to p(x), of the first kind of pairs before the second; what is left of all pairs
    goes to the hub, up to p(hub), here in equal shares. The sets of drafts have the same
    distribution as those of two `top_drafts`, and what is accepted is the same. Sites
    ``draft[depth][j]``, ``accept[depth]``, ``residual``.

    Examples
    --------
    >>> from specref.chance import Replayed
    >>> from specref.distributions import as_distribution
    >>> p, q = as_distribution(["1/6", "1/2", "1/3"]), as_distribution(["1/4", "1/2", "1/4"])
    >>> spechub(p, q, 2, Replayed([1, 0, 0, 1]), 0)
    Verdict(token=1, accepted=True)
    """
    check_count(drafts)
    if drafts != 2:
        raise ValueError(f"drafts = {drafts!r}: expected 2, the hub and another token")
    hub = int(np.argmax(q))
    others = remaining(q, hub)
    first = chance.draw(q, f"draft[{depth}][0]")
    if others.any():
        x = first if first != hub else chance.draw(others, f"draft[{depth}][1]")
        room, drawn = (p, q) if first == x else (np.maximum(p - q, 0), q[hub] * others)
        if chance.accept(min(1, room[x] / drawn[x]), f"accept[{depth}]"):
            return Verdict(x, True)
    token = chance.draw(corrected(p, others), "residual")
    return Verdict(token, token == hub)


def optimal(
    p: Probabilities,
    q: Probabilities,
    drafts: int,
    chance: Chance,
    depth: int,
    *,
    replacement: bool = False,
) -> Verdict:
    """The most that can be accepted, by an exact maximum flow: toy vocabularies, exact models.

    SpecTr's optimal transport. Sites ``draft[depth][j]``, ``token[depth]``.

    Examples
    --------
    >>> from specref.chance import Replayed
    >>> from specref.distributions import as_distribution
    >>> p, q = as_distribution(["1/2", "1/2"]), as_distribution(["1/4", "3/4"])
    >>> optimal(p, q, 2, Replayed([1, 0, 0]), 0)
    Verdict(token=0, accepted=True)
    """
    check_exact((*p, *q), "p or q")
    siblings = draw(q, drafts, chance, f"draft[{depth}]", replacement=replacement)
    # What stands for all its values is looked up nowhere by its value.
    rows_of = _rows.__wrapped__ if isinstance(p[0], ExactNumber) else _rows
    rows = rows_of(tuple(p), tuple(q), drafts, replacement)
    token = chance.draw(rows[frozenset(siblings)], f"token[{depth}]")
    return Verdict(token, token in siblings)


@lru_cache(maxsize=64)
def _rows(
    p: tuple[Probability, ...], q: tuple[Probability, ...], drafts: int, replacement: bool
) -> Mapping[frozenset[int], Probabilities]:
    return optimal_rows(np.array(p), drafts_law(np.array(q), drafts, replacement=replacement))


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    drafts: int = 2,
    rule: PositionRule = recursive_rejection,
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
