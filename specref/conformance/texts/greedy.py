"""Greedy decoding: texts are compared for equality, not in distribution."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specref.contracts.generate import Generate
from specref.models import Model
from specref.vocabulary import Tokens


@dataclass(frozen=True)
class GreedyReport:
    """The result of comparing greedy texts with those of the target.

    Attributes
    ----------
    texts : int
    difference : str or None
        The first text that differs, and what greedy decoding of the target gives.
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


def first_departure(target: Model, context: Tokens, text: Tokens) -> tuple[int, int] | None:
    """The first position at which a text has no argmax of the target, and an argmax there.

    Examples
    --------
    >>> from specref.models import markov_model
    >>> from specref.vocabulary import Vocabulary
    >>> model = markov_model(Vocabulary("ab"), [0.5, 0.5], [[0.1, 0.9], [0.6, 0.4]])
    >>> first_departure(model, (0,), (1, 0)), first_departure(model, (0,), (1, 1))
    (None, (1, 0))
    """
    for position, token in enumerate(text):
        law = target.next_token((*context, *text[:position])).tolist()
        if law[token] < max(law):
            return position, law.index(max(law))
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
    """Generate after every context, and compare with greedy decoding of the target alone.

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
    'after (): (2, 1, 1), not (1, 2, 1)'
    """
    rng = np.random.default_rng(seed)
    for context in contexts:
        text = tuple(generate(target, drafter, context, tokens, rng))
        expected = greedy_text(target, context, tokens)
        if text != expected:
            return GreedyReport(len(contexts), f"after {context}: {text}, not {expected}")
    return GreedyReport(len(contexts), None)
