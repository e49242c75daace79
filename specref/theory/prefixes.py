"""Laws of accepted lengths, from the probability that each prefix is accepted.

W maps a prefix x to P(the accepted drafts start with x), where positive: `accepted_prefixes` of
`theory.block`, `theory.greedy_block` and `theory.trees`.
"""

from collections.abc import Mapping
from itertools import pairwise

from specref.distributions import Probability, push_forward
from specref.vocabulary import Tokens, Vocabulary


def survival(accepted: Mapping[Tokens, Probability]) -> tuple[Probability, ...]:
    """P(at least 0, 1, … drafts are accepted), while positive."""
    reached = push_forward(accepted, len)
    return tuple(reached[length] for length in sorted(reached))


def length_law(accepted: Mapping[Tokens, Probability]) -> tuple[Probability, ...]:
    """P(accepted length = 0), P(= 1), …, up to the longest possible; no rounding below 0."""
    return tuple(max(now - later, 0) for now, later in pairwise((*survival(accepted), 0)))


def tokens_emitted(accepted: Mapping[Tokens, Probability], vocabulary: Vocabulary) -> Probability:
    """The expected length of a block: the sum of W(x) over all x that EOS does not end.

    Every such x is followed by one more token, whether that is a draft or the last of the block.
    """
    return sum(weight for prefix, weight in accepted.items() if not vocabulary.ends(prefix))
