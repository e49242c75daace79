"""Where each drafter token leads from a node of the prefix tree of the target's tokens.

A drafted text is somewhere in the tree until it leaves it, comes to a leaf, or ends: then the
longest target token that starts it is settled. In the order of their bytes the drafter's tokens
fall into pieces that lead to the same: all that go on from where a text leaves the tree are
neighbours. Only the part that both prefix trees share has to be walked to find them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from specref.torch_backend.shaping import moved
from specref.torch_backend.vocabularies.token_vocabulary import ByteTrie, TokenVocabulary

MOST_KEPT = 1 << 23
"""How many pieces and tokens are kept for later calls; 16 bytes each."""


class Pieces(NamedTuple):
    """What the drafter's tokens make of n texts, in the order of the texts and of `order`.

    * `of`, `lengths`, `codes`, shape (S,): Of each piece: its text, how many tokens it has, and
      what they make of it: see `Settling`.
    * `open_of`, `tokens`, `places`, shape (O,): Of each token after which a text is still within
      the tree: the text, the drafter's token, and the inner node.
    """

    of: Tensor
    lengths: Tensor
    codes: Tensor
    open_of: Tensor
    tokens: Tensor
    places: Tensor


class Settling:
    """From a node of the target's prefix tree and a drafter token to a node, or to a token.

    A token is what `spelled` says, whether or not the tokeniser normalises; a special token of the
    drafter ends the text, and its EOS where no text is yet becomes that of the target. Pieces are
    found on the CPU, which waits for no other device, and then sent to `device`.

    * `end`: Codes below it are inner nodes; `end` is a text that no token starts, and `end` + 1 +
      t one that token t starts, whatever follows.
    * `order`, shape (V,): The drafter's tokens by their bytes; special ones last, EOS the very
      last.

    >>> target = TokenVocabulary(("a", "ab", "</s>"), (b"a", b"ab", None), {"eos": 2}, None)
    >>> drafter = TokenVocabulary(("a", "ba", "<e>"), (b"a", b"ba", None), {"eos": 2}, None)
    >>> settling = Settling(target, drafter)
    >>> pieces = settling.pieces([0, 1])
    >>> settling.end, settling.order.tolist(), pieces.codes.tolist(), pieces.lengths.tolist()
    (3, [0, 1, 2], [1, 3, 6, 4, 5, 4], [1, 1, 1, 1, 1, 1])
    >>> settling.codes(pieces, torch.tensor([2, 1])).tolist()  # EOS; "a", and then "ba"
    [6, 5]
    """

    def __init__(
        self,
        target: TokenVocabulary,
        drafter: TokenVocabulary,
        device: torch.device | str = "cpu",
    ) -> None:
        self.trie, self.end, self.device = target.trie, len(target.trie.prefixes), device
        self.eos = self.end + 1 + (-1 if target.eos is None else target.eos)
        self._tour(len(target))
        self._read(drafter)
        self._keys = self.trie.parents * 256 + self.trie.symbols
        self._kept: dict[int, tuple[Tensor, ...]] = {}
        self._size = 0

    def pieces(self, nodes: Sequence[int]) -> Pieces:
        """What the drafter's tokens make of texts at some inner nodes; kept for the next call."""
        known = list(map(int, nodes))
        if self._size > MOST_KEPT:
            self._kept.clear()
            self._size = 0
        for node in set(known) - self._kept.keys():
            found = self._found(node)
            self._kept[node] = tuple(moved(one, self.device) for one in found)
            self._size += len(found[0]) + len(found[2])
        lengths, codes, tokens, places = zip(*(self._kept[node] for node in known), strict=True)
        return Pieces(
            self._numbered(lengths),
            torch.cat(lengths),
            torch.cat(codes),
            self._numbered(tokens),
            torch.cat(tokens),
            torch.cat(places),
        )

    def codes(self, pieces: Pieces, tokens: Tensor) -> Tensor:
        """What one drafter token for each text makes of it."""
        numbers = torch.arange(len(tokens), device=tokens.device)
        places = numbers * len(self.order) + self._ranks[tokens]
        return pieces.codes[torch.searchsorted(pieces.lengths.cumsum(0), places, right=True)]

    def reachable(self, nodes: Tensor, tokens: Tensor) -> Tensor:
        """Whether a text at a node may go on to be settled as a token, elementwise."""
        place = self._place[tokens]
        below = (self._first[nodes] < place) & (place <= self._last[nodes])
        return below | (self._owners[nodes] == tokens)

    def _numbered(self, parts: Sequence[Tensor]) -> Tensor:
        """Of each element of some parts, the number of its part."""
        sizes = torch.tensor(list(map(len, parts)))
        return moved(torch.arange(len(parts)).repeat_interleave(sizes), self.device)

    def _tour(self, size: int) -> None:
        """Number the nodes in the order of their bytes: what is below a node follows it."""
        trie = self.trie
        first, below = _ranges(trie, torch.ones(self.end, dtype=torch.int64))
        place = torch.full((size,), -1)
        nodes = [trie.nodes[piece] for piece in trie.tokens]
        place[list(trie.tokens.values())] = first[nodes]
        tensors = first, first + below - 1, place, trie.owners
        self._first, self._last, self._place, self._owners = (
            moved(one, self.device) for one in tensors
        )

    def _read(self, drafter: TokenVocabulary) -> None:
        """Put the drafter's tokens in order, and count how many are at and below each prefix."""
        tree, eos = drafter.trie, drafter.eos
        spelled = {t: piece for t, piece in enumerate(drafter.spelled) if piece and t != eos}
        nodes = torch.tensor([tree.nodes[piece] for piece in spelled.values()])
        self._own = torch.bincount(nodes, minlength=len(tree.prefixes))
        self._start, self._below = _ranges(tree, self._own)
        special = [t for t in range(len(drafter)) if t not in spelled and t != eos]
        self._special, self._eos = len(special), int(eos is not None)
        special += [] if eos is None else [eos]
        ordered = torch.tensor(list(spelled))[self._start[nodes].argsort(stable=True)]
        self._order = torch.cat([ordered, torch.tensor(special, dtype=torch.int64)])
        self.order = moved(self._order, self.device)
        self._ranks = moved(self._order.argsort(), self.device)
        self._symbols = torch.cat([torch.zeros(1, dtype=torch.int64), tree.symbols])
        self._children = torch.bincount(tree.parents, minlength=len(tree.prefixes))
        self._eldest = self._children.cumsum(0) - self._children + 1

    def _found(self, node: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The lengths and codes of pieces, and the tokens and places of those that are open."""
        starts, lengths, codes = self._walk(node)
        order = starts.argsort()
        starts, lengths, codes = starts[order], lengths[order], codes[order]
        within = codes < self.end
        tokens = self._order[_counted(starts[within], lengths[within])]
        places = codes[within].repeat_interleave(lengths[within])
        ends = self.end + 1 + int(self.trie.owners[node])
        special = [(self._special, ends), (self._eos, ends if node else self.eos)]
        last = torch.tensor([one for one in special if one[0]], dtype=torch.int64).view(-1, 2)
        lengths, codes = torch.cat([lengths, last[:, 0]]), torch.cat([codes, last[:, 1]])
        return lengths, codes, tokens, places

    def _walk(self, node: int) -> tuple[Tensor, Tensor, Tensor]:
        """The starts, lengths and codes of pieces of text tokens, in any order.

        From prefixes that lead from the node to inner nodes, to their children in the drafter's
        tree: one that leads to an inner node too has a piece of the tokens that are that prefix,
        any other one of all that start with it.
        """
        nodes, prefixes = torch.tensor([node]), torch.tensor([0])
        found = []
        while len(nodes):
            counts = self._children[prefixes]
            below = _counted(self._eldest[prefixes], counts)
            codes = self._steps(nodes.repeat_interleave(counts), self._symbols[below])
            within = codes < self.end
            lengths = torch.where(within, self._own[below], self._below[below])
            some = lengths > 0
            found.append((self._start[below][some], lengths[some], codes[some]))
            nodes, prefixes = codes[within], below[within]
        starts, lengths, codes = map(torch.cat, zip(*found, strict=True))
        return starts, lengths, codes

    def _steps(self, nodes: Tensor, symbols: Tensor) -> Tensor:
        """The codes after one more byte at inner nodes."""
        keys = nodes * 256 + symbols
        edges = torch.searchsorted(self._keys, keys).clamp(max=len(self._keys) - 1)
        inside = self._keys[edges] == keys
        reached = torch.where(inside, edges + 1, nodes)
        inner = inside & self.trie.inner[reached]
        return torch.where(inner, reached, self.end + 1 + self.trie.owners[reached])


def _ranges(tree: ByteTrie, own: Tensor) -> tuple[Tensor, Tensor]:
    """Of each prefix, where what it owns starts in the order of bytes, and how much is below it.

    `own` counts what belongs to each prefix itself, which is what comes first.
    """
    below, first = own.clone(), torch.zeros_like(own)
    for level in reversed(tree.levels[1:]):
        edges = slice(level.start - 1, level.stop - 1)
        below.index_add_(0, tree.parents[edges], below[level].clone())
    for level in tree.levels[1:]:
        parents = tree.parents[level.start - 1 : level.stop - 1]
        before = below[level].cumsum(0) - below[level]
        eldest = torch.searchsorted(parents, parents)  # siblings are neighbours
        first[level] = first[parents] + own[parents] + before - before[eldest]
    return first, below


def _counted(starts: Tensor, counts: Tensor) -> Tensor:
    """Of each start so many consecutive numbers."""
    before = counts.cumsum(0) - counts
    return torch.arange(int(counts.sum())) + (starts - before).repeat_interleave(counts)
