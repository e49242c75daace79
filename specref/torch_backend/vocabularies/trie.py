"""The prefix tree of a vocabulary's byte strings, for longest match and for the law of it."""

from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor


class ByteTrie:
    """Every prefix of every token, the root first, then by length and then by bytes.

    Parameters
    ----------
    tokens : mapping from bytes to int
        The token that each byte string is; none is empty.
    device : torch.device or str
        Where the tensors are.

    Attributes
    ----------
    prefixes : tuple of bytes
        What each node spells.
    owners : Tensor of int64, shape (N,)
        The longest token that starts what the node spells, -1 for none: T(text)_1 of a text
        that leaves the tree at this node.
    parents, symbols : Tensor of int64, shape (N - 1,)
        Of each node but the root: the node above it, and the byte that leads from there.
    places : dict from bytes to int
        What the nodes that have children spell, the root first, and their places in `inner`.
    inner : Tensor of int64, shape (R,)
        These nodes.
    rows : Tensor of int64, shape (N,)
        The place of a node in `inner`, -1 for a leaf.

    Raises
    ------
    ValueError
        There are no tokens, or one is empty.

    Examples
    --------
    >>> trie = ByteTrie({b"a": 0, b"ab": 1, b"abba": 2})
    >>> trie.prefixes, trie.owners.tolist()
    ((b'', b'a', b'ab', b'abb', b'abba'), [-1, 0, 1, 1, 2])
    >>> trie.parents.tolist(), trie.inner.tolist(), trie.rows.tolist()
    ([0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3, -1])
    """

    def __init__(self, tokens: Mapping[bytes, int], device: torch.device | str = "cpu") -> None:
        if not tokens or b"" in tokens:
            raise ValueError("tokens: expected at least one, and none that is empty")
        prefixes = {token[:end] for token in tokens for end in range(len(token) + 1)} | {b""}
        self.tokens, self.device = dict(tokens), device
        self.prefixes = tuple(sorted(prefixes, key=lambda prefix: (len(prefix), prefix)))
        self.nodes = {prefix: node for node, prefix in enumerate(self.prefixes)}

    @cached_property
    def depth(self) -> int:
        """The length of the longest token."""
        return len(self.prefixes[-1])

    @cached_property
    def parents(self) -> Tensor:
        return self._tensor([self.nodes[prefix[:-1]] for prefix in self.prefixes[1:]])

    @cached_property
    def symbols(self) -> Tensor:
        return self._tensor([prefix[-1] for prefix in self.prefixes[1:]])

    @cached_property
    def owners(self) -> Tensor:
        owners = [-1]
        for prefix in self.prefixes[1:]:
            owners.append(self.tokens.get(prefix, owners[self.nodes[prefix[:-1]]]))
        return self._tensor(owners)

    @cached_property
    def places(self) -> dict[bytes, int]:
        inner = sorted({self.nodes[prefix[:-1]] for prefix in self.prefixes[1:]})
        return {self.prefixes[node]: place for place, node in enumerate(inner)}

    @cached_property
    def inner(self) -> Tensor:
        return self._tensor([self.nodes[prefix] for prefix in self.places])

    @cached_property
    def rows(self) -> Tensor:
        return self._tensor([self.places.get(prefix, -1) for prefix in self.prefixes])

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """The nodes of each length, 0 to `depth`."""
        counts = [0] * (self.depth + 1)
        for prefix in self.prefixes:
            counts[len(prefix)] += 1
        ends = torch.tensor(counts).cumsum(0).tolist()
        return tuple(slice(e - count, e) for e, count in zip(ends, counts, strict=True))

    def _tensor(self, numbers: list[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=self.device)

    def longest(self, data: bytes, start: int = 0) -> bytes | None:
        """The longest token that `data` has at `start`, or None.

        Examples
        --------
        >>> ByteTrie({b"a": 0, b"aab": 1}).longest(b"aaab")
        b'a'
        """
        found, end = None, start
        while end < len(data) and data[start : end + 1] in self.nodes:
            end += 1
            if data[start:end] in self.tokens:
                found = data[start:end]
        return found

    def greedy(self, data: bytes) -> list[int] | None:
        """Tokens by longest match from the left, or None where no token matches.

        Examples
        --------
        >>> trie = ByteTrie({b"a": 0, b"ab": 1})
        >>> trie.greedy(b"aab"), trie.greedy(b"abb")
        ([0, 1], None)
        """
        ids, start = [], 0
        while start < len(data):
            token = self.longest(data, start)
            if token is None:
                return None
            ids.append(self.tokens[token])
            start += len(token)
        return ids
