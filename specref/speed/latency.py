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
from itertools import accumulate, pairwise
from typing import NamedTuple

from specref.algorithms.lookahead import positions
from specref.distributions import Probability
from specref.speed.speedup import survival

Rates = Sequence[Probability]


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


def checked_latencies(latencies: Rates) -> tuple[Probability, ...]:
    """The latencies as a tuple.

    Raises
    ------
    ValueError
        There is none for one token, one is not finite or less than the one before, or the
        first is negative, or that of one token is not positive.

    Examples
    --------
    >>> checked_latencies([0, 2, 1])
    Traceback (most recent call last):
    ValueError: latencies[2] = 1 is less than latencies[1] = 2: expected a non-decreasing profile
    """
    if len(latencies) < 2:
        raise ValueError(
            f"latencies has length {len(latencies)}: expected those of 0, 1, … tokens"
        )
    for n, latency in enumerate(latencies):
        if not 0 <= latency < float("inf") or latency == 0 < n:
            kind = "positive" if n else "non-negative"
            raise ValueError(f"latencies[{n}] = {latency}: expected a finite {kind} number")
    for n, (fewer, more) in enumerate(pairwise(latencies), 1):
        if more < fewer:
            raise ValueError(
                f"latencies[{n}] = {more} is less than latencies[{n - 1}] = {fewer}: "
                "expected a non-decreasing profile"
            )
    return tuple(latencies)


def goodputs(
    requests: Sequence[Rates], latencies: Rates, draft_cost: Probability = 0
) -> tuple[Probability, ...]:
    """The best expected goodput of one pass over a batch, for each total number of drafts K.

    One request is a batch of one, and K its lookahead. `allocation` says who gets the K drafts.

    Parameters
    ----------
    requests : sequence of sequences of numbers in [0, 1]
        For each request, the acceptance of each position given the earlier ones.
    latencies : sequence
        For 0, 1, … tokens, at least as many as there are requests and drafts together.
    draft_cost : number >= 0
        The time of one draft; 0 if drafts are there already, or free.

    Returns
    -------
    tuple
        Entry K: (requests + the K greatest survival probabilities) / time.

    Raises
    ------
    ValueError
        No requests; bad rates, latencies or `draft_cost`.

    Examples
    --------
    >>> steps = staircase(4, 2, base=1)
    >>> [str(g) for g in goodputs([[Fraction(9, 10)] * 3], steps)]
    ['1/2', '19/20', '271/300', '3439/3000']
    """
    if not 0 <= draft_cost < float("inf"):
        raise ValueError(f"draft_cost = {draft_cost}: expected a number >= 0")
    gains = [gain for gain, _, _ in _ranked(requests)]
    table, batch = checked_latencies(latencies), len(requests)
    most = batch + len(gains)
    if len(table) <= most:
        raise ValueError(f"latencies end at {len(table) - 1} tokens: expected {most}")
    tokens = accumulate(gains, initial=Fraction(batch))
    return tuple(
        total / (table[batch + drafts] + drafts * draft_cost)
        for drafts, total in enumerate(tokens)
    )


def allocation(requests: Sequence[Rates], drafts: int) -> tuple[int, ...]:
    """How many drafts of each request are verified, if it is `drafts` in all.

    The greatest survival probabilities are taken, the earlier request first among equals. They
    never grow along a request, so what is taken of it is a prefix, and no other choice of as
    many drafts has more expected tokens (a separable concave problem).

    Raises
    ------
    ValueError
        As `goodputs`, or there are fewer than `drafts` positions.

    Examples
    --------
    >>> allocation([[Fraction(1, 2)] * 3, [Fraction(9, 10)] * 3], 4)
    (1, 3)
    """
    ranked = _ranked(requests)
    if not 0 <= drafts <= len(ranked):
        raise ValueError(f"drafts = {drafts}: expected 0 to {len(ranked)}, all positions")
    taken = [request for _, request, _ in ranked[:drafts]]
    return tuple(taken.count(request) for request in range(len(requests)))


def first_decline(values: Rates) -> int:
    """The index of the greatest value before the first decline; the first among equals.

    The rule of greedy schedulers: right for linear or convex latencies, where goodput is
    quasi-concave, and wrong for staircases. Coming back to the first among equals looks ahead:
    who verifies by it, rather than plans, is lossy (zoo: `companion-steps-back-among-equals`).

    Examples
    --------
    >>> first_decline([Fraction(1, 2), Fraction(19, 20), Fraction(9, 10), Fraction(6, 5)])
    1
    """
    declines = (k for k, (now, after) in enumerate(pairwise(values)) if after < now)
    end = next(declines, len(values) - 1)
    return list(values).index(values[end])


def best(values: Rates) -> int:
    """The index of the greatest value, the first among equals.

    Examples
    --------
    >>> best([1, 3, 2, 3])
    1
    """
    return max(range(len(values)), key=lambda k: values[k])


def _ranked(requests: Sequence[Rates]) -> list[tuple[Probability, int, int]]:
    """(survival, request, position) of every draft, the greatest survival first."""
    if not len(requests):
        raise ValueError("requests is empty: expected at least one")
    drafts = [
        (gain, request, position)
        for request, rates in enumerate(requests)
        for position, gain in enumerate(survival(rates, len(rates))[1:])
    ]
    return sorted(drafts, key=lambda draft: (-draft[0], *draft[1:]))


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
