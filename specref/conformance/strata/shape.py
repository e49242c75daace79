"""The shape of a call."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol


class Sized(Protocol):
    """The shape of a call under any contract."""

    @property
    def vocabulary(self) -> int:
        """The tokens of the vocabulary."""
        ...

    @property
    def sizes(self) -> Mapping[str, int]:
        """What it is made of, by the names that reports use."""
        ...

    @property
    def cells(self) -> int:
        """The numbers in its laws."""
        ...


class Shape(NamedTuple):
    """The shape of a call: tokens of the vocabulary, drafts of a row, rows of the batch."""

    vocabulary: int
    lookahead: int
    batch: int

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"V": self.vocabulary, "lookahead": self.lookahead, "batch": self.batch}

    @property
    def cells(self) -> int:
        """The numbers in both laws."""
        return self.batch * (2 * self.lookahead + 1) * self.vocabulary

    def __str__(self) -> str:
        return told(self)


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


def told(shape: Sized) -> str:
    """The sizes of a shape, for reports."""
    return ", ".join(f"{name} {size:,}" for name, size in shape.sizes.items())


def ranges(given: Sequence[Sized]) -> str:
    """The smallest and largest of each size.

    Examples
    --------
    >>> ranges([Shape(5, 1, 4), Shape(1_000, 1, 2)])
    'V 5 to 1,000, lookahead 1, batch 2 to 4'
    """
    names = given[0].sizes
    return ", ".join(f"{name} {_range({shape.sizes[name] for shape in given})}" for name in names)


def _range(sizes: set[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
