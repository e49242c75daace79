"""Block verification in closed form: what is accepted, what comes out, and that it is the most.

Let drafts start with x = x_1 … x_k with probability Q(x), and be accepted so far with probability
W(x) = P(x is drafted, and at least k drafts are accepted). Sun et al. 2024 (arXiv:2403.10444)
accept x with A_k once it is drafted, so W = Q A_k, and A_{k+1} = min(1, A_k p / q) reads

    W(x y) = min(Q(x y), W(x) p(y | x)),    W() = 1,

or W(x) = min over j of Q(x_1 … x_j) p(x_{j+1} … x_k | x_1 … x_j). Token verification has
min(W(x) q(y | x), W(x) p(y | x)) instead: never more, as W <= Q. With y as the residual or bonus
token the block x y comes out with probability (W(x) p(y | x) - Q(x y))+.

No lossless rule accepts more, if it keeps a prefix of the drafts, adds one token and leaves the
rest to the target: W(x y) is at most Q(x y); and at most W(x) p(y | x), because where the target's
text starts with x it goes on with p, in all, and also given that fewer than k drafts are accepted.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from specref.algorithms.lookahead import positions
from specref.distributions import Probabilities, Probability, push_forward
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

Rows: TypeAlias = Mapping[Tokens, Probabilities]


def draft_rows(target: Model, drafter: Model, context: Tokens, lookahead: int) -> Rows:
    """The law of the next draft after every draft that can be drawn; after the last, zeros.

    Raises `ValueError` if the vocabularies differ: `conditional_psi` is for drafts of another.
    """
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        raise ValueError("drafter has another vocabulary than target: use conditional_psi")
    limit, nothing = len(positions(lookahead)), drafter.next_token(context) * 0
    rows: dict[Tokens, Probabilities] = {}
    pending: deque[Tokens] = deque([()])
    while pending:
        prefix = pending.popleft()
        ended = len(prefix) == limit or drafter.vocabulary.ends(prefix)
        rows[prefix] = nothing if ended else drafter.next_token((*context, *prefix))
        pending += [(*prefix, int(token)) for token in np.flatnonzero(rows[prefix])]
    return rows


def accepted_prefixes(target: Model, context: Tokens, rows: Rows) -> dict[Tokens, Probability]:
    """W: the probability that the accepted drafts start with each prefix, where positive.

    `rows` are `draft_rows`, or `conditional_psi`. Shorter prefixes come first, and none is longer
    than an accepted EOS.
    """
    accepted: dict[Tokens, Probability] = {(): 1}
    for prefix, p, q in _joint(target, context, rows):
        accepted |= _positive(prefix, np.minimum(p, q))
    return accepted


def block_law(target: Model, context: Tokens, rows: Rows) -> dict[Tokens, Probability]:
    """The law of the block that block verification emits; no path of chance is enumerated."""
    law: dict[Tokens, Probability] = {}
    for prefix, p, q in _joint(target, context, rows):
        law |= _positive(prefix, np.maximum(p - q, 0))
        every = _positive(prefix, p)
        law |= {block: w for block, w in every.items() if target.vocabulary.ends(block)}
    return law


def _joint(
    target: Model, context: Tokens, rows: Rows
) -> Iterator[tuple[Tokens, Probabilities, Probabilities]]:
    """(x, W(x) p, Q(x) q) for every x that may be accepted and not last, shorter ones first."""
    pending: deque[tuple[Tokens, Probability, Probability]] = deque([((), 1, 1)])
    while pending:
        prefix, accepted, drafted = pending.popleft()
        p = accepted * target.next_token((*context, *prefix))
        if len(rows[prefix]) != len(p):
            raise ValueError(f"rows[{prefix}] has {len(rows[prefix])} entries: expected {len(p)}")
        q = drafted * rows[prefix]
        yield prefix, p, q
        for longer, weight in _positive(prefix, np.minimum(p, q)).items():
            if not target.vocabulary.ends(longer):
                pending.append((longer, weight, q[longer[-1]]))


def _positive(prefix: Tokens, weights: Probabilities) -> dict[Tokens, Probability]:
    return {(*prefix, token): weights[token] for token in map(int, np.flatnonzero(weights))}


def survival(accepted: Mapping[Tokens, Probability]) -> tuple[Probability, ...]:
    """P(at least 0, 1, … drafts are accepted), while positive."""
    reached = push_forward(accepted, len)
    return tuple(reached[length] for length in sorted(reached))


def length_law(accepted: Mapping[Tokens, Probability]) -> tuple[Probability, ...]:
    """P(accepted length = 0), P(= 1), …, up to the longest possible; no rounding below 0."""
    return tuple(max(now - later, 0) for now, later in pairwise((*survival(accepted), 0)))


def tokens_emitted(accepted: Mapping[Tokens, Probability], vocabulary: Vocabulary) -> Probability:
    """The expected length of a block: the sum of W(x) over all x that EOS does not end.

    Every such x is followed by one more token, whether that is a draft or the last of the block.
    """
    return sum(weight for prefix, weight in accepted.items() if not vocabulary.ends(prefix))
