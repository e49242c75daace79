"""Goodput when a pass over more tokens takes longer: staircases, where stopping early fails.

`latencies` is a table: entry n is the time of a target pass over n tokens, n = 0, 1, …, never
less than the entry before. A pass over a request with g drafts has g + 1 tokens. Goodput is
tokens per unit of time. Accelerators work in waves of tiles, so that real tables are staircases;
goodput then has many local maxima (`staircase`, `first_decline`), and only a scan finds the best.
Maximising each iteration's own goodput does not maximise the run's: expected tokens and expected
time are summed before they are divided (`optimal_policy`). Results are exact for `Fraction` and
int.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from specref.algorithms.lookahead import positions
from specref.distributions import Probability
from specref.theory.goodput import Rates, best, checked_latencies, goodputs


def staircase(
    tokens: int, wave: int, *, base: Probability = 0, per_wave: Probability = 1
) -> tuple[Probability, ...]:
    """Latencies of 0 … `tokens` tokens: base + per_wave for each wave that has begun.

    `base` is what a pass takes however few its tokens are (reading the weights).

    Raises
    ------
    ValueError
        `tokens` < 1, `wave` < 1, `base` < 0 or `per_wave` < 0, or both are 0.

    Examples
    --------
    >>> staircase(5, 2, base=1)
    (1, 2, 2, 3, 3, 4)
    """
    for name, value in (("tokens", tokens), ("wave", wave)):
        if len(positions(value)) < 1:
            raise ValueError(f"{name} = {value}: expected an integer >= 1")
    for name, time in (("base", base), ("per_wave", per_wave)):
        if not 0 <= time < float("inf"):
            raise ValueError(f"{name} = {time}: expected a number >= 0")
    return checked_latencies([base + per_wave * (-(-n // wave)) for n in range(tokens + 1)])


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

    * raises `ValueError`: As `goodputs`; `weights` do not match `classes`, are negative or sum to
      0.
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
