"""Listings as papers print them, where the print is lossy."""

from specref.algorithms import standard
from specref.chance import Chance
from specref.distributions import residual
from specref.models import Model
from specref.vocabulary import Tokens


def algorithm_5(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Timor et al. 2025, Algorithm 5, with line 12 as printed: the last token is from r_x always.

    The corrected listing is `standard.step`. The listing has no EOS; here an accepted EOS
    ends the block, as everywhere.

    Parameters as `standard.step`. Sites ``draft[i]``, ``accept[i]``, then ``residual``.

    * returns: 1 to lookahead + 1 tokens, not distributed as p.
    * raises `ValueError`: Every draft was accepted and q = p in that context: r_x is 0 / 0.

    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> drafter = iid_model(Vocabulary("ab"), ["3/4", "1/4"])
    >>> exact_distribution(lambda chance: algorithm_5(target, drafter, (), 0, chance))
    {(1,): Fraction(1, 1)}
    """
    x = context
    for i, (token, q) in enumerate(standard.draft(drafter, context, lookahead, chance)):
        p = target.next_token(x)
        if token is None or not chance.accept(standard.acceptance(p, q, token), f"accept[{i}]"):
            break
        x = (*x, token)
        if target.vocabulary.ends(x):
            return x[len(context) :]
    r = residual(target.next_token(x), drafter.next_token(x))
    return (*x[len(context) :], chance.draw(r, "residual"))
