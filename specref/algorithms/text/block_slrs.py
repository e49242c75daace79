"""Block verification across vocabularies: string-level rejection sampling that accepts jointly.

Timor et al. 2025 (section 3.3) call block verification non-trivial for two vocabularies: where the
draft aa reads as the target's a, a, nobody sampled the second a. It needs no more than the
distribution of the target's tokens of a drafted text. They come one by one from psi(. | t_<k), a
sub-distribution whose rest is the probability that the text ends there, so the last of them is
followed by END. `block` verifies such drafts; that the target gives END no probability is part of
its proof.

Of all lossless rules that keep a prefix of the text's tokens, add one token and leave the rest to
the target, it accepts the most (`specref.theory.block`).
"""

from specref.algorithms.block import verify
from specref.algorithms.lookahead import LookaheadRule, fixed
from specref.algorithms.text.slrs import propose, with_end
from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Tokens


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    rule: LookaheadRule = fixed,
) -> Tokens:
    """One iteration: accepted tokens of the drafted text and one more, distributed as p.

    Parameters, returns and errors as `slrs.step`. Sites ``draft[i]``; ``accept[k]``, the last
    token first; then ``residual`` or ``bonus``.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> drafter = iid_model(Vocabulary(["a", "b", "ab"]), ["1/4", "1/4", "1/2"])
    >>> blocks = exact_distribution(lambda chance: step(target, drafter, (), 1, chance))
    >>> blocks[1,], blocks[0, 1, 0]  # slrs: 1/4, 1/8
    (Fraction(1, 4), Fraction(1, 8))
    """
    tokens, psi = propose(target, drafter, context, lookahead, chance, rule)
    return verify(target, context, with_end(tokens, psi), chance)
