"""Greedy block verification in closed form: what is accepted, and that nothing accepts more.

With the joint probabilities p(x) and q(x) of x = x_1 … x_k, the drafts start with x and at least
k of them are accepted with probability min(p, q)(x) (Sun et al. 2024, arXiv:2403.10444, appendix).
That is at least what block verification accepts, min over j of q(x_1 … x_j) p(x_{j+1} … x_k | …),
where j = 0 and j = k are two of the choices; and that at least what token verification accepts.

No lossless rule accepts x more often: it is drafted with q(x), and the text starts with it with
p(x). So k drafts or more are accepted with probability sum min(p, q), which is 1 - TV(p^k, q^k)
where no text ends before. What is modified afterwards is the price:
it holds for one iteration's drafts, and the next ones meet a target that is farther from q.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from specref.distributions import Probabilities, Probability, normalise
from specref.models import Model
from specref.theory.block import Rows
from specref.vocabulary import Tokens


class Node(NamedTuple):
    """A prefix x, p(x) and q(x), and the joint probabilities of x with one more token."""

    prefix: Tokens
    drawn: Probability
    drafted: Probability
    p: Probabilities
    q: Probabilities


def accepted_prefixes(target: Model, context: Tokens, rows: Rows) -> dict[Tokens, Probability]:
    """min(p, q): the probability that the accepted drafts start with each prefix, where positive.

    `target` is what the drafts are verified against, modified or not, and `rows` are
    `theory.block.draft_rows`. Shorter prefixes come first, none longer than an accepted EOS.
    """
    nodes = _nodes(target, context, rows)
    return {node.prefix: min(node.drawn, node.drafted) for node in nodes}


def block_law(target: Model, context: Tokens, rows: Rows) -> dict[Tokens, Probability]:
    """The law of the block that greedy block verification emits, without those to come."""
    law: dict[Tokens, Probability] = {}
    for node in _nodes(target, context, rows):
        excess = np.maximum(node.p - node.q, 0)
        if target.vocabulary.ends(node.prefix):
            law[node.prefix] = law.get(node.prefix, 0) + min(node.drawn, node.drafted)
        elif excess.any():
            last = _stopped(node) * normalise(excess)
            law |= {(*node.prefix, y): last[y] for y in map(int, np.flatnonzero(last))}
    return law


def _nodes(target: Model, context: Tokens, rows: Rows) -> Iterator[Node]:
    """Every prefix that can be accepted, shorter ones first."""
    pending: deque[tuple[Tokens, Probability, Probability]] = deque([((), 1, 1)])
    while pending:
        prefix, drawn, drafted = pending.popleft()
        if target.vocabulary.ends(prefix):
            p = q = rows[()] * 0
        else:
            p, q = drawn * target.next_token((*context, *prefix)), drafted * rows[prefix]
        if len(p) != len(q):
            raise ValueError(f"rows[{prefix}] has {len(q)} entries: expected {len(p)}")
        yield Node(prefix, drawn, drafted, p, q)
        longer = map(int, np.flatnonzero(np.minimum(p, q)))
        pending += [((*prefix, y), p[y], q[y]) for y in longer]


def _stopped(node: Node) -> Probability:
    """min(p, q)(x) - sum min(p, q)(x .), by terms none of which is negative."""
    if node.drawn <= node.drafted:
        excess: Probability = np.maximum(node.p - node.q, 0).sum()
        return excess
    ended: Probability = max(node.drafted - node.q.sum(), 0)
    refused: Probability = np.maximum(node.q - node.p, 0).sum()
    return ended + refused
