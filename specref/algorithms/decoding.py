"""One iteration's signature, and the decode loop over it."""

from collections.abc import Callable
from typing import TypeAlias

from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Tokens

Step: TypeAlias = Callable[[Model, Model, Tokens, int, Chance], Tokens]


def decode(
    step: Step,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    length: int,
    chance: Chance,
) -> Tokens:
    """The first `length` tokens of the decode loop: step after step, cut at `length` or EOS.

    Examples
    --------
    >>> from specref import Vocabulary
    >>> from specref.algorithms import autoregressive
    >>> from specref.chance import Replayed
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/3", "2/3"])
    >>> decode(autoregressive.step, target, target, (), 0, 3, Replayed([0, 1, 1]))
    (0, 1, 1)
    """
    tokens: Tokens = ()
    while len(tokens) < length and not target.vocabulary.ends(tokens):
        block = step(target, drafter, (*context, *tokens), lookahead, chance)
        if not block:
            raise ValueError(f"step returned an empty block in context {(*context, *tokens)}")
        tokens += block
    return tokens[:length]
