"""The shapes of calls: of batches of drafts, of functions of two models, and of trees."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from specref.algorithms.trees.topdown import Branching

DRAWN_CELLS = 1 << 17
"""Of batches that are drawn: so many numbers in their laws, or one row."""
DRAWN_NODES, MOST_DRAWN, MANY = 40, 9, 0.5
"""Of trees that are drawn: the most nodes, the most siblings, how often there are some."""


class Shape(NamedTuple):
    """The shape of a call: tokens of the vocabulary, drafts of a row, rows of the batch."""

    vocabulary: int
    lookahead: int
    batch: int

    @property
    def sizes(self) -> Mapping[str, int]:
        """What it is made of, by the names that reports use."""
        return {"V": self.vocabulary, "lookahead": self.lookahead, "batch": self.batch}

    @property
    def cells(self) -> int:
        """The numbers in both laws."""
        return self.batch * (2 * self.lookahead + 1) * self.vocabulary

    def __str__(self) -> str:
        return told(self)


class CallShape(NamedTuple):
    """The shape of a call of a function of two models.

    * `asked`: The last argument: the lookahead, or the tokens to generate.
    * `batch`: The contexts of one call, each with a text; 0 if a call takes one by itself.
    """

    vocabulary: int
    context: int
    asked: int
    text: bool = False
    batch: int = 0

    @property
    def sizes(self) -> Mapping[str, int]:
        context, asked = ("prompt", "budget") if self.text else ("context", "lookahead")
        sizes = {"V": self.vocabulary, context: self.context, asked: self.asked}
        return sizes | ({"batch": self.batch} if self.batch else {})

    @property
    def fewest(self) -> int:
        """The fewest tokens that it returns, unless the text ends."""
        return self.asked if self.text else 1

    @property
    def most(self) -> int:
        """The most tokens that it returns."""
        return self.asked if self.text else self.asked + 1

    @property
    def cells(self) -> int:
        """The numbers in the laws after each of its tokens."""
        return 2 * self.vocabulary * self.most * (self.batch or 1)

    def __str__(self) -> str:
        return told(self)


class TreeShape(NamedTuple):
    """The shape of a call of the contract `tree`."""

    vocabulary: int
    branching: Branching
    batch: int

    @property
    def nodes(self) -> int:
        """The most nodes of a row."""
        return sum(math.prod(self.branching[: depth + 1]) for depth in range(self.depth))

    @property
    def depth(self) -> int:
        """The most drafts on a path."""
        return len(self.branching)

    @property
    def sizes(self) -> Mapping[str, int]:
        return {
            "V": self.vocabulary,
            "siblings": max(self.branching),
            "depth": self.depth,
            "nodes": self.nodes,
            "batch": self.batch,
        }

    @property
    def cells(self) -> int:
        """The numbers in both laws."""
        return self.batch * (2 * self.nodes + 1) * self.vocabulary

    def __str__(self) -> str:
        return told(self)


Sized: TypeAlias = Shape | CallShape | TreeShape
Sizes: TypeAlias = tuple[int, int, int]
S = TypeVar("S", Shape, CallShape, TreeShape)


def of_box(kind: type[Sized], sizes: Sizes, rng: np.random.Generator, text: bool = False) -> Sized:
    """The shape of sizes that a box gave: with few rows, or as a tree with few nodes."""
    vocabulary, lookahead, other = sizes
    if kind is CallShape:
        return CallShape(vocabulary, other, lookahead, text)
    if kind is TreeShape:
        tree = drawn_tree(lookahead, min(vocabulary - 1, MOST_DRAWN), rng)
        return TreeShape(vocabulary, tree, other)
    most = DRAWN_CELLS // Shape(vocabulary, lookahead, 1).cells
    return Shape(vocabulary, lookahead, max(1, min(other, most)))


def drawn_tree(depth: int, most: int, rng: np.random.Generator) -> Branching:
    """A tree of a depth, with up to so many siblings at a level, and few nodes."""
    while True:
        tree = tuple(
            int(rng.integers(1, most + 1)) if rng.random() < MANY else 1 for _ in range(depth)
        )
        if TreeShape(2, tree, 1).nodes <= DRAWN_NODES:
            return tree


def every(kind: Callable[..., S], *sizes: Iterable[Any], **more: bool) -> tuple[S, ...]:
    """The shapes of every combination of sizes.

    Examples
    --------
    >>> shapes([8], [1, 2], [4])
    (Shape(vocabulary=8, lookahead=1, batch=4), Shape(vocabulary=8, lookahead=2, batch=4))
    >>> [str(one) for one in call_shapes([8], [3], [1, 20], text=True)]
    ['V 8, prompt 3, budget 1', 'V 8, prompt 3, budget 20']
    >>> [str(one) for one in tree_shapes([8], [(4, 2)], [1])]
    ['V 8, siblings 4, depth 2, nodes 12, batch 1']
    """
    return tuple(kind(*one, **more) for one in itertools.product(*sizes))


shapes: Callable[..., tuple[Shape, ...]] = partial(every, Shape)
call_shapes: Callable[..., tuple[CallShape, ...]] = partial(every, CallShape)
tree_shapes: Callable[..., tuple[TreeShape, ...]] = partial(every, TreeShape)


class Box(NamedTuple):
    """Sizes of which shapes are drawn: one for each lookahead, with other sizes at random.

    Half of these are drawn from those that are given, half from all between the least and the
    largest, small ones more often.

    * `others`: Of the batch, or of the context.
    """

    vocabularies: tuple[int, ...]
    lookaheads: tuple[int, ...]
    others: tuple[int, ...]

    def drawn(self, rng: np.random.Generator) -> list[Sizes]:
        """A size of the vocabulary, a lookahead, and another size; for each lookahead."""
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


def parts(shape: Sized) -> Mapping[str, int | str]:
    """What a shape is made of: of two shapes that differ, one of them does."""
    if not isinstance(shape, TreeShape):
        return shape.sizes
    tree = "×".join(map(str, shape.branching))
    return {"V": shape.vocabulary, "siblings by level": tree, "batch": shape.batch}


def tried(given: Iterable[Sized]) -> str:
    """The values of each part, if every combination was tried; else every shape by itself.

    Examples
    --------
    >>> tried(shapes([5, 1_000], [1], [4, 2]))
    'V 5, 1,000; lookahead 1; batch 2, 4'
    >>> tried([Shape(5, 1, 4), Shape(1_000, 2, 4)])
    'V/lookahead/batch 5/1/4, 1,000/2/4'
    """

    def said(value: int | str) -> str:
        return f"{value:,}" if isinstance(value, int) else value

    several = dict.fromkeys((tuple(one), tuple(one.values())) for one in map(parts, given))
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
