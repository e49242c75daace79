"""What acceptance figures mean: exact definitions on a log of iterations.

Published figures differ by what they count, often more than by what they measure. Here a draft
is *accepted* if its verdict and all before it were yes, and its token is in the text: nothing
after the first rejection counts, and nothing after EOS. The token after the accepted drafts,
residual or bonus, is *emitted* and never accepted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Iteration:
    """One logged iteration of a decode loop.

    * `verdicts`: One for each submitted draft; those after the first False may have been tossed,
      and mean nothing.
    * `emitted`: How many tokens the text grew by: the accepted drafts and one more, or fewer if an
      accepted EOS ended it.
    * `request`: Which text it belongs to.
    * `rank`: Which process logged it.
    """

    verdicts: tuple[bool, ...]
    emitted: int
    request: int = 0
    rank: int = 0

    def __post_init__(self) -> None:
        most = self.prefix + 1
        if not 0 <= self.emitted <= most:
            raise ValueError(f"emitted = {self.emitted}: expected 0 to {most} tokens")

    @property
    def drafted(self) -> int:
        return len(self.verdicts)

    @property
    def prefix(self) -> int:
        """How many verdicts were yes before the first no."""
        return len(list(takewhile(bool, self.verdicts)))

    @property
    def accepted(self) -> int:
        """How many drafts were accepted and are in the text."""
        return min(self.prefix, self.emitted)


Log = Sequence[Iteration]


def acceptance_rate(log: Log) -> Fraction:
    """Accepted drafts over submitted drafts, pooled over all iterations.

    Raises `ValueError` if nothing was drafted.
    """
    return _share(sum(i.accepted for i in log), sum(i.drafted for i in log), "drafts")


def mean_accepted_length(log: Log) -> Fraction:
    """Accepted drafts per iteration, without the residual or bonus token."""
    return _share(sum(i.accepted for i in log), len(log), "iterations")


def tokens_per_iteration(log: Log) -> Fraction:
    """Emitted tokens per iteration, that is per evaluation of the target."""
    return _share(sum(i.emitted for i in log), len(log), "iterations")


def acceptance_at_positions(log: Log) -> tuple[Fraction, ...]:
    """For each position, the share of the drafts submitted there that were accepted.

    The earlier positions are not given, as they are in `theory.acceptance_by_position`: if
    every iteration submits as many drafts, these shares are the running products of those.
    """
    shares: list[Fraction] = []
    for position in range(max((i.drafted for i in log), default=0)):
        submitted = [i for i in log if i.drafted > position]
        accepted = sum(i.accepted > position for i in submitted)
        shares.append(_share(accepted, len(submitted), "drafts"))
    return tuple(shares)


METRICS: Mapping[str, Callable[[Log], Any]] = MappingProxyType(
    {
        "acceptance_rate": acceptance_rate,
        "mean_accepted_length": mean_accepted_length,
        "tokens_per_iteration": tokens_per_iteration,
        "acceptance_at_positions": acceptance_at_positions,
    }
)


def _share(part: int, whole: int, name: str) -> Fraction:
    if not whole:
        raise ValueError(f"log has no {name}: expected at least one")
    return Fraction(part, whole)
