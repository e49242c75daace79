"""The laws of a byte-level drafter's next byte at every inner node of a prefix tree."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Shape
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary
from specref.torch_backend.vocabularies.trie import ByteTrie

END, OTHER = 256, 257
SYMBOLS = 258


class Part(NamedTuple):
    """Inner nodes that are read in one forward, the first of them below the end of the context.

    Attributes
    ----------
    parents, tokens : list of int
        As for `TreeModel.grow`.
    rows : Tensor of int64, shape (n,)
        The place of each node among the inner ones.
    """

    parents: list[int]
    tokens: list[int]
    rows: Tensor


class ByteLaws:
    """The laws of a drafter's next byte after contexts and every inner node of a tree.

    Parameters
    ----------
    model : TreeModel
    drafter : TokenVocabulary
    trie : ByteTrie
    shape : callable
        From logits to probabilities.
    nodes_per_forward : int
        How many inner nodes are read in one forward, for every row; and the nodes above the
        first of them, if they were read before. A forward attends to no other nodes.

    Raises
    ------
    ValueError
        A token of the drafter spells other than one byte, or `nodes_per_forward` < 1.
    """

    def __init__(
        self,
        model: TreeModel,
        drafter: TokenVocabulary,
        trie: ByteTrie,
        shape: Shape,
        nodes_per_forward: int,
    ) -> None:
        if nodes_per_forward < 1:
            raise ValueError(f"nodes_per_forward = {nodes_per_forward}: expected at least 1")
        self.model, self.drafter, self.trie, self.shape = model, drafter, trie, shape
        self.symbols = torch.tensor(symbols(drafter), device=model.device)
        spelled = {piece[0] for piece in drafter.by_bytes}
        readable = [prefix for prefix in trie.places if prefix and spelled.issuperset(prefix)]
        self._parts: list[Part] = []
        for prefixes in subtrees(readable, nodes_per_forward):
            numbers = {prefix: number for number, prefix in enumerate([b"", *prefixes])}
            parents = [numbers[prefix[:-1]] for prefix in prefixes]
            tokens = [drafter.by_bytes[prefix[-1:]] for prefix in prefixes]
            rows = trie.rows[[trie.nodes[prefix] for prefix in prefixes]]
            self._parts.append(Part(parents, tokens, rows))

    @torch.inference_mode()
    def __call__(self, contexts: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each row, the law of the next byte, END or OTHER at each inner node, shape (R, 258).

        At nodes with bytes that the drafter cannot write it is some law or other.

        Parameters
        ----------
        contexts : sequence of sequence of int
            The drafter's tokens, at least one. What a row shares with the row of the same
            number in the last call is not read again.
        """
        last = self.model.begin(contexts)
        self.drafter.check_logits(last)
        logits = last.new_zeros(len(last), len(self.trie.inner), last.shape[1])
        logits[:, 0] = last
        for part in self._parts:
            self.model.forget()
            below = self.model.grow([part.parents] * len(last), [part.tokens] * len(last))
            logits[:, part.rows] = torch.stack(below)
        laws = (self.shape(row.double()) for row in logits)
        return [law.new_zeros(len(law), SYMBOLS).index_add_(1, self.symbols, law) for law in laws]

    def select(self, rows: Sequence[int]) -> None:
        """Drop all rows of the last call but these, which are numbered anew."""
        self.model.select(rows)


def subtrees(prefixes: Iterable[bytes], most: int) -> list[list[bytes]]:
    """Split the nodes below the root into parts of `most` nodes, each with the path above it.

    Examples
    --------
    >>> subtrees([b"a", b"ab", b"ac", b"aca", b"b"], 2)
    [[b'a', b'ab'], [b'a', b'ac', b'aca'], [b'b']]
    """
    order = sorted(prefixes)
    parts = [order[start : start + most] for start in range(0, len(order), most)]
    return [[part[0][:end] for end in range(1, len(part[0]))] + part for part in parts]


def symbols(drafter: TokenVocabulary) -> list[int]:
    """The byte that each token of a byte-level vocabulary is, END or OTHER.

    Examples
    --------
    >>> symbols(TokenVocabulary(("a", "<e>", "<pad>"), (b"a", None, None), {"eos": 1}, None))
    [97, 256, 257]
    """
    for index, piece in enumerate(drafter.spelled):
        if piece is not None and len(piece) != 1:
            raise ValueError(
                f"drafter token {index} ({drafter.strings[index]!r}) spells {len(piece)} bytes: "
                "psi in full needs a drafter whose tokens are single bytes; use lazy-slrs"
            )
    codes = [OTHER if piece is None else piece[0] for piece in drafter.spelled]
    if drafter.eos is not None:
        codes[drafter.eos] = END
    return codes
