"""Rules for several drafts of one token, as they have been got wrong, or otherwise right."""

import numpy as np

from specref.algorithms.multi_draft import Verdict
from specref.algorithms.siblings import draw, remaining
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, normalise
from specref.zoo.multi_draft_parts import (
    Drafts,
    certain,
    drawn,
    drawn_independently,
    ranked,
    sequentially,
)


def eldest_law(drafts: Drafts) -> Drafts:
    """Every sibling as if it had been drawn first."""
    return [Draft(x.token, drafts[0].q) for x in drafts]


def distinct(drafts: Drafts) -> Drafts:
    """One of equal siblings, in the place of the first."""
    return list({x.token: x for x in drafts}.values())


def likeliest_first(drafts: Drafts) -> Drafts:
    """Siblings by probability, declared as if drawn in that order."""
    q = drafts[0].q
    tokens = {x.token for x in drafts}
    return sequentially(q, [token for token in ranked(q, len(q)) if token in tokens])


def rejected_zeroed(p: Probabilities, x: Draft) -> Probabilities:
    """P without the rejected token, and no q taken from the others."""
    assert x.token is not None
    return remaining(p, x.token)


def top(q: Probabilities, drafts: int, chance: Chance, site: str) -> Drafts:
    """The likeliest tokens, declared as drawn without replacement."""
    return sequentially(q, ranked(q, drafts))


def top_is_certain(q: Probabilities, drafts: int, chance: Chance, site: str) -> Drafts:
    """The likeliest tokens, declared as what they are."""
    return certain(top(q, drafts, chance, site))


def top_and_one(q: Probabilities, drafts: int, chance: Chance, site: str) -> Drafts:
    """The likeliest but one as certain, then a draw from what q has left."""
    others = q
    for token in ranked(q, drafts - 1):
        others = remaining(others, token)
    return [*top_is_certain(q, drafts - 1, chance, site), *drawn(others, 1, chance, site)]


def two_drafters(q: Probabilities, drafts: int, chance: Chance, site: str) -> Drafts:
    """By turns from q and from q with its ids reversed, each declared."""
    laws = [q[::-1] if j % 2 else q for j in range(drafts)]
    return [Draft(chance.draw(law, f"{site}[{j}]"), law) for j, law in enumerate(laws)]


def k_seq_of_one(
    p: Probabilities, q: Probabilities, drafts: int, chance: Chance, depth: int
) -> Verdict:
    """k-SEQ with rho = 1; a residual below 0 is cut off."""
    kept = np.minimum(p, q)
    for x in drawn_independently(q, drafts, chance, f"draft[{depth}]"):
        if x.token is not None and chance.accept(kept[x.token] / q[x.token], f"accept[{depth}]"):
            return Verdict(x.token, True)
    tries = sum((1 - kept.sum()) ** j for j in range(drafts))
    excess = np.maximum(p - kept * tries, 0)
    return Verdict(chance.draw(normalise(excess) if excess.any() else p, "residual"), False)


def own_draws(
    p: Probabilities, q: Probabilities, drafts: int, chance: Chance, depth: int
) -> Verdict:
    """Each of the likeliest is compared with a draw of its own; if none agrees, one more."""
    for j, token in enumerate(ranked(q, drafts)):
        if chance.draw(p, f"target[{depth}][{j}]") == token:
            return Verdict(token, True)
    return Verdict(chance.draw(p, "residual"), False)


def redrawn(
    p: Probabilities, q: Probabilities, drafts: int, chance: Chance, depth: int
) -> Verdict:
    """One target draw for all siblings; if it is none of them, another is drawn."""
    siblings = draw(q, drafts, chance, f"draft[{depth}]", replacement=False)
    token = chance.draw(p, f"target[{depth}]")
    if token in siblings:
        return Verdict(token, True)
    return Verdict(chance.draw(p, "residual"), False)
