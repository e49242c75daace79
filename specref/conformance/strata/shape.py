"""The shape of a call."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Shape(NamedTuple):
    """The shape of a call: tokens of the vocabulary, drafts of a row, rows of the batch."""

    vocabulary: int
    lookahead: int
    batch: int

    @property
    def cells(self) -> int:
        """The numbers in both laws."""
        return self.batch * (2 * self.lookahead + 1) * self.vocabulary

    def __str__(self) -> str:
        return f"V {self.vocabulary:,}, lookahead {self.lookahead}, batch {self.batch:,}"


def shapes(
    vocabularies: Iterable[int], lookaheads: Iterable[int], batches: Iterable[int]
) -> tuple[Shape, ...]:
    """Every combination.

    Examples
    --------
    >>> shapes([8], [1, 2], [4])
    (Shape(vocabulary=8, lookahead=1, batch=4), Shape(vocabulary=8, lookahead=2, batch=4))
    """
    known = [tuple(values) for values in (vocabularies, lookaheads, batches)]
    return tuple(Shape(v, k, b) for v in known[0] for k in known[1] for b in known[2])


def ranges(given: Sequence[Shape]) -> str:
    """The smallest and largest of each size.

    Examples
    --------
    >>> ranges([Shape(5, 1, 4), Shape(1_000, 1, 2)])
    'V 5 to 1,000, lookahead 1, batch 2 to 4'
    """
    names = ("V", "lookahead", "batch")
    columns = zip(*given, strict=True)
    named = zip(names, columns, strict=True)
    return ", ".join(f"{name} {_range(set(sizes))}" for name, sizes in named)


def _range(sizes: set[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
