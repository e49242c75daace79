"""Where each drafter token leads from a node of the prefix tree of the target's tokens.

A drafted text is somewhere in the tree until it leaves it, comes to a leaf, or ends: then the
longest target token that starts it is settled. Both are looked up here for all of the drafter's
tokens at once, at a node of the tree.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from specref.torch_backend.sending import sent
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary
from specref.torch_backend.vocabularies.trie import ByteTrie

MOST_CODES, PART = 1 << 27, 64


class Settling:
    """From a node of the target's prefix tree and a drafter token to a node, or to a token.

    Parameters
    ----------
    trie : ByteTrie
        Of the target's vocabulary.
    target, drafter : TokenVocabulary
        A token is what `spelled` says, whether or not the tokeniser normalises; a special token
        of the drafter ends the text, and its EOS where no text is yet becomes that of the target.

    Attributes
    ----------
    end : int
        Codes below it are inner nodes; `end` is a text that no token starts, and `end` + 1 + t
        one that token t starts, whatever follows.

    Examples
    --------
    >>> target = TokenVocabulary(("a", "ab", "</s>"), (b"a", b"ab", None), {"eos": 2}, None)
    >>> drafter = TokenVocabulary(("a", "ba", "<e>"), (b"a", b"ba", None), {"eos": 2}, None)
    >>> settling = Settling(ByteTrie(target.by_bytes), target, drafter)
    >>> settling.end, settling.codes([0, 1]).tolist()
    (3, [[1, 3, 6], [4, 5, 4]])
    """

    def __init__(self, trie: ByteTrie, target: TokenVocabulary, drafter: TokenVocabulary) -> None:
        self.trie, self.end = trie, len(trie.prefixes)
        self.eos = self.end + 1 + (-1 if target.eos is None else target.eos)
        self._tour(len(target))
        self._read(drafter)
        self._keys = trie.parents * 256 + trie.symbols
        self._rows: dict[int, int] = {}
        self._codes = torch.empty(0, len(drafter), dtype=torch.int32, device=trie.device)

    def codes(self, nodes: Sequence[int]) -> Tensor:
        """The code of every drafter token at some inner nodes, shape (n, V); kept for the next.

        Memory is 4 bytes for each node asked for and drafter token, up to half a gigabyte.
        """
        if self._codes.numel() > MOST_CODES:
            self._codes = self._codes[:0]
            self._rows.clear()
        known = list(map(int, nodes))
        if new := sorted(set(known) - self._rows.keys()):
            self._learn(new)
        return self._codes[sent([self._rows[node] for node in known], self.trie.device)]

    def reachable(self, nodes: Tensor, tokens: Tensor) -> Tensor:
        """Whether a text at a node may go on to be settled as a token, elementwise."""
        place = self._place[tokens]
        below = (self._first[nodes] < place) & (place <= self._last[nodes])
        return below | (self.trie.owners[nodes] == tokens)

    def _tour(self, size: int) -> None:
        """Number the nodes in the order of their bytes: what is below a node follows it."""
        trie, device = self.trie, self.trie.device
        order = sorted(range(self.end), key=trie.prefixes.__getitem__)
        self._first = torch.empty(self.end, dtype=torch.int64, device=device)
        self._first[order] = torch.arange(self.end, device=device)
        below = torch.ones_like(self._first)
        for level in reversed(trie.levels[1:]):
            edges = slice(level.start - 1, level.stop - 1)
            below.index_add_(0, trie.parents[edges], below[level].clone())
        self._last = self._first + below - 1
        self._place = torch.full((size,), -1, device=device)
        nodes = [trie.nodes[piece] for piece in trie.tokens]
        self._place[list(trie.tokens.values())] = self._first[nodes]

    def _read(self, drafter: TokenVocabulary) -> None:
        """The drafter's own prefix tree, and where each token passes through its levels."""
        tree, device = drafter.trie, self.trie.device
        nodes = [tree.nodes[piece] if piece is not None else 0 for piece in drafter.spelled]
        parents = torch.cat([torch.zeros(1, dtype=torch.int64), tree.parents])
        passed = [torch.tensor(nodes)]
        for level in reversed(tree.levels[1:]):
            passed.append(torch.where(passed[-1] >= level.start, parents[passed[-1]], passed[-1]))
        self._passed = [nodes.to(device) for nodes in reversed(passed)]
        self._edges = [
            (tree.parents[part].to(device), tree.symbols[part].to(device))
            for part in (slice(level.start - 1, level.stop - 1) for level in tree.levels[1:])
        ]
        special = [index for index, piece in enumerate(drafter.spelled) if piece is None]
        self._special, self._eos = torch.tensor(special, device=device).long(), drafter.eos

    def _learn(self, new: list[int]) -> None:
        nodes = sent(new, self.trie.device)
        codes = torch.cat([self._walk(part) for part in torch.split(nodes, PART)])
        codes[:, self._special] = self.end + 1 + self.trie.owners[nodes][:, None]
        if self._eos is not None:
            codes[nodes == 0, self._eos] = self.eos
        self._rows |= {node: row for row, node in enumerate(new, len(self._rows))}
        self._codes = torch.cat([self._codes, codes.to(torch.int32)])

    def _walk(self, start: Tensor) -> Tensor:
        """The codes of the drafter's tokens after `start`, byte by byte while any goes on."""
        codes, last, level = start[:, None], 0, 0
        for parents, symbols in self._edges:
            if not bool((codes[:, last:] < self.end).any()):
                break
            known, last = codes, codes.shape[1]
            codes = torch.cat([known, self._steps(known[:, parents], symbols)], 1)
            level += 1
        return codes[:, self._passed[level]]

    def _steps(self, codes: Tensor, symbols: Tensor) -> Tensor:
        """The codes after one more byte."""
        nodes = codes.clamp(max=self.end - 1)
        keys = nodes * 256 + symbols
        edges = torch.searchsorted(self._keys, keys).clamp(max=len(self._keys) - 1)
        inside = self._keys[edges] == keys
        reached = torch.where(inside, edges + 1, nodes)
        inner = inside & (self.trie.rows[reached] >= 0)
        settled = self.end + 1 + self.trie.owners[reached]
        return torch.where(codes >= self.end, codes, torch.where(inner, reached, settled))
