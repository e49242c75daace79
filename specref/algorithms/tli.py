"""Token-level intersection (TLI): Timor et al. 2025, Algorithm 4.

The draft model samples from q' = q restricted to T ∩ D and renormalised; Algorithm 5 verifies
against q' (see `standard` for its correction). Corrected here: q' is defined over T ∩ D, not
"x in T"; and where q has no mass on T ∩ D it is 0/0, so nothing is drafted from there on.
"""

from specref.algorithms.lookahead import positions
from specref.algorithms.standard import Draft, verify
from specref.algorithms.union import read
from specref.chance import Chance
from specref.distributions import normalise, relabel
from specref.models import Model
from specref.vocabulary import Tokens, intersection


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """One iteration with the draft model confined to shared tokens: 1 to lookahead + 1 tokens.

    Parameters and returns as `standard.step`, for any two vocabularies. An empty
    intersection, or a context that the draft model cannot read, is a plain target draw.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["2/3", "1/3"])
    >>> drafter = iid_model(Vocabulary("abc"), ["1/3", "1/3", "1/3"])
    >>> blocks = exact_distribution(lambda chance: step(target, drafter, (), 1, chance))
    >>> blocks[0,], blocks[0, 0]
    (Fraction(1, 6), Fraction(1, 3))
    """
    return verify(target, context, draft(target, drafter, context, lookahead, chance), chance)


def draft(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> list[Draft]:
    """Draft shared tokens until `lookahead`, EOS, or no mass on them."""
    shared = intersection(target.vocabulary, drafter.vocabulary)
    drafter_ids = {token: drafter_id for drafter_id, token in shared.items()}
    drafts: list[Draft] = []
    seen = read(target, drafter, context)
    if seen is None:
        return []
    for i in positions(lookahead):
        restricted = relabel(drafter.next_token(seen), shared, len(target.vocabulary))
        if not restricted.any():
            break
        q = normalise(restricted)
        token = chance.draw(q, f"draft[{i}]")
        drafts.append(Draft(token, q))
        seen = (*seen, drafter_ids[token])
        if drafter.vocabulary.ends(seen):
            break
    return drafts
