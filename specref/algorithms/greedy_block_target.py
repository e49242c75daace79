"""The modified target of greedy block verification: what it still owes to the tokens to come.

Sun et al. 2024 (arXiv:2403.10444), appendix. While a modification with the joint ratio P = p(w) /
q(w) holds, the next token is from norm((P p - q)+). P > 1 wherever one holds, because the tokens
so far came from such a law; so the law exists. Where the drafter cannot draft w, nothing is owed
and it is p. Modifications of several iterations act one on the law of the other.
"""

from typing import NamedTuple, TypeAlias

from specref.algorithms.standard import drafted
from specref.distributions import Probabilities, Probability, is_exact, residual
from specref.models import Model
from specref.vocabulary import Tokens

MOST = 2.0**1000


class Modification(NamedTuple):
    """The target is norm((ratio p - q)+), with this ratio now, up to `end` tokens of context."""

    ratio: Probability
    end: int


Modifications: TypeAlias = tuple[Modification, ...]


def modified(target: Model, drafter: Model, context: Tokens, carried: Modifications) -> Model:
    """The target of what follows `context`: a model of the contexts that start with it.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> p, q = (iid_model(Vocabulary("ab"), row) for row in (["1/3", "2/3"], ["2/3", "1/3"]))
    >>> after_b = modified(p, q, (1,), (Modification(2, end=2),))
    >>> [str(after_b.next_token(context)[1]) for context in [(1,), (1, 1)]]
    ['1', '2/3']
    """

    def next_token(longer: Tokens) -> Probabilities:
        left = carry(target, drafter, context, longer[len(context) :], carried)
        return law(target, drafter, longer, left)

    return Model(target.vocabulary, next_token) if carried else target


def law(target: Model, drafter: Model, context: Tokens, carried: Modifications) -> Probabilities:
    """The law of the next token: p, to which the modifications are applied one by one.

    In floats, one whose law does not exist by rounding alone is not applied.
    """
    p = target.next_token(context)
    for ratio, _ in carried:
        q = drafter.next_token(context)
        p = residual(ratio * p, q) if is_exact(p) or (ratio * p > q).any() else p
    return p


def carry(
    target: Model, drafter: Model, context: Tokens, tokens: Tokens, carried: Modifications
) -> Modifications:
    """The modifications that hold after more tokens; none once one cannot be drafted."""
    for token in tokens:
        if not carried or drafter.vocabulary.ends((token,)):
            return ()
        q = drafter.next_token(context)
        if q[token] == 0:
            return ()
        rows = [law(target, drafter, context, carried[:i]) for i in range(len(carried))]
        context = (*context, token)
        carried = tuple(
            Modification(extended(ratio * p, q, token), end)
            for (ratio, end), p in zip(carried, rows, strict=True)
            if end > len(context)
        )
    return carried


def extended(p: Probabilities, q: Probabilities, token: int) -> Probability:
    """p / q, the ratio with one more token; floats end at `MOST`, and do not overflow.

    From there on norm((P p - q)+) is p to rounding. Where a ratio so great would have fallen again
    to what matters, the text is one that has a probability below 1 / `MOST`.
    """
    drawn = drafted(q, token)
    if not is_exact(q):
        drawn = max(drawn, p[token] / MOST)
    ratio: Probability = p[token] / drawn
    return ratio
