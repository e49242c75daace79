"""Planted bugs of multi-draft verification: rules (p, q, drafts, chance, depth), all lossy."""

import numpy as np

from specref.algorithms.multi_draft import Verdict
from specref.algorithms.siblings import draw, reject_recursively, remaining
from specref.algorithms.standard import acceptance
from specref.distributions import corrected, normalise


def _siblings(q, drafts, chance, depth, replacement):
    return draw(q, drafts, chance, f"draft[{depth}]", replacement=replacement)


def _verified(p, q, siblings, chance, depth, replacement):
    """Recursive rejection of siblings that something else may have drawn."""
    index, law = reject_recursively(
        p, q, siblings, chance, f"accept[{depth}]", replacement=replacement
    )
    if index is not None:
        return Verdict(siblings[index], True)
    return Verdict(chance.draw(law, "residual"), False)


def duplicates_skipped(p, q, drafts, chance, depth):
    """A tree merges equal siblings: the second is not tried, and P is not updated for it."""
    siblings = _siblings(q, drafts, chance, depth, True)
    return _verified(p, q, tuple(dict.fromkeys(siblings)), chance, depth, True)


def q_not_updated(p, q, drafts, chance, depth):
    """Drawn without replacement, verified as if with it."""
    siblings = _siblings(q, drafts, chance, depth, False)
    return _verified(p, q, siblings, chance, depth, True)


def sorted_siblings(p, q, drafts, chance, depth):
    """Drawn without replacement, verified in the order of ids."""
    siblings = tuple(sorted(_siblings(q, drafts, chance, depth, False)))
    return _verified(p, q, siblings, chance, depth, False)


def only_the_rejected_zeroed(p, q, drafts, chance, depth):
    """P loses the rejected token, and not q from all others."""
    for j, token in enumerate(_siblings(q, drafts, chance, depth, False)):
        if chance.accept(acceptance(p, q, token), f"accept[{depth}][{j}]"):
            return Verdict(token, True)
        p, q = (remaining(law, token) for law in (p, q))
        if not p.any():
            break
    return Verdict(chance.draw(p if p.any() else q, "residual"), False)


def any_accepted(p, q, drafts, chance, depth):
    """Each draft is judged by itself against p and q; the first that is accepted is kept."""
    for j, token in enumerate(_siblings(q, drafts, chance, depth, True)):
        if chance.accept(acceptance(p, q, token), f"accept[{depth}][{j}]"):
            return Verdict(token, True)
    return Verdict(chance.draw(corrected(p, q), "residual"), False)


def k_seq_with_rho_1(p, q, drafts, chance, depth):
    """Too much is accepted of some tokens; the negative residual is cut off."""
    kept = np.minimum(p, q)
    for j, token in enumerate(_siblings(q, drafts, chance, depth, True)):
        if chance.accept(kept[token] / q[token], f"accept[{depth}][{j}]"):
            return Verdict(token, True)
    tries = sum((1 - kept.sum()) ** j for j in range(drafts))
    excess = np.maximum(p - kept * tries, 0)
    return Verdict(chance.draw(normalise(excess) if excess.any() else p, "residual"), False)


def top_verified_with_soft_q(p, q, drafts, chance, depth):
    """The top k of q, which are certain, verified as if they were drawn from q."""
    ranked = sorted(np.flatnonzero(q), key=lambda token: (-q[token], token))
    return _verified(p, q, tuple(map(int, ranked[:drafts])), chance, depth, False)


def top_without_renormalising(p, q, drafts, chance, depth):
    """The draw outside the top k - 1 verified with q as it was."""
    left, top = q, ()
    while len(top) < drafts - 1 and left.any():
        top = (*top, int(np.argmax(left)))
        left = remaining(left, top[-1])
    outside = _siblings(left, 1, chance, depth, True)
    verdict = _verified(p, q if outside else left, outside, chance, depth, True)
    return verdict if verdict.accepted else Verdict(verdict.token, verdict.token in top)


LAW_BUGS = (
    duplicates_skipped,
    q_not_updated,
    sorted_siblings,
    only_the_rejected_zeroed,
    any_accepted,
    k_seq_with_rho_1,
    top_verified_with_soft_q,
    top_without_renormalising,
)
