"""Log-probabilities that a system reports of its own tokens, compared with each other.

One prompt and one beginning have one distribution, so a token has one log-probability there,
whichever file it is in; and the tokens seen there have probabilities that add up to 1 at most.
"""

from dataclasses import dataclass

import numpy as np

from specref.arrays import Floats, Ints
from specref.contrib.compare.numbering import numbered
from specref.contrib.compare.records import Texts

TOLERANCE = 0.125
"""Nats: the distance of neighbouring bfloat16 numbers from 16 to 32, where logits often are."""


@dataclass(frozen=True)
class Agreement:
    """What was compared, and where it differs most.

    Attributes
    ----------
    repeated : int
        Tokens with a log-probability that were seen again after the same beginning.
    apart : int
        How many places and tokens have values that are further apart than the tolerance.
    above : int
        Places at which the probabilities of the tokens seen add up to more than 1.
    tolerance, largest : float
    example : str
        The place of the largest difference.
    """

    repeated: int
    apart: int
    above: int
    tolerance: float
    largest: float
    example: str

    @property
    def agree(self) -> bool:
        return not (self.apart or self.above)

    def __str__(self) -> str:
        if self.agree:
            return (
                f"agree within {self.tolerance:g} nats: {self.repeated:,} tokens seen again "
                "after the same beginning"
            )
        parts = []
        if self.apart:
            parts.append(
                f"DIFFER at {self.apart:,} tokens by more than {self.tolerance:g} nats, most "
                f"{self.example}: another stage, the draft model's, or the residual's?"
            )
        if self.above:
            parts.append(
                f"ADD UP TO MORE THAN 1 after {self.above:,} beginnings: they are not those of "
                "one distribution"
            )
        return "; ".join(parts)


def agreement(spec: Texts, plain: Texts, tolerance: float) -> Agreement | None:
    """Compare what both files report; None where a file reports nothing.

    * `tolerance`: Nats by which two values of one token may differ.
    """
    if spec.logprobs is None or plain.logprobs is None:
        return None
    ids = {name: index for index, name in enumerate(dict.fromkeys([*spec.ids, *plain.ids]))}
    prompts = np.concatenate(
        [np.array([ids[name] for name in one.ids])[one.prompts] for one in (spec, plain)]
    )
    lengths = np.concatenate([spec.lengths, plain.lengths])
    starts = np.concatenate([spec.starts[:-1], plain.starts[:-1] + len(spec.tokens)])
    tokens = np.concatenate([spec.tokens, plain.tokens])
    values = np.concatenate([spec.logprobs, plain.logprobs])
    repeated = apart = above = 0
    largest, example = 0.0, ""
    place, position = prompts, 0
    span = int(tokens.max()) + 1
    rows = np.arange(len(lengths))
    while len(rows):
        at = starts[rows] + position
        codes, where, _ = numbered(place * span + tokens[at])
        known = ~np.isnan(values[at])
        least, most = _extremes(values[at][known], where[known], len(codes))
        seen = np.bincount(where[known], minlength=len(codes))
        repeated += int(np.maximum(seen - 1, 0).sum())
        spread = np.where(seen > 0, most - least, 0)
        apart += int((spread > tolerance).sum())
        above += _above(codes // span, np.where(seen > 0, least, -np.inf), tolerance)
        if spread.max(initial=0) > largest:
            worst = int(spread.argmax())
            largest = float(spread[worst])
            name = list(ids)[int(prompts[rows[np.flatnonzero(where == worst)[0]]])]
            example = (
                f"{largest:.2f} (prompt {name}, position {position + 1}, token "
                f"{int(codes[worst] % span)}: {least[worst]:.2f} and {most[worst]:.2f})"
            )
        position += 1
        # Only beginnings that several texts share can show anything.
        shared = np.bincount(where, minlength=len(codes))[where] > 1
        going = shared & (lengths[rows] > position)
        rows, place = rows[going], where[going]
    return Agreement(repeated, apart, above, tolerance, largest, example)


def _extremes(values: Floats, where: Ints, size: int) -> tuple[Floats, Floats]:
    """The least and the most value of each kind."""
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(least, where, values)
    np.maximum.at(most, where, values)
    return least, most


def _above(places: Ints, logs: Floats, tolerance: float) -> int:
    """At how many places probabilities add up to more than 1, each as small as reported."""
    kinds, where, _ = numbered(places)
    sums = np.bincount(where, weights=np.exp(logs), minlength=len(kinds))
    return int((sums > np.exp(tolerance)).sum())
