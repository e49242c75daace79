"""Companion-guided verification made lossless, though it judges the drafted token itself.

Kim et al. 2025 (arXiv:2509.24328) do not verify a draft that is judged unfit; drawn from p, as
bonus tokens are, the token in its place is lossy (`companion.step`). Here it counts as rejected,
which costs nothing: what reaches the target at position k has the sub-distribution q' = q on the
tokens that pass, and a token that does not reach it is a rejection of q', so that the next one is
from norm((p - q')+).
"""

import numpy as np

from specref.algorithms.companion.companion import (
    Judge,
    Length,
    check_vocabularies,
    checked_length,
    companion_acceptance,
    rate,
    similarity,
)
from specref.algorithms.lookahead import positions
from specref.algorithms.standard import Draft, verify
from specref.chance import Chance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.vocabulary import Tokens


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    companion: Model,
    estimate: Judge,
    length: Length,
) -> Tokens:
    """One iteration, lossless; drafting ends with the first token that is judged unfit.

    Token x passes at k if `length` of the acceptances up to k, that of x the last, is all of
    them. `length` sees no later ones. Parameters and errors as `companion.step`.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> p, c = (iid_model(Vocabulary("ab"), row) for row in (["1/2", "1/2"], ["1/3", "2/3"]))
    >>> keep = {"estimate": lambda s, a: a, "length": lambda rates: int(rates[0] == 1)}
    >>> blocks = exact_distribution(lambda chance: step(p, p, (), 1, chance, companion=c, **keep))
    >>> blocks[0,], blocks[1, 0], blocks[1, 1]
    (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    """
    check_vocabularies(target, drafter, companion)
    drafts: list[Draft] = []
    rates: list[Probability] = []
    seen = context
    for k in positions(lookahead):
        q = drafter.next_token(seen)
        judged = judgements(q, companion.next_token(seen), estimate, k)
        passing = [x for x, a in judged.items() if checked_length(length, [*rates, a]) > k]
        submitted = np.where(np.isin(np.arange(len(q)), passing), q, q * 0)
        token = chance.draw(q, f"draft[{k}]")
        if token not in passing:
            return verify(target, context, [*drafts, Draft(None, submitted)], chance)
        drafts.append(Draft(token, submitted))
        rates.append(judged[token])
        seen = (*seen, token)
        if drafter.vocabulary.ends(seen):
            break
    return verify(target, context, drafts, chance)


def judgements(
    q: Probabilities, c: Probabilities, estimate: Judge, position: int
) -> dict[int, Probability]:
    """The estimated acceptance of every token that may be drafted."""
    tokens = map(int, np.flatnonzero(q))
    alike = similarity(q, c)
    return {x: rate(estimate(alike, companion_acceptance(q, c, x)), position) for x in tokens}
