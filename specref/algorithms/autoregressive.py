"""Autoregressive decoding: one target evaluation, one token. What all others must equal."""

from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Tokens


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """Draw one token from the target; `drafter` and `lookahead` are not used.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/3", "2/3"])
    >>> exact_distribution(lambda chance: step(target, target, (), 0, chance))
    {(0,): Fraction(1, 3), (1,): Fraction(2, 3)}
    """
    return (chance.draw(target.next_token(context), "target[0]"),)
