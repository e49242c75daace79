"""Laws of texts: a block completed by the target, and the first tokens of a decode loop."""

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from specref.chance import MAX_PATHS, TooManyPathsError
from specref.distributions import Probability
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

Law: TypeAlias = dict[Tokens, Probability]
Carried = TypeVar("Carried")


def completed(
    blocks: Mapping[Tokens, Probability],
    target: Model,
    context: Tokens,
    length: int,
    max_texts: int = MAX_PATHS,
) -> Law:
    """Extend every block by the target itself to `length` tokens (or EOS): the joint distribution.

    Losslessness is a statement about this distribution. The first token alone is blind to bonus
    bugs, and to shared random numbers.

    Parameters
    ----------
    blocks : mapping
        {block: probability}, target token ids.
    target : Model
    context : tuple of int
        What came before the block.
    length : int
        At least the length of the longest block.
    max_texts : int
        Where to give up.

    Returns
    -------
    dict
        {tokens: probability}.

    Raises
    ------
    ValueError
        A block is longer than `length`.
    TooManyPathsError
        There are more than `max_texts` texts of that length.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/3", "2/3"])
    >>> completed({(0,): Fraction(1)}, target, (), 2)
    {(0, 0): Fraction(1, 3), (0, 1): Fraction(2, 3)}
    """
    shorter = dict(blocks)
    law: Law = {}
    while shorter:
        block, weight = shorter.popitem()
        if len(block) > length:
            raise ValueError(f"length = {length}: block {block} has {len(block)} tokens")
        if len(block) == length or target.vocabulary.ends(block):
            law[block] = law.get(block, 0) + weight
            if len(law) > max_texts:
                raise TooManyPathsError(f"more than {max_texts:,} texts of {length} tokens")
            continue
        for token, probability in enumerate(target.next_token((*context, *block))):
            if probability > 0:
                longer = (*block, token)
                shorter[longer] = shorter.get(longer, 0) + weight * probability
    return dict(sorted(law.items()))


def first_tokens(
    after: Callable[[Tokens], Mapping[Tokens, Probability]], vocabulary: Vocabulary, length: int
) -> Law:
    """The law of the first `length` tokens of a decode loop, or up to EOS.

    * `after`: The text so far -> {block: probability}, the law of the next iteration.
    * `vocabulary`: Of the target.
    * returns: {tokens: probability}
    """
    return first_tokens_carrying(
        lambda text, _: {(block, None): mass for block, mass in after(text).items()},
        vocabulary,
        length,
        None,
    )


def first_tokens_carrying(
    after: Callable[[Tokens, Carried], Mapping[tuple[Tokens, Carried], Probability]],
    vocabulary: Vocabulary,
    length: int,
    start: Carried,
) -> Law:
    """The same for a loop whose iterations hand something on, besides the text.

    Iterations meet in the text so far and in what is handed on: paths that share both are merged,
    and each such state is continued once.

    * `after`: (text so far, what was handed on) -> {(block, what is handed on): probability}.
    * `start`: What the first iteration is given.
    """
    finished: Law = {}
    unfinished: dict[tuple[Tokens, Carried], Probability] = {((), start): 1}
    while unfinished:
        text, carried = min(unfinished, key=lambda state: len(state[0]))
        weight = unfinished.pop((text, carried))
        for (block, left), mass in after(text, carried).items():
            if not block:
                raise ValueError(f"step returned an empty block after {text}")
            longer = (*text, *block)[:length]
            if len(longer) == length or vocabulary.ends(longer):
                finished[longer] = finished.get(longer, 0) + weight * mass
            else:
                unfinished[longer, left] = unfinished.get((longer, left), 0) + weight * mass
    return finished
