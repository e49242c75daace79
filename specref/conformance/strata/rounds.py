"""Rounds of calls in every shape of a stratum, until its campaign has decided or seen enough."""

import math
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from specref.conformance.strata.campaign import Campaign, Found, Tokens
from specref.conformance.strata.shape import Sized

S = TypeVar("S", bound=Sized)
MOST_CELLS = 1 << 20
"""Numbers in laws that are held at once, unless one call takes more."""


def played(
    campaign: Campaign,
    shapes: Sequence[S],
    ask: Callable[[S, int], Tokens],
    turns: Callable[[S], int],
    alpha: float,
    tokens: int,
    cells: int,
    advance: Callable[[int], None],
    seconds: float | None = None,
) -> Found:
    """What a campaign has found after rounds of calls, each as long as those before it together.

    So evidence is weighed seldom.

    Parameters
    ----------
    ask : callable
        (shape, calls) -> the tokens of so many calls.
    turns : callable
        Shape -> its calls in the first round.
    tokens : int
        After so many it ends, at the end of a round; after more where it suspects.
    cells : int
        After so many numbers in laws it ends in any case, at the end of a round; or as above.
    advance : callable
        Called with the number of rows as they come.
    seconds : float, optional
        If given, they end it instead, after at least one round.
    """
    started = time.perf_counter()
    each = sum(shape.cells * turns(shape) for shape in shapes)
    done, rounds = 0, 1
    while True:
        for shape in shapes:
            ahead = turns(shape) * rounds
            while ahead:
                calls = min(ahead, max(1, MOST_CELLS // shape.cells))
                found = ask(shape, calls)
                campaign.add(shape, found)
                campaign.calls += calls
                campaign.rows += calls * found.rows
                advance(calls * found.rows)
                ahead -= calls
        done += rounds
        lossy, seen = campaign.decided(alpha), int(campaign.sums.tokens[0, 0])
        more = campaign.longer
        left = min(
            (more * tokens - seen) * done / max(seen, 1), (more * cells - done * each) / each
        )
        if seconds is not None:
            spent = time.perf_counter() - started
            left = math.floor((seconds - spent) * done / spent)
        if lossy or left <= 0:
            return campaign.found(alpha)
        rounds = min(done, math.ceil(left))
