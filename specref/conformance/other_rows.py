"""Which other rows of p and q a wrong decision is made of: what an index that is wrong reads.

Of drafts in a chain, what is drawn in place of a draft, or after all of them, is compared with the
same of every other position, and with p and q themselves. A formula is named only if it gives the
law of the sampler after all drafts that come so far.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from specref.arrays import Floats

SAME = 1e-6
"""A difference that rounding explains."""
Formula: TypeAlias = tuple[str, str, int]
"""{"residual", "p", "q"}, what it is in words, and its position."""


@dataclass(frozen=True)
class Drawn:
    """What a sampler draws at a position, after drafts that were kept.

    * `p`, `q`: The rows of all positions; q has one less.
    * `law`: {token: probability}.
    """

    p: Floats
    q: Floats
    law: Mapping[int, float]


def formulas(positions: int, at: int) -> Iterator[Formula]:
    """What might be drawn at a position instead of what the rule has there."""
    others = [i for i in range(positions) if i != at]
    yield from (("residual", "(p - q)+", i) for i in others if i < positions - 1)
    yield from (("p", "p", i) for i in (at, *others))
    yield from (("q", "q", i) for i in (at, *others) if i < positions - 1)


def row_of(one: Drawn, formula: Formula) -> Floats:
    """The law that a formula gives."""
    kind, _, i = formula
    if kind != "residual":
        row: Floats = one.p[i] if kind == "p" else one.q[i]
        return row
    left: Floats = np.maximum(one.p[i] - one.q[i], 0)
    row = left if left.sum() > SAME else one.p[i]
    return np.asarray(row / row.sum())


def made_of(drawn: Sequence[Drawn], at: int) -> str:
    """The one formula that gives all laws, in words; empty if none does, or several."""
    if not drawn:
        return ""
    positions = len(drawn[0].p)
    found = [one for one in formulas(positions, at) if all(_fits(each, one) for each in drawn)]
    if len(found) != 1:
        return ""
    _, name, i = found[0]
    return f"{name} of position {i}"


def _fits(one: Drawn, formula: Formula) -> bool:
    row = row_of(one, formula)
    law = np.zeros(len(row))
    law[list(one.law)] = list(one.law.values())
    return bool(np.abs(law - row).max() <= SAME)
