"""A growing tree of continuations of one text, and where a key-value cache holds its nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Tree:
    """Nodes are numbered in the order in which they were added; 0 is the end of the context.

    Attributes
    ----------
    context, tokens : list of int
        Of the text, and of the nodes from 1 on.
    parents, depths : list of int
        Of the nodes from 0 on.
    paths : list of tuple of int
        The slots of a node and of those above it, of the nodes that have a place.

    Examples
    --------
    >>> tree = Tree([7, 8])
    >>> tree.add([0, 0, 1], [4, 5, 6])
    >>> tree.place(3, 10), tree.positions(3)
    ([(7,), (8,), (7, 9)], [2, 2, 3])
    """

    context: list[int]
    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=lambda: [-1])
    depths: list[int] = field(default_factory=lambda: [0])
    paths: list[tuple[int, ...]] = field(default_factory=lambda: [()])

    def add(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Add nodes, without a place in the cache."""
        self.depths += self._depths_below(parents)
        self.parents += parents
        self.tokens += tokens

    def check(self, row: int, parents: Sequence[int], most: int) -> None:
        """Raise `ValueError` if one is no node, or would have a child past `most` tokens."""
        last, room = len(self.tokens), most - len(self.context)
        for index, parent in enumerate(parents):
            if not 0 <= parent <= last + index:
                raise ValueError(
                    f"parents[{row}][{index}] = {parent}: expected a node, 0 to {last + index}"
                )
        for index, depth in enumerate(self._depths_below(parents)):
            if depth > room:
                raise ValueError(
                    f"parents[{row}][{index}] = {parents[index]}: its child would be token "
                    f"{len(self.context) + depth} of a text: expected at most {most}"
                )

    def place(self, count: int, end: int) -> list[tuple[int, ...]]:
        """Put the last nodes into the slots before `end`; their paths."""
        first = len(self.parents) - count
        del self.paths[first:]
        for slot, parent in enumerate(self.parents[first:], end - count):
            self.paths.append((*self.paths[parent], slot))
        return self.paths[first:]

    def positions(self, count: int) -> list[int]:
        """Where the last nodes stand in their texts."""
        return [len(self.context) + depth - 1 for depth in self.depths[len(self.depths) - count :]]

    def texts(self, count: int) -> list[list[int]]:
        """The texts of the last nodes: the context and the path to each.

        Examples
        --------
        >>> tree = Tree([7, 8])
        >>> tree.add([0, 1], [4, 5])
        >>> tree.texts(1)
        [[7, 8, 4, 5]]
        """
        texts = [list(self.context)]
        for parent, token in zip(self.parents[1:], self.tokens, strict=True):
            texts.append([*texts[parent], token])
        return texts[len(texts) - count :]

    def _depths_below(self, parents: Sequence[int]) -> list[int]:
        depths = list(self.depths)
        for parent in parents:
            depths.append(depths[parent] + 1)
        return depths[len(self.depths) :]
