"""Accepted drafts, place by place in the blocks, against the probabilities that they had.

Given all tokens before, a draft that is reached is accepted with probability sum min(p, q) (with
exact match, where the draft is known: p(draft)). `Place.interval` has the declared counts.
"""

import torch
from torch import Tensor

from gpu_tests.prefixes import Prefixes
from gpu_tests.recording import Draws
from specref.contrib.real_models.tally import Place


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
