"""The best lookahead of each class of contexts, for the goodput of the whole run.

Maximising each iteration's own goodput does not maximise the run's: expected tokens and expected
time are summed before they are divided.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from specref.distributions import Probability
from specref.theory.latency import Rates, best, goodputs


class Policy(NamedTuple):
    """A lookahead for each class of contexts, and the goodput in the long run."""

    lookaheads: tuple[int, ...]
    goodput: Probability


def optimal_policy(
    weights: Rates, classes: Sequence[Rates], latencies: Rates, draft_cost: Probability = 0
) -> Policy:
    """The lookaheads that make the most tokens per unit of time in the long run.

    Iterations are of class i in proportion to `weights`[i]. In the long run goodput is the
    ratio of expected tokens to expected time; the best lookahead of a class maximises
    tokens - price * time, with that ratio as the price (Dinkelbach 1967), and not the class's
    own tokens / time: a class that is slow anyway is worth less of the common time.

    Raises
    ------
    ValueError
        As `goodputs`; `weights` do not match `classes`, are negative or sum to 0.

    Examples
    --------
    >>> easy, hard = [Fraction(1)], [Fraction(2, 5)]
    >>> latencies = [0, 1, Fraction(4, 3)]
    >>> optimal_policy([1, 1], [easy, hard], latencies)
    Policy(lookaheads=(1, 0), goodput=Fraction(9, 7))
    >>> [str(goodput) for goodput in goodputs([hard], latencies)]  # alone it would draft
    ['1', '21/20']
    """
    if len(weights) != len(classes) or not all(w >= 0 for w in weights) or not sum(weights) > 0:
        raise ValueError(f"weights = {tuple(weights)}: expected one for each class, and none < 0")
    offers = [_offers(rates, latencies, draft_cost) for rates in classes]
    policy = Policy((0,) * len(offers), _ratio(weights, [options[0] for options in offers]))
    while True:
        price = policy.goodput
        chosen = tuple(best([t - price * time for t, time in options]) for options in offers)
        taken = [options[k] for options, k in zip(offers, chosen, strict=True)]
        if not _ratio(weights, taken) > price:
            return policy
        policy = Policy(chosen, _ratio(weights, taken))


def _offers(
    rates: Rates, latencies: Rates, draft_cost: Probability
) -> list[tuple[Probability, Probability]]:
    """(expected tokens, time) for each lookahead."""
    values = goodputs([rates], latencies, draft_cost)
    times = [latencies[k + 1] + k * draft_cost for k in range(len(values))]
    return [(value * time, time) for value, time in zip(values, times, strict=True)]


def _ratio(weights: Rates, taken: Sequence[tuple[Probability, Probability]]) -> Probability:
    tokens = sum((w * t for w, (t, _) in zip(weights, taken, strict=True)), start=Fraction(0))
    return tokens / sum(w * time for w, (_, time) in zip(weights, taken, strict=True))
