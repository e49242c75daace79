"""The shape of a call."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np


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
    def parts(self) -> Mapping[str, int | str]:
        """What it is made of: of two shapes that differ, one of them does."""
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
    def parts(self) -> Mapping[str, int | str]:
        return self.sizes

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


class Box(NamedTuple):
    """Sizes of which shapes are drawn: one for each lookahead, with other sizes at random.

    Half of these are drawn from those that are given, half from all between the least and the
    largest, small ones more often.

    Attributes
    ----------
    vocabularies, lookaheads : tuple of int
    others : tuple of int
        Of the batch, or of the context.
    """

    vocabularies: tuple[int, ...]
    lookaheads: tuple[int, ...]
    others: tuple[int, ...]

    def drawn(self, rng: np.random.Generator) -> list[tuple[int, int, int]]:
        """A size of the vocabulary, a lookahead, and another size; for each lookahead.

        Examples
        --------
        >>> Box((8,), (1, 9), (64,)).drawn(np.random.default_rng(1))
        [(8, 1, 64), (8, 9, 64)]
        """
        return [
            (one_of(self.vocabularies, rng), lookahead, one_of(self.others, rng))
            for lookahead in self.lookaheads
        ]


def one_of(sizes: Sequence[int], rng: np.random.Generator) -> int:
    """One of some sizes, or any between the least and the largest, whose logarithm is uniform."""
    if rng.random() < 0.5:
        return int(rng.choice(sizes))
    low, high = math.log(min(sizes) + 1), math.log(max(sizes) + 2)
    return min(int(math.exp(rng.uniform(low, high))) - 1, max(sizes))


def told(shape: Sized) -> str:
    """The sizes of a shape, for reports."""
    return ", ".join(f"{name} {size:,}" for name, size in shape.sizes.items())


def tried(given: Iterable[Sized]) -> str:
    """The values of each part, if every combination was tried; else every shape by itself.

    Examples
    --------
    >>> tried(shapes([5, 1_000], [1], [4, 2]))
    'V 5, 1,000; lookahead 1; batch 2, 4'
    >>> tried([Shape(5, 1, 4), Shape(1_000, 2, 4)])
    'V/lookahead/batch 5/1/4, 1,000/2/4'
    """
    several = dict.fromkeys((tuple(one.parts), tuple(one.parts.values())) for one in given)
    (names, *_), rows = zip(*several, strict=True)
    columns = [tuple(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
    if math.prod(map(len, columns)) > len(rows):
        return f"{'/'.join(names)} {', '.join('/'.join(map(said, row)) for row in rows)}"
    return "; ".join(
        f"{name} {', '.join(map(said, in_order(column)))}"
        for name, column in zip(names, columns, strict=True)
    )


def in_order(values: Sequence[int | str]) -> Sequence[int | str]:
    """Numbers by size; words as they come."""
    numbers = [value for value in values if isinstance(value, int)]
    return sorted(numbers) if len(numbers) == len(values) else values


def said(value: int | str) -> str:
    """A number with its thousands apart, or a word."""
    return f"{value:,}" if isinstance(value, int) else value
