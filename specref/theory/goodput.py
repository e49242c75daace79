"""Goodput: how many drafts are worth a pass of the target, by what each is likely to add.

`latencies` is a table: entry n is the time of a target pass over n tokens, n = 0, 1, …, never
less than the entry before. A pass over a request with g drafts has g + 1 tokens. Goodput is
expected tokens per unit of time, the residual or bonus token counted. Results are exact for
`Fraction` and int.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, islice, pairwise, repeat
from numbers import Real
from operator import mul
from typing import TypeAlias

from specref.algorithms.lookahead import positions
from specref.distributions import ExactNumber, Probability

Acceptance: TypeAlias = Probability | Sequence[Probability]
Rates: TypeAlias = Sequence[Probability]
NUMBER = (float, int, Fraction)


def survival(acceptance: Acceptance, lookahead: int) -> tuple[Probability, ...]:
    """The probability that at least k drafts are accepted, for k = 0 … `lookahead`."""
    terms = 1 + len(positions(lookahead))
    products = tuple(islice(accumulate(rates_of(acceptance), mul, initial=1), terms))
    if len(products) < terms:
        raise ValueError(
            f"acceptance has {len(products) - 1} positions: expected lookahead = {lookahead}"
        )
    return products


def checked_latencies(latencies: Rates) -> tuple[Probability, ...]:
    """The latencies as a tuple; `ValueError` unless they are a profile as above."""
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

    * `requests`: For each request, the acceptance of each position given the earlier ones.
    * `latencies`: For 0, 1, … tokens, at least as many as there are requests and drafts together.
    * `draft_cost`: The time of one draft; 0 if drafts are there already, or free.
    * returns: Entry K: (requests + the K greatest survival probabilities) / time.

    Examples
    --------
    >>> steps = (1, 2, 2, 3, 3)  # waves of two tokens
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


def greedy_length(rates: Rates, latencies: Rates) -> int:
    """The number of drafts to verify: one more as long as goodput grows.

    Kim et al. 2025, section 5, which calls goodput concave. It is not: it is quasi-concave if
    latencies are linear or convex, and the rule is right then; on staircases it stops too early.
    A tie ends the walk: to go on and come back to the first among equals (`first_decline`) would
    see ahead.
    """
    return _while_growing(goodputs([rates], latencies)) if len(rates) else 0


def optimal_length(rates: Rates, latencies: Rates) -> int:
    """The number of drafts with the greatest goodput, the first among equals: for any latencies.

    It looks at all rates. Where one depends on an earlier draft the choice anticipates, and
    the output is not the target's (`zoo.companion`).

    Examples
    --------
    >>> rates, steps = [Fraction(9, 10)] * 3, [0, 2, 2, 3, 3]
    >>> greedy_length(rates, steps), optimal_length(rates, steps)
    (1, 3)
    """
    return best(goodputs([rates], latencies)) if len(rates) else 0


def greedy_lengths(requests: Sequence[Rates], latencies: Rates) -> tuple[int, ...]:
    """A batch: the draft of whichever request gains most, as long as goodput grows.

    Kim et al. 2025, section 5, "Batch". For each total the choice of drafts is optimal
    (`allocation`); the total is, if latencies are linear or convex.
    """
    return allocation(requests, _while_growing(goodputs(requests, latencies)))


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


def _while_growing(values: Rates) -> int:
    """The index before the first value that is not greater than the one before."""
    steps = enumerate(pairwise(values))
    return next((k for k, (now, after) in steps if after <= now), len(values) - 1)


def rates_of(acceptance: Acceptance) -> Iterator[Probability]:
    """The acceptance of each position: endless for one number."""
    if isinstance(acceptance, NUMBER):
        return repeat(_rate(acceptance, "acceptance"))
    if not len(acceptance):
        raise ValueError("acceptance is empty: expected at least one position")
    return iter([_rate(rate, f"acceptance[{k}]") for k, rate in enumerate(acceptance)])


def _rate(value: Probability, name: str) -> Probability:
    if not isinstance(value, Real | ExactNumber):
        raise TypeError(f"{name} = {value!r}: expected a number")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} = {value}: expected a number in [0, 1]")
    return value
