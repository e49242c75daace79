"""Siblings, several drafts of one position, and recursive rejection: the first that is accepted.

Drawn from q independently, with replacement (SpecInfer: Miao et al. 2023, arXiv:2305.09781), or
each from what those before it left of q, without (Jeon et al. 2024, arXiv:2402.14160; Sequoia:
Chen et al. 2024, arXiv:2402.12374). In the order of drawing each sibling is verified as a single
draft is, against what the rejections so far have left of p, which is p':

    accept x with probability min(1, p'(x) / q(x));
    else p' becomes norm((p' - q)+), and q, without replacement, q restricted to all but x.

If what follows a rejection emits norm((p' - q)+), whichever x was rejected, then this step emits
p', as with one draft; by induction from the last sibling, whose rejection is followed by a draw,
the first emits p. A duplicate is a sibling of its own: once rejected, p'(x) = 0, so it is rejected
again, and p' becomes norm((p' - q)+) again. To skip it is lossy, unless what is left is verified
as if drawn without replacement: whether another sibling comes depends on those before it alone.
"""

from specref.algorithms.standard import acceptance
from specref.chance import Chance
from specref.distributions import Probabilities, corrected, normalise
from specref.validation import check_count
from specref.vocabulary import Tokens


def draw(q: Probabilities, drafts: int, chance: Chance, site: str, *, replacement: bool) -> Tokens:
    """Up to `drafts` siblings in draw order; fewer only where q is exhausted without replacement.

    Sites ``{site}[j]``. Without replacement, a token that is drawn is taken out of q.

    >>> from specref.chance import Replayed
    >>> from specref.distributions import as_distribution
    >>> q = as_distribution(["1/2", "1/2", 0])
    >>> draw(q, 3, Replayed([1, 0]), "draft[0]", replacement=False)
    (1, 0)
    >>> draw(q, 3, Replayed([1, 0, 1]), "draft[0]", replacement=True)
    (1, 0, 1)
    """
    check_count(drafts)
    tokens: Tokens = ()
    while len(tokens) < drafts and q.any():
        token = chance.draw(q, f"{site}[{len(tokens)}]")
        tokens = (*tokens, token)
        q = q if replacement else remaining(q, token)
    return tokens


def remaining(q: Probabilities, *tokens: int) -> Probabilities:
    """q without some tokens, renormalised; all zeros if nothing else is left."""
    others = q.copy()
    others[list(tokens)] = q[0] * 0
    return normalise(others) if others.any() else others


def reject_recursively(
    p: Probabilities,
    q: Probabilities,
    siblings: Tokens,
    chance: Chance,
    site: str,
    *,
    replacement: bool,
) -> tuple[int | None, Probabilities]:
    """Which sibling is accepted, or None; and the law of the token if None is, the last residual.

    Siblings are as `draw` returned them, with the same `replacement`; where one is accepted, the
    law is what it was verified against. Sites ``{site}[j]``.
    """
    for index, token in enumerate(siblings):
        if not (0 <= token < len(q) and q[token] > 0):
            raise ValueError(
                f"siblings[{index}] = {token}: expected a token that what is left of q can draw"
            )
        if chance.accept(acceptance(p, q, token), f"{site}[{index}]"):
            return index, p
        p = corrected(p, q)
        q = q if replacement else remaining(q, token)
    return None, p
