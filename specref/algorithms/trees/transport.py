"""The most that any lossless rule can accept of several drafts of one token: optimal transport.

A rule that sees drafts x_1 … x_k and emits y is a coupling of the law of the drafts with p, and
accepts where y is one of them. Sun et al. 2023 (SpecTr, arXiv:2310.15141) maximise that as a
transport problem with membership cost; Khisti et al. 2024 (arXiv:2410.18234) and Hu et al. 2025
(arXiv:2502.18779) give the value for sets H of tokens:

    the most = 1 - max over H of [P(all drafts are in H) - p(H)].

No rule accepts more: where all drafts are in H, an accepted one is a y in H, which p emits with
probability p(H). Some rule accepts as much: what is accepted is a flow from sets of drafts to
tokens, and by max-flow min-cut (Hall's condition) the greatest is the least cut, which for the
sets H of tokens that are cut off is the formula. With k = 1 it is 1 - TV(p, q); with drafts that
are fixed, p(drafts).

For independent drafts only V + 1 sets need to be looked at. Where H is best, leaving x out of it
and taking y into it both do not help, that is, with s = q(H),

    p(x) <= s^k - (s - q(x))^k <= k s^(k-1) q(x),    p(y) >= (s + q(y))^k - s^k >= k s^(k-1) q(y),

so H has the tokens of the least p / q (tokens of one p / q all or none, s^k being convex).
"""

from collections import deque
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from specref.algorithms.trees.siblings import remaining
from specref.distributions import Probabilities, Probability, normalise, push_forward
from specref.validation import check_count, check_exact, check_law, check_pair
from specref.vocabulary import Tokens

DraftsLaw: TypeAlias = Mapping[Tokens, Probability]
Edge: TypeAlias = tuple[frozenset[int], int]
Path: TypeAlias = tuple[Edge, ...]
Flow: TypeAlias = dict[Edge, Probability]
MAX_SUBSETS_OF = 16


class Optimum(NamedTuple):
    """The greatest acceptance, and the smallest H for which it is that; () if that is empty."""

    acceptance: Probability
    bottleneck: Tokens


def drafts_law(q: Probabilities, drafts: int, *, replacement: bool) -> dict[Tokens, Probability]:
    """The law of siblings, in draw order, as `algorithms.trees.siblings.draw` draws them.

    Without replacement they differ, and are fewer than `drafts` where q has fewer tokens.
    """
    check_count(drafts)
    law: dict[Tokens, Probability] = {(): 1}
    for _ in range(drafts):
        longer: dict[Tokens, Probability] = {}
        for siblings, reached in law.items():
            left = q if replacement or not siblings else remaining(q, *siblings)
            if not left.any():
                longer[siblings] = reached
            tokens = map(int, np.flatnonzero(left))
            longer |= {(*siblings, token): reached * left[token] for token in tokens}
        law = longer
    return law


def optimal_acceptance(p: Probabilities, law: DraftsLaw) -> Optimum:
    """The greatest probability with which a lossless rule emits one of the drafts.

    All 2^V sets of tokens are looked at, for up to 16 tokens.
    """
    if len(p) > MAX_SUBSETS_OF:
        raise ValueError(f"p has {len(p)} tokens: expected at most {MAX_SUBSETS_OF}")
    check_law(p, law)
    weights = by_set(law)
    most: tuple[Probability, Tokens] = p[0] * 0, ()
    for size in range(len(p) + 1):
        for tokens in combinations(range(len(p)), size):
            inside = sum(w for drafts, w in weights.items() if drafts <= set(tokens))
            excess = inside - p[list(tokens)].sum()
            most = max(most, (excess, tokens), key=lambda cut: cut[0])
    return Optimum(1 - most[0], most[1])


def optimal_acceptance_independent(p: Probabilities, q: Probabilities, drafts: int) -> Optimum:
    """`optimal_acceptance` for drafts with replacement, for any V: in order of p / q."""
    check_count(drafts)
    check_pair(p, q)
    drawn = [int(token) for token in np.flatnonzero(q)]
    order = sorted(drawn, key=lambda token: p[token] / q[token])
    inside, emitted = np.cumsum(q[order]), np.cumsum(p[order])
    excess = inside**drafts - emitted
    best = int(np.argmax(excess))
    if excess[best] <= 0:
        return Optimum(q[0] * 0 + 1, ())
    return Optimum(1 - excess[best], tuple(sorted(order[: best + 1])))


def coupling(p: Probabilities, law: DraftsLaw) -> Flow:
    """What an optimal rule accepts: the maximum flow from sets of drafts to tokens of theirs.

    It sums to the optimal acceptance, to at most p over each token, and to at most the probability
    of each set. p and `law` are exact: rounding would leave paths to augment.
    """
    check_exact(p, "p")
    check_exact(law.values(), "law")
    check_law(p, law)
    return maximum_flow(by_set(law), dict(enumerate(p)))


def optimal_rows(p: Probabilities, law: DraftsLaw) -> dict[frozenset[int], Probabilities]:
    """An optimal rule: for each set of drafts, the law of the token that is emitted.

    The flow out of the set, and for the rest of the set what the flow leaves of p. The flow being
    greatest, what it leaves of p is outside of every set that has a rest: a token is accepted iff
    it is in the set.
    """
    flow, weights = coupling(p, law), by_set(law)
    accepted = {
        drafts: np.array([flow.get((drafts, token), Fraction(0)) for token in range(len(p))])
        for drafts in weights
    }
    left = p - sum(accepted.values())
    residual = normalise(left) if left.any() else left
    return {
        drafts: (accepted[drafts] + (weight - accepted[drafts].sum()) * residual) / weight
        for drafts, weight in weights.items()
    }


def by_set(law: DraftsLaw) -> dict[frozenset[int], Probability]:
    """The law of the set of drafts: to be accepted, order and multiplicity do not matter."""
    return push_forward(law, frozenset)


def maximum_flow(
    supply: Mapping[frozenset[int], Probability], room: Mapping[int, Probability]
) -> Flow:
    """The most that sets can send to members of theirs, by augmenting paths until there is none.

    Edmonds and Karp 1972: along shortest paths, so that it ends soon, whatever the amounts. A path
    fills an edge, takes back what another set sends to the same member, fills another edge of
    that set, and so on, to a member that has room. A toy: every set is a node.
    """
    left, space, flow = dict(supply), dict(room), Flow()
    while path := _augmenting_path(left, space, flow):
        (source, _), (_, member) = path[0], path[-1]
        filled, emptied = path[::2], path[1::2]
        amount = min([left[source], space[member], *(flow[edge] for edge in emptied)])
        left[source] -= amount
        space[member] -= amount
        flow |= {edge: flow.get(edge, 0) + amount for edge in filled}
        flow |= {edge: flow[edge] - amount for edge in emptied}
    return {edge: amount for edge, amount in flow.items() if amount}


def _augmenting_path(
    left: Mapping[frozenset[int], Probability], space: Mapping[int, Probability], flow: Flow
) -> Path:
    """A shortest one: edges to fill, and between them edges to empty; () if there is none."""
    paths: dict[frozenset[int], Path] = {source: () for source, most in left.items() if most > 0}
    pending = deque(paths)
    while pending:
        source = pending.popleft()
        for member in sorted(source):
            path = (*paths[source], (source, member))
            if space[member] > 0:
                return path
            for edge, amount in flow.items():
                if edge[1] == member and amount > 0 and edge[0] not in paths:
                    paths[edge[0]] = (*path, edge)
                    pending.append(edge[0])
    return ()
