"""Several drafts of one token: how often each rule of `trees.multi_draft` accepts, exactly.

With drafts drawn independently from q, two rules accept a token y with probability

    min(p(y), S q(y)),    A(S) = sum of that over y,    for a number 1 <= S <= k.

Recursive rejection has S = S_k, where S_0 = 0, S_(j+1) = S_j + 1 - A(S_j): after j rejections what
is left of p is (p - S_j q)+, unnormalised, and 1 - A(S_j) its mass.

k-SEQ with m = min(q, p / rho), beta = sum m = A(rho) / rho and
G = 1 + (1 - beta) + … + (1 - beta)^(k-1) accepts y with m(y) G, and has a residual iff m G <= p.
That holds where G <= rho, so for rho = k; and from rho* on, where G = rho: rho beta never falls
with rho, and 1 - (1 - beta)^k, which is G beta, never rises. So rho* accepts most, with S = rho*.
It is a root of a polynomial of degree k, for most p and q irrational; `smallest_rho` is the least
on a grid, and may accept less than recursive rejection. (A lesser rho is admissible only where
q < p / rho on all of p; it accepts the same.)

For all p, q and k, with drafts drawn independently,

    matching, k-SEQ with rho = k  <=  recursive rejection  <=  k-SEQ with rho*  <=  the optimum.

- Recursive rejection over matching: pointwise, by induction over k. By one draft and matching of
  the k - 1 others against the residual, y is accepted with q + (p - q)(1 - (1 - q)^(k-1)) where
  p > q, and with p elsewhere: at least p (1 - (1 - q)^k).
- rho* over recursive rejection: A is concave and A(0) = 0, so A(S) >= beta S for S <= rho*, and
  S_(j+1) <= 1 + (1 - beta) S_j. So S_j is at most 1 + … + (1 - beta)^(j-1), S_k at most G = rho*.
- Recursive rejection over rho = k: let a_j be the slope of A from S_j to S_(j+1). It falls with j,
  the product of all 1 - a_j is D_k, with D_j = 1 - A(S_j), and A(k) <= A(S_k) + a_(k-1) (k - S_k).
  So k beta <= sum a_j D_j + a_(k-1) sum (1 - D_j) <= sum a_j, and D_k <= (1 - beta)^k.

Without replacement recursive rejection accepts at least as much as with it: after x is rejected,
q is q / (1 - q(x)) on all that is left of p, so A(S / (1 - q(x))) takes the place of A(S); and
S + 1 - A(S) never falls with S. The optimum is at least as great as well: given that the drafts so
far are in H, the next is in H with at most q(H). That recursive rejection without replacement
accepts at least as much as matching without it is seen in all cases tried, and not shown.

More drafts never hurt recursive rejection, k-SEQ with rho*, top drafts and the optimum. They hurt
k-SEQ with rho = k: where p = q, it accepts 1 - (1 - 1/k)^k. Top drafts are other drafts: their
optimum may be above or below that of drafts drawn without replacement.
"""

import numpy as np

from specref.algorithms.trees.k_seq import k_seq_law
from specref.algorithms.trees.siblings import remaining
from specref.algorithms.trees.transport import DraftsLaw
from specref.distributions import (
    Probabilities,
    Probability,
    normalise,
    overlap,
)
from specref.validation import check_count, check_law, check_pair


def recursive_rejection(
    p: Probabilities, q: Probabilities, drafts: int, *, replacement: bool
) -> Probability:
    """What recursive rejection accepts: A(S_k), or by recursion over the rejected tokens.

    A rejection leaves norm((p - q)+) whichever token it was. With replacement that is all, in
    O(V drafts); without, q differs, and the recursion has up to V ** (drafts - 1) ends.
    """
    check_count(drafts)
    check_pair(p, q)
    if not replacement:
        return _without_replacement(p, q, drafts)
    scale: Probability = 0
    for _ in range(drafts):
        scale += 1 - overlap(p, scale * q)
    return overlap(p, scale * q)


def matching(p: Probabilities, law: DraftsLaw) -> Probability:
    """What is accepted where the target draws and the drafts are compared: E[p(drafts)].

    For deterministic drafts, as the top k of q, that is p of these, which is the optimum.
    """
    check_law(p, law)
    accepted: Probability = sum(w * p[sorted(set(drafts))].sum() for drafts, w in law.items())
    return accepted


def k_seq(p: Probabilities, q: Probabilities, drafts: int, rho: Probability) -> Probability:
    """What k-SEQ accepts: 1 - (1 - beta)^k."""
    kept, _ = k_seq_law(p, q, drafts, rho)
    accepted: Probability = 1 - (1 - kept.sum()) ** drafts
    return accepted


def top_drafts(p: Probabilities, q: Probabilities, drafts: int) -> Probability:
    """What top drafts accept: p of the top k - 1, and sum min(p, q') outside.

    q' is q outside of the top, renormalised. It is the optimum for these drafts: the cut is at
    those outside with p < q', and the top. For two drafts it is also what SpecHub accepts: of
    other tokens min(p, q'), and p of the hub, as the others leave at least 1 - sum of p over them.
    """
    check_count(drafts)
    check_pair(p, q)
    drawn = [int(token) for token in np.flatnonzero(q)]
    top = sorted(drawn, key=lambda token: (-q[token], token))[: drafts - 1]
    accepted: Probability = p[top].sum() + overlap(p, remaining(q, *top))
    return accepted


def _without_replacement(p: Probabilities, q: Probabilities, drafts: int) -> Probability:
    accepted = overlap(p, q)
    if drafts == 1 or not (p > q).any():
        return accepted
    rejected, residual = np.maximum(q - p, 0), normalise(np.maximum(p - q, 0))
    for token in map(int, np.flatnonzero(rejected)):
        left = remaining(q, token)
        if left.any():
            rest = _without_replacement(residual, left, drafts - 1)
            accepted += rejected[token] * rest
    return accepted
