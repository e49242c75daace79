"""String-level exact match (SLEM): Timor et al. 2025, Algorithm 2.

The draft model writes text, the target's tokeniser reads it, and the target's own samples are
kept while they match. Lossless for every way to turn drafts into proposals, because what is
kept are always target samples. Made definite here: the block ends at the first mismatch, as the
words of line 10 say, not at the first match, as its argmin does; t_{m+1} matches nothing, so m
matches are followed by one more target token; and the context stays the accepted target ids, as
section 3.2 says: T(text) is never taken again, which is lossy.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from specref.algorithms.lookahead import Stop, fixed
from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Text, Tokens, Vocabulary

Propose: TypeAlias = Callable[[Vocabulary, Tokens, Text], Tokens]


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    propose: Propose | None = None,
) -> Tokens:
    """One iteration of string-level exact match: the matching proposals and one more token.

    Parameters
    ----------
    target, drafter : Model
        Over any two vocabularies in which the drafted texts can be tokenised.
    context : tuple of int
        Target token ids, kept as they are.
    lookahead : int
        How many tokens to draft.
    chance : Chance
        Sites ``draft[i]`` and ``target[j]``.
    propose : callable, optional
        (target vocabulary, context, drafted text) -> target tokens; `retokenised` by
        default, `realigned(n)` for tokenisers that are not injective.

    Returns
    -------
    tuple of int
        The block; EOS ends it.

    Raises
    ------
    UntokenisableError
        A vocabulary cannot tokenise the other's text.
    ValueError
        A token id is out of range, or `lookahead` < 0.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target, drafter = iid_model(Vocabulary("a"), [1]), iid_model(Vocabulary(["aa"]), [1])
    >>> exact_distribution(lambda chance: step(target, drafter, (), 2, chance))
    {(0, 0, 0, 0, 0): Fraction(1, 1)}
    """
    seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
    stop = fixed(target.vocabulary, drafter.vocabulary, lookahead)
    text = drafter.vocabulary.decode(draft(drafter, seen, stop, chance))
    proposal = (propose or retokenised)(target.vocabulary, context, text)
    return match(target, context, proposal, chance)


def draft(drafter: Model, seen: Tokens, stop: Stop, chance: Chance) -> Tokens:
    """Draft until the lookahead rule stops, or EOS."""
    drafts: Tokens = ()
    while not (stop(drafts) or drafter.vocabulary.ends(drafts)):
        q = drafter.next_token((*seen, *drafts))
        drafts = (*drafts, chance.draw(q, f"draft[{len(drafts)}]"))
    return drafts


def match(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
    """Target samples, up to and with the first that differs from the proposal."""
    block: Tokens = ()
    for j, proposed in enumerate((*proposal, None)):
        token = chance.draw(target.next_token((*context, *block)), f"target[{j}]")
        block = (*block, token)
        if token != proposed or target.vocabulary.ends(block):
            break
    return block


def retokenised(vocabulary: Vocabulary, context: Tokens, text: Text) -> Tokens:
    """T(d_1 + … + d_i): the drafted text alone."""
    return vocabulary.encode(text)


def realigned(lookbehind: int) -> Propose:
    """Tokenise the drafted text after the last `lookbehind` tokens, and align on these.

    Timor et al. 2025, section 3.2: a tokeniser that normalises may read a text otherwise
    after its context. The tokens after the longest run that ends the context are proposed;
    without such a run, the drafted text alone.

    Examples
    --------
    >>> merging = Vocabulary([" ", "b"], normalise=lambda text: text.replace("  ", " "))
    >>> retokenised(merging, (1, 0), " b"), realigned(2)(merging, (1, 0), " b")
    ((0, 1), (1,))
    """
    if lookbehind < 0:
        raise ValueError(f"lookbehind = {lookbehind}: expected an integer >= 0")

    def propose(vocabulary: Vocabulary, context: Tokens, text: Text) -> Tokens:
        recent = context[max(0, len(context) - lookbehind) :]
        tokens = vocabulary.encode(cast(Any, vocabulary.decode(recent)) + text)
        ends = range(min(len(recent), len(tokens)), 0, -1)
        overlap, end = max(
            ((_common_suffix(recent, tokens[:end]), end) for end in ends), default=(0, 0)
        )
        return tokens[end:] if overlap else vocabulary.encode(text)

    return propose


def _common_suffix(left: Tokens, right: Tokens) -> int:
    """The length of the longest common suffix."""
    length = 0
    while length < min(len(left), len(right)) and left[-1 - length] == right[-1 - length]:
        length += 1
    return length
