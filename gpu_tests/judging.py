"""Texts by the bets and counts of `specref.contrib.real_models`, all tokens at once on a device.

Texts have random numbers of their own, so products of bets over all tokens of all texts have mean
1, and so has their average over components: that it reaches 1 / alpha has probability at most
alpha. Given all tokens before, a draft that is reached is accepted with probability sum min(p, q)
(with exact match, where the draft is known: p(draft)); `Place.interval` has the declared counts.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from gpu_tests.prefixes import Prefixes
from gpu_tests.recording import Draws
from specref.contrib.real_models.tally import ALPHA, Place, Rows, log_bets

LOSSY = -math.log10(ALPHA)
NUMBERS = 1 << 24
"""Of p that are looked at at once: 8,192 rows of 2,048 tokens, 110 of 152,064."""


def log10_evidence(draws: Draws, device: str) -> float:
    """How strongly the bets say that the tokens are not drawn by p; infinite if p excludes one.

    Lossy, at level alpha, from `LOSSY` on.
    """
    total = torch.stack([log_bets(rows).sum(0) for rows in chunks(draws, device)]).sum(0)
    if total.isposinf().any():
        return math.inf
    return float(total.logsumexp(0) - math.log(len(total))) / math.log(10)


def chunks(draws: Draws, device: str) -> Iterator[Rows]:
    """The rows of some draws, some at a time, on a device."""
    count = max(1, NUMBERS // draws.p.shape[1])
    tensors = draws.p, draws.q, draws.tokens, ~draws.drafted
    for rows in zip(*(tensor.split(count) for tensor in tensors), strict=True):
        p, q, tokens, last = (tensor.to(device) for tensor in rows)
        p = p.double()
        yield Rows(p / p.sum(1, keepdim=True), q.double(), tokens, last)


def acceptance(draws: Draws) -> list[Place]:
    """The drafts that were reached."""
    here = draws.drafted
    return _places(draws.position[here], _overlaps(draws)[here], draws.accepted[here])


def jointly(prefixes: Prefixes) -> list[Place]:
    """The same where drafts are accepted jointly: of each place, what was submitted there.

    Given all before it and itself, a draft is accepted with the probability `chance`: so these
    are bets on one event of each block, as above.
    """
    return _places(*prefixes)


def told(place: Place) -> str:
    """In words."""
    low, high = place.interval
    return (
        f"{place.accepted} of {place.reached} accepted, expected {place.least:.1f}, declared "
        f"{low} to {high}"
    )


def _places(position: Tensor, chance: Tensor, accepted: Tensor) -> list[Place]:
    found = [Place() for _ in position.unique()]
    for number, place in enumerate(found):
        here = position == number
        chances = chance[here].numpy()
        place.add(accepted[here].numpy(), chances, chances)
    return found


def _overlaps(draws: Draws) -> Tensor:
    """sum min(p, q) at every token, shape (N,)."""
    pairs = zip(draws.p.split(8_192), draws.q.split(8_192), strict=True)
    return torch.cat([torch.minimum(p, q).sum(1, dtype=torch.float64) for p, q in pairs])
