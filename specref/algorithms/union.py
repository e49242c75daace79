"""Speculative decoding over the union of two vocabularies: Timor et al. 2025, Algorithm 1.

Both models are read over T ∪ D, with probability 0 for the tokens they lack, and Algorithm 5
runs on that (see `standard` for its correction). Corrected here: in line 4 the second q is
q'; and p is never asked about a context with tokens outside T, because a draft outside T is
always rejected, so nothing after it is verified.
"""

from specref.algorithms.lookahead import positions
from specref.algorithms.standard import Draft, verify
from specref.chance import Chance
from specref.distributions import relabel
from specref.models import Model
from specref.vocabulary import Tokens, UntokenisableError, intersection, translate


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """One iteration over the union vocabulary: 1 to lookahead + 1 target tokens.

    Parameters and returns as `standard.step`, for any two vocabularies. A context that the
    draft model cannot read is drafted nothing for: what it would say changes nothing.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["2/3", "1/3"])
    >>> drafter = iid_model(Vocabulary("abc"), ["1/3", "1/3", "1/3"])
    >>> blocks = exact_distribution(lambda chance: step(target, drafter, (), 1, chance))
    >>> blocks[0,], blocks[0, 0]
    (Fraction(1, 3), Fraction(2, 9))
    """
    return verify(target, context, draft(target, drafter, context, lookahead, chance), chance)


def draft(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> list[Draft]:
    """Draft until `lookahead`, EOS, or a token outside T."""
    shared = intersection(target.vocabulary, drafter.vocabulary)
    drafts: list[Draft] = []
    seen = read(target, drafter, context)
    if seen is None:
        return []
    for i in positions(lookahead):
        q = drafter.next_token(seen)
        token = chance.draw(q, f"draft[{i}]")
        drafts.append(Draft(shared.get(token), relabel(q, shared, len(target.vocabulary))))
        seen = (*seen, token)
        if token not in shared or drafter.vocabulary.ends(seen):
            break
    return drafts


def read(target: Model, drafter: Model, context: Tokens) -> Tokens | None:
    """The context in the draft model's tokens, or None if it cannot spell one of them."""
    try:
        return translate(context, target.vocabulary, drafter.vocabulary)
    except UntokenisableError:
        return None
