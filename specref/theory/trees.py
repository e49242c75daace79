"""Token trees in closed form: what top-down and traversal verification accept and emit.

Let a node be reached with probability r, and A be the probability with which it then has to be
accepted. Let m be A r times the distribution p of the token after it: what the node has to emit.
Its next child is x with probability r q(x), and accepted with min(r q, m)(x). If it is refused,

    m becomes (m - r q)+,    r becomes sum (r q - m)+.

Without replacement both are divided among the refused x, in proportion to (r q - m)+(x), and q
loses x. After the last child m is emitted: the token that ends the block. Top-down verification
draws the random number of a child before those of what is below it, traversal after them: so the
child's r is min(r q, m)(x), that is A = 1, or r q(x). That is all they differ in.

With replacement, traversal accepts every prefix at least as often. Take two nodes with the same m
and different r: the larger r stays larger, and its m is smaller, child after child, as (r q - m)+
and (m - r q)+ are monotone. So what is accepted of each x, in all, is at least A times what is
accepted with A = 1; and of what is below x, by induction from the leaves, at least the share that
top-down verification accepts.

Without replacement it may accept less, as with four tokens and branching (1, 2): with A < 1 other
children are refused than with A = 1, and their younger siblings are drawn from another q. For
three tokens, where two siblings are the only case, no example was found. Nor is traversal optimal:
another lossless rule may accept more, as linear programming shows already for one depth.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from specref.algorithms.trees.siblings import remaining
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.theory.block import length_law
from specref.validation import check_branching
from specref.vocabulary import Tokens


class Stage(NamedTuple):
    """The next child, or none (q = 0): its probability, what is still to be emitted, and q."""

    reach: Probability
    due: Probabilities
    q: Probabilities

    @property
    def accepted(self) -> Probabilities:
        """The probability that the child is x, and accepted."""
        least: Probabilities = np.minimum(self.reach * self.q, self.due)
        return least


Read: TypeAlias = Callable[[Stage], Probabilities]
"""The probability that the child is x, and what is below it is read."""


def topdown(stage: Stage) -> Probabilities:
    """What is below a child is read once the child is accepted."""
    return stage.accepted


def traversal(stage: Stage) -> Probabilities:
    """What is below a child is read before the child is verified."""
    read: Probabilities = stage.reach * stage.q
    return read


def accepted_prefixes(
    target: Model,
    drafter: Model,
    context: Tokens,
    branching: tuple[int, ...],
    *,
    rule: Read = topdown,
    replacement: bool = False,
) -> dict[Tokens, Probability]:
    """W: the probability that the accepted drafts start with each prefix, where positive.

    `branching` is how many siblings are drafted at each depth, `replacement` whether they may
    repeat. Shorter prefixes come first.
    """
    accepted: dict[Tokens, Probability] = {(): 1}
    for prefix, stage in _stages(target, drafter, context, branching, rule, replacement):
        _add(accepted, prefix, stage.accepted)
    return accepted


def block_law(
    target: Model,
    drafter: Model,
    context: Tokens,
    branching: tuple[int, ...],
    *,
    rule: Read = topdown,
    replacement: bool = False,
) -> dict[Tokens, Probability]:
    """The distribution of the block that a rule emits, without enumeration."""
    law: dict[Tokens, Probability] = {}
    for prefix, stage in _stages(target, drafter, context, branching, rule, replacement):
        ends = [target.vocabulary.ends((token,)) for token in range(len(stage.q))]
        _add(law, prefix, np.where(ends, stage.accepted, 0 * stage.q))
        if not stage.q.any():
            _add(law, prefix, stage.due)
    return law


def accepted_length_distribution(
    target: Model,
    drafter: Model,
    context: Tokens,
    branching: tuple[int, ...],
    *,
    rule: Read = topdown,
    replacement: bool = False,
) -> tuple[Probability, ...]:
    """P(number of accepted tokens = 0), P(= 1), … of one iteration; an accepted EOS counts."""
    law = length_law(
        accepted_prefixes(target, drafter, context, branching, rule=rule, replacement=replacement)
    )
    return law + (0,) * (len(branching) + 1 - len(law))


def siblings(
    reach: Probability, due: Probabilities, q: Probabilities, drafts: int, replacement: bool
) -> Iterator[Stage]:
    """The children of a node in draw order, each as it is reached; q = 0 after the last."""
    if not drafts or not q.any():
        yield Stage(reach, due, q * 0)
        return
    stage = Stage(reach, due, q)
    yield stage
    left, refused = due - stage.accepted, reach * q - stage.accepted
    if not (left.any() and refused.any()):
        return
    if replacement:
        yield from siblings(refused.sum(), left, q, drafts - 1, replacement)
        return
    for token, share in _positive(refused / refused.sum()).items():
        yield from siblings(refused[token], left * share, remaining(q, token), drafts - 1, False)


def _stages(
    target: Model,
    drafter: Model,
    context: Tokens,
    branching: tuple[int, ...],
    rule: Read,
    replacement: bool,
) -> Iterator[tuple[Tokens, Stage]]:
    """Every child of every accepted prefix, shorter prefixes first; nodes of one a are merged."""
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        raise ValueError("drafter has another vocabulary than target: drafts are target tokens")
    check_branching(branching)
    nodes: dict[tuple[Tokens, Probability], Probability] = {((), 1): 1}
    for width in (*branching, 0):
        children: dict[tuple[Tokens, Probability], Probability] = {}
        for (prefix, survival), reach in nodes.items():
            p = target.next_token((*context, *prefix))
            drafts = 0 if drafter.vocabulary.ends(prefix) else width
            q = drafter.next_token((*context, *prefix)) if drafts else 0 * p
            for stage in siblings(reach, reach * survival * p, q, drafts, replacement):
                yield prefix, stage
                read = rule(stage)
                for token, accepted in _positive(stage.accepted).items():
                    child = ((*prefix, token), accepted / read[token])
                    if not target.vocabulary.ends((token,)):
                        children[child] = children.get(child, 0) + read[token]
        nodes = children


def _add(law: dict[Tokens, Probability], prefix: Tokens, weights: Probabilities) -> None:
    for token, weight in _positive(weights).items():
        law[*prefix, token] = law.get((*prefix, token), 0) + weight


def _positive(weights: Probabilities) -> dict[int, Probability]:
    return {token: weights[token] for token in map(int, np.flatnonzero(weights))}
