"""States of a trial, and the transitions from each by one uniform."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from specref.distributions import Probabilities, Probability
from specref.vocabulary import Tokens

END = "end"


class State(NamedTuple):
    """The site that decides next, the target tokens kept so far, and the drafts in question.

    `drafts` are what the site needs to know: the drafter's tokens so far while drafting, the
    proposed target tokens that are not verified yet afterwards. At `END`, `kept` is the block.
    """

    site: str
    kept: Tokens
    drafts: Tokens = ()


class Branches(NamedTuple):
    """What follows a state: outcome i is the number of thresholds that a uniform reaches.

    `states` holds None where an outcome is impossible.
    """

    thresholds: NDArray[np.float64]
    states: tuple[State | None, ...]

    @property
    def possible(self) -> tuple[State, ...]:
        return tuple(state for state in self.states if state is not None)


NOWHERE = Branches(np.empty(0), ())


def drawn(probabilities: Probabilities, then: Callable[[int], State]) -> Branches:
    """A draw, with the state that follows each token."""
    states = tuple(
        then(token) if probability > 0 else None for token, probability in enumerate(probabilities)
    )
    return Branches(inverse_cdf(probabilities), states)


def accepted(
    probability: Probability, yes: Callable[[], State], no: Callable[[], State]
) -> Branches:
    """An accept: outcome 0 is yes, outcome 1 is no."""
    states = (yes() if probability > 0 else None, no() if probability < 1 else None)
    return Branches(np.array([_at_least(probability)]), states)


def inverse_cdf(weights: Probabilities) -> NDArray[np.float64]:
    """The least u that pass each token in the convention of `Sampled`, rounding included.

    Token k is passed iff u * total >= cumulative[k] in floating point. From the last possible
    token on that is 1: for u < 1 the product rounds to less than the total.

    Examples
    --------
    >>> inverse_cdf(np.array([0.25, 0.0, 0.75, 0.0]))
    array([0.25, 0.25, 1.  , 1.  ])
    """
    cumulative = np.cumsum(np.asarray(weights, dtype=np.float64))
    total = cumulative[-1]
    least: NDArray[np.float64] = cumulative / total
    # The quotient is rounded: step to the neighbouring floats until it is the least.
    while (low := least * total < cumulative).any():
        least[low] = np.nextafter(least[low], np.inf)
    while (high := (least > 0) & (np.nextafter(least, 0) * total >= cumulative)).any():
        least[high] = np.nextafter(least[high], 0)
    return least


def _at_least(probability: Probability) -> float:
    """The least float that is not below `probability`: u < probability iff u is below it."""
    rounded = float(probability)
    return rounded if rounded >= probability else math.nextafter(rounded, math.inf)
