"""Which slots of a key-value cache each row of a batch uses, kept on the host.

A slot is a column of the cache. Rows keep different numbers of draft tokens, so after a while a
row has holes: slots that hold what was rejected, or what other rows read while it had less to
read. Its own tokens stand in the slots it uses, in order.
"""

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import torch
from torch import Tensor

FEW_HOLES = 16


class Layout(NamedTuple):
    """The mask [B, slots] and positions [B, width] that a model needs for a batch with holes."""

    mask: Tensor
    positions: Tensor


class Slots:
    """The slots of `rows` rows, none used yet.

    Attributes
    ----------
    lengths : list of int
        How many tokens each row holds.
    size : int
        How many slots there are.

    Examples
    --------
    >>> slots = Slots(2)
    >>> slots.append([3, 1], 3).positions.tolist()
    [[0, 1, 2], [0, 0, 0]]
    >>> slots.crop([1, 1])
    >>> slots.size, slots.used.tolist()
    (3, [[True, False, False], [False, False, True]])
    """

    def __init__(self, rows: int) -> None:
        self.lengths, self.size = [0] * rows, 0
        self._used: Tensor | None = None

    @property
    def used(self) -> Tensor:
        """Which row uses which slot, shape [B, slots]; on the CPU."""
        if self._used is None:
            return torch.ones(len(self.lengths), self.size, dtype=torch.bool)
        return self._used

    def crop(self, lengths: Sequence[int]) -> None:
        """Keep so many tokens of each row, and no slot after the last that is used."""
        if self._used is None and len(set(lengths)) == 1:
            self.size = lengths[0]
        else:
            used = self.used & (self.used.cumsum(1) <= torch.tensor(lengths)[:, None])
            self.size = 1 + max(compress(range(self.size), used.any(0).tolist()), default=-1)
            self._used = used[:, : self.size]
        self.lengths = list(lengths)
        self._forget_if_dense()

    def append(self, counts: Sequence[int], width: int, positions: int = 2**31) -> Layout | None:
        """Add `width` slots, of which each row uses its last; None if there are no holes.

        What comes after position `positions` is put on the last: nothing that is used.
        """
        before = torch.tensor(self.lengths)[:, None]
        dense = self._used is None and min(counts) == width
        used, self.size = self.used, self.size + width
        self.lengths = [length + count for length, count in zip(self.lengths, counts, strict=True)]
        if dense:
            return None
        offsets = torch.arange(width) - (width - torch.tensor(counts)[:, None])
        self._used = torch.cat([used, offsets >= 0], 1)
        return Layout(self._used, (before + offsets).clamp(0, positions - 1))

    def compact(self) -> Tensor | None:
        """Close the holes if there are many: the slots to gather, [B, new size], or None."""
        longest = max(self.lengths)
        if self.size - longest <= max(FEW_HOLES, longest // 4):
            return None
        order = self.used.byte().argsort(dim=1, descending=True, stable=True)[:, :longest]
        self._used = torch.arange(longest) < torch.tensor(self.lengths)[:, None]
        self.size = longest
        self._forget_if_dense()
        return order

    def select(self, rows: Sequence[int]) -> None:
        self._used = None if self._used is None else self._used[list(rows)]
        self.lengths = [self.lengths[row] for row in rows]

    def _forget_if_dense(self) -> None:
        if min(self.lengths) == self.size:
            self._used = None
