"""Standard speculative decoding, for a draft model with the target's vocabulary.

Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2; Timor et al. 2025,
Algorithm 5. Corrected in the last, as its earlier edition has it: line 12 draws the final token
from the residual even when every draft was accepted, which is lossy (and 0/0 when q = p); it must
be a draw from p.
"""

from typing import NamedTuple

from specref.algorithms.lookahead import positions
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, corrected
from specref.models import Model
from specref.vocabulary import Tokens


class Draft(NamedTuple):
    """A drafted target token, or None if the target lacks it, and its distribution `q`.

    `q` has one entry for each target token; where it sums to less than 1, the rest is the
    probability of None.
    """

    token: int | None
    q: Probabilities


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """One iteration of speculative decoding: 1 to lookahead + 1 tokens, distributed as p.

    Parameters
    ----------
    target, drafter : Model
        Over the same vocabulary.
    context : tuple of int
        Target token ids.
    lookahead : int
        How many tokens to draft; 0 draws one token from the target.
    chance : Chance
        Sites ``draft[i]``, ``accept[i]``, then ``residual`` or ``bonus``.

    Returns
    -------
    tuple of int
        The block. An accepted EOS ends it, without a bonus token.

    Raises
    ------
    ValueError
        The vocabularies differ, a token id is out of range, or `lookahead` < 0.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> vocabulary = Vocabulary("ab")
    >>> target = iid_model(vocabulary, ["1/2", "1/2"])
    >>> drafter = iid_model(vocabulary, ["3/4", "1/4"])
    >>> exact_distribution(lambda chance: step(target, drafter, (), 1, chance))[0, 1]
    Fraction(1, 4)
    """
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        raise ValueError(
            "drafter has another vocabulary than target: use union, tli, slem or slrs"
        )
    return verify(target, context, draft(drafter, context, lookahead, chance), chance)


def draft(drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> list[Draft]:
    """Draft `lookahead` tokens autoregressively, or up to the first EOS."""
    drafts: list[Draft] = []
    for i in positions(lookahead):
        q = drafter.next_token(context)
        token = chance.draw(q, f"draft[{i}]")
        drafts.append(Draft(token, q))
        context = (*context, token)
        if drafter.vocabulary.ends(context):
            break
    return drafts


def verify(target: Model, context: Tokens, drafts: list[Draft], chance: Chance) -> Tokens:
    """Accept a prefix of the drafts; end with a residual, a bonus token, or an accepted EOS."""
    block: Tokens = ()
    for i, (token, q) in enumerate(drafts):
        p = target.next_token((*context, *block))
        if token is None or not chance.accept(acceptance(p, q, token), f"accept[{i}]"):
            return (*block, chance.draw(corrected(p, q), "residual"))
        block = (*block, token)
        if target.vocabulary.ends(block):
            return block
    return (*block, chance.draw(target.next_token((*context, *block)), "bonus"))


def acceptance(p: Probabilities, q: Probabilities, token: int) -> Probability:
    """The probability that a drafted token is accepted: min(1, p / q)."""
    drawn = drafted(q, token)
    ratio: Probability = p[token] / drawn
    return min(ratio, 1)


def drafted(q: Probabilities, token: int) -> Probability:
    """q of a token that was drawn from it, which therefore is positive, or `ValueError`."""
    if not (0 <= token < len(q) and q[token] > 0):
        raise ValueError(f"draft = {token}: expected a token that the q it came from can draw")
    probability: Probability = q[token]
    return probability
