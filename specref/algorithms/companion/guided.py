"""Companion-guided verification as a step of the usual signature, for proofs and tables.

Its companion is halfway between target and draft model, and its length is the simplest that
depends on what is estimated.
"""

from collections.abc import Callable, Sequence

from specref.chance import Chance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.vocabulary import Tokens


def between(target: Model, drafter: Model) -> Model:
    """A companion for proofs: halfway between target and draft model."""

    def next_token(context: Tokens) -> Probabilities:
        row: Probabilities = (target.next_token(context) + drafter.next_token(context)) / 2
        return row

    return Model(target.vocabulary, next_token)


def verified_length_for_proofs(rates: Sequence[Probability]) -> int:
    """How many rates come before the first below 3/4."""
    return next((k for k, rate in enumerate(rates) if 4 * rate < 3), len(rates))


def guided(
    step: Callable[..., Tokens],
    estimate: Callable[..., Probability],
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
) -> Tokens:
    """One iteration of companion-guided verification, with a companion and a length for proofs."""
    third = between(target, drafter)
    told = {"companion": third, "estimate": estimate, "length": verified_length_for_proofs}
    return step(target, drafter, context, lookahead, chance, **told)
