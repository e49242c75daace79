"""Greedy decoding: texts are compared for equality, not in distribution."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specref.contracts.functions import Generate
from specref.contracts.sampling import AFTER_EOS, giver
from specref.models import Model, as_float
from specref.vocabulary import Tokens


@dataclass(frozen=True)
class GreedyReport:
    """The result of comparing greedy texts with those of the target.

    Attributes
    ----------
    texts : int
    difference : str or None
        The first text that departs from greedy decoding, and where.
    """

    texts: int
    difference: str | None

    @property
    def equal(self) -> bool:
        """Whether every text is the target's own."""
        return self.difference is None


def greedy_text(target: Model, context: Tokens, tokens: int) -> Tokens:
    """The text of greedy decoding, up to EOS; of tied tokens the first is taken.

    Examples
    --------
    >>> from specref.models import markov_model
    >>> from specref.vocabulary import Vocabulary
    >>> ab = Vocabulary("ab")
    >>> greedy_text(markov_model(ab, [0.5, 0.5], [[0.1, 0.9], [0.6, 0.4]]), (0,), 4)
    (1, 0, 1, 0)
    """
    text: Tokens = ()
    while len(text) < tokens and not target.vocabulary.ends(text):
        row = target.next_token((*context, *text)).tolist()
        text = (*text, row.index(max(row)))
    return text


def first_departure(target: Model, context: Tokens, text: Tokens) -> str | None:
    """The first token of a text that is no argmax of the target, and one that is, in words.

    Examples
    --------
    >>> from specref.models import markov_model
    >>> from specref.vocabulary import Vocabulary
    >>> model = markov_model(Vocabulary("ab"), [0.5, 0.5], [[0.1, 0.9], [0.6, 0.4]])
    >>> first_departure(model, (0,), (1, 0)), first_departure(model, (0,), (1, 1))
    (None, 'token 1 at position 1, an argmax of the target is 0')
    """
    for position, token in enumerate(text):
        law = target.next_token((*context, *text[:position])).tolist()
        if law[token] < max(law):
            likeliest = law.index(max(law))
            return f"token {token} at position {position}, an argmax of the target is {likeliest}"
    return None


def greedy_difference(target: Model, context: Tokens, text: Tokens, tokens: int) -> str | None:
    """How a text departs from greedy decoding; None if each of its tokens is an argmax.

    Parameters
    ----------
    tokens : int
        How many the text has to have, unless EOS comes before.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> tied = iid_model(Vocabulary("abc", eos="c"), ["2/5", "2/5", "1/5"])
    >>> [greedy_difference(tied, (), text, 2) for text in ((0, 1), (0,), (0, 2))]
    [None, 'ends after 1 of 2 tokens', 'token 2 at position 1, an argmax of the target is 0']
    """
    if found := first_departure(target, context, text):
        return found
    vocabulary = target.vocabulary
    if any(vocabulary.ends(text[:at]) for at in range(1, len(text))):
        return AFTER_EOS
    if len(text) != tokens and not (len(text) < tokens and vocabulary.ends(text)):
        return f"ends after {len(text)} of {tokens} tokens"
    return None


def judge_greedy(
    generate: Generate,
    target: Model,
    drafter: Model,
    contexts: Sequence[Tokens],
    *,
    tokens: int,
    seed: int,
) -> GreedyReport:
    """Generate after every context, and compare each token with the argmax of the target alone.

    Parameters
    ----------
    generate : callable
        A function that decodes by argmax, whatever its rng.
    target, drafter : Model
    contexts : sequence of tuple
    tokens : int
        The length of each text.
    seed : int
        The seed of the rng that `generate` gets.

    Examples
    --------
    >>> from specref.models import hashed_model
    >>> from specref.vocabulary import Vocabulary
    >>> abc = Vocabulary("abc")
    >>> p, q = hashed_model(abc, "p"), hashed_model(abc, "q")
    >>> def drafter_alone(target, drafter, context, tokens, rng):
    ...     return greedy_text(drafter, context, tokens)
    >>> judge_greedy(drafter_alone, p, q, [()], tokens=3, seed=1).difference
    'after (): (2, 1, 1): token 2 at position 0, an argmax of the target is 1'
    """
    rng, give = np.random.default_rng(seed), giver(generate)
    models = as_float(target), as_float(drafter)
    for context in contexts:
        text = tuple(give((*models, context, tokens), rng))
        if why := greedy_difference(models[0], context, text, tokens):
            return GreedyReport(len(contexts), f"after {context}: {text}: {why}")
    return GreedyReport(len(contexts), None)
