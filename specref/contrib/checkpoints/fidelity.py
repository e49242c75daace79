"""Compares the probabilities that an engine computes with a prescribed law."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from specref.arrays import Floats
from specref.contrib.checkpoints.law import Law
from specref.vocabulary import Tokens

Probabilities: TypeAlias = Callable[[Tokens], Floats]
TOLERANCE = 1e-6
LENGTH = 200


@dataclass(frozen=True)
class Fidelity:
    """How far probabilities are from the distribution, at the context where they are farthest.

    Attributes
    ----------
    contexts : int
        How many contexts were compared.
    rows : int
        How many rows of the distribution these contexts ask for, `initial` included.
    largest : float
        The largest ``|computed - prescribed|`` of a token.
    context : tuple of int
    token : int
        Where that was.
    impossible : float
        The largest mass, in one context, on tokens whose probability is 0.
    """

    contexts: int
    rows: int
    largest: float
    context: Tokens
    token: int
    impossible: float

    @property
    def faithful(self) -> bool:
        """Whether no probability is off by more than 1e-6."""
        return self.largest <= TOLERANCE


def compare(
    law: Law,
    probabilities: Probabilities,
    rng: np.random.Generator,
    length: int = LENGTH,
) -> Fidelity:
    """Compare the distribution with probabilities after each prefix of a text with all rows.

    Parameters
    ----------
    law : Law
    probabilities : callable
        Maps ids, of which the first is the start token, to the distribution after each of them,
        shape (ids, V) with V at least `law.size`.
    rng : numpy.random.Generator
        Chooses the text: permutations of the tokens other than EOS.
    length : int
        Of the text, at least; longer if that does not ask for all rows.

    Raises
    ------
    ValueError
        The probabilities have another shape, or are no numbers.

    Examples
    --------
    >>> from specref.contrib.checkpoints.law import named_pair
    >>> law = named_pair("far")["target"]
    >>> table = np.array([[.8, .1, .1, 0]] * 3 + [[.8, .1, .1, 0]])
    >>> compare(law, lambda ids: table[list(ids)], np.random.default_rng(1)).faithful
    True
    """
    text = _text(law, rng, length)
    found = np.asarray(probabilities((law.start, *text)), dtype=np.float64)
    expected = np.zeros((len(text) + 1, max(found.shape[-1], law.size)))
    for known in range(len(text) + 1):
        expected[known, : law.size - 1] = law.model.next_token(text[:known])
    if found.shape != expected.shape:
        raise ValueError(f"probabilities have shape {found.shape}: expected {expected.shape}")
    if not np.isfinite(found).all():
        raise ValueError("probabilities are not finite")
    off = np.abs(found - expected)
    known, token = map(int, np.unravel_index(off.argmax(), off.shape))
    read = {text[known - law.back] if known >= law.back else -1 for known in range(len(text) + 1)}
    return Fidelity(
        contexts=len(text) + 1,
        rows=len(read),
        largest=float(off.max()),
        context=text[:known],
        token=token,
        impossible=float(np.where(expected == 0, found, 0).sum(axis=1).max()),
    )


def _text(law: Law, rng: np.random.Generator, length: int) -> Tokens:
    tokens = [token for token in range(len(law.vocabulary)) if token != law.eos]
    text: list[int] = []
    while len(text) < max(length, len(tokens) + law.back):
        text += map(int, rng.permutation(tokens))
    return tuple(text)
