"""Acceptance as counted, against sum min(p, q) at the places where it was counted.

Given all tokens before, a draft that is reached is accepted with probability a = sum min(p, q)
(with exact match, where the draft is known: p(draft)), so exp(l (accepted - a')) with
a' = log(1 - a + a e^l) / l is a bet of mean 1, for every l.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_tests.prefixes import Prefixes
from gpu_tests.recording import Draws

ALPHA = 1e-6
STAKES = tuple(s * x for x in (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01) for s in (1, -1))


@dataclass(frozen=True)
class Acceptance:
    """The drafts of one position of blocks, those that were reached.

    Attributes
    ----------
    position, reached, accepted : int
    expected : float
        The sum of their conditional probabilities.
    low, high : int
        `accepted` is below or above with probability at most `ALPHA`.
    """

    position: int
    reached: int
    accepted: int
    expected: float
    low: int
    high: int

    @property
    def conforms(self) -> bool:
        return self.low <= self.accepted <= self.high

    def __str__(self) -> str:
        return (
            f"position {self.position + 1}: {self.accepted} of {self.reached} accepted, expected "
            f"{self.expected:.1f}, declared {self.low} to {self.high}"
        )


def acceptance(draws: Draws) -> Iterator[Acceptance]:
    """Each position of the blocks, from the first on."""
    chances = overlaps(draws)
    for position in draws.position[draws.drafted].unique().tolist():
        here = draws.drafted & (draws.position == position)
        yield compared(position, int(draws.accepted[here].sum()), chances[here])


def jointly(prefixes: Prefixes) -> Iterator[Acceptance]:
    """The same where drafts are accepted jointly: of each position, what was submitted there.

    Given all before it and itself, a draft is accepted with the probability `chance`: so these
    are bets on one event of each block, as above.
    """
    for position in prefixes.position.unique().tolist():
        here = prefixes.position == position
        yield compared(position, int(prefixes.accepted[here].sum()), prefixes.chance[here])


def overlaps(draws: Draws) -> Tensor:
    """sum min(p, q) at every token, shape (N,)."""
    pairs = zip(draws.p.split(8_192), draws.q.split(8_192), strict=True)
    return torch.cat([torch.minimum(p, q).sum(1, dtype=torch.float64) for p, q in pairs])


def compared(position: int, accepted: int, chances: Tensor) -> Acceptance:
    """A count of events against their conditional probabilities, in order."""
    low, high = interval(chances, ALPHA)
    return Acceptance(position, len(chances), accepted, float(chances.sum()), low, high)


def interval(chances: Tensor, alpha: float) -> tuple[int, int]:
    """The counts that do not bring the average of the bets to 1 / alpha."""
    chances = chances.clamp(0, 1).cpu()
    counts = torch.arange(len(chances) + 1, dtype=torch.float64)
    won = [
        stake * counts - float(torch.log1p(chances * math.expm1(stake)).sum()) for stake in STAKES
    ]
    log_mean = torch.stack(won).logsumexp(0) - math.log(len(won))
    inside = (log_mean < -math.log(alpha)).nonzero()
    return int(inside[0]), int(inside[-1])
