"""What a byte-level drafter says next at every inner node of a prefix tree."""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from specref.torch_backend.cached import CachedModel, common_prefix
from specref.torch_backend.drafts import Shape
from specref.torch_backend.trie import ByteTrie
from specref.torch_backend.vocabularies import TokenVocabulary

END, OTHER = 256, 257
SYMBOLS = 258


class Chunk(NamedTuple):
    """Some paths of a tree, and where in their logits the nodes are that they are read for.

    Attributes
    ----------
    ids : Tensor of int64, shape (n, length)
        The drafter's tokens; what follows the end of a path is not used.
    rows, paths, positions : Tensor of int64, shape (m,)
        The place of a node among the inner ones, and of its logits.
    """

    ids: Tensor
    rows: Tensor
    paths: Tensor
    positions: Tensor


class ByteLaws:
    """The laws of a drafter's next byte after a context and every inner node of a tree.

    Parameters
    ----------
    model : CachedModel
        Its model is read with a cache for each row that is kept here, if it uses a cache.
        `forwards` counts these calls too.
    drafter : TokenVocabulary
    trie : ByteTrie
    shape : callable
        From logits to probabilities.
    paths_per_forward : int

    Raises
    ------
    ValueError
        A token of the drafter spells other than one byte, or `paths_per_forward` < 1.
    """

    def __init__(
        self,
        model: CachedModel,
        drafter: TokenVocabulary,
        trie: ByteTrie,
        shape: Shape,
        paths_per_forward: int,
    ) -> None:
        if paths_per_forward < 1:
            raise ValueError(f"paths_per_forward = {paths_per_forward}: expected at least 1")
        self.model, self.drafter, self.trie, self.shape = model, drafter, trie, shape
        self.symbols = torch.tensor(symbols(drafter), device=model.device)
        self._chunks = [
            self._chunk(paths) for paths in _split(longest_paths(trie), paths_per_forward)
        ]
        self._caches: dict[int, tuple[list[int], Any]] = {}

    @torch.inference_mode()
    def __call__(self, row: int, context: list[int]) -> Tensor:
        """The law of the next byte, END or OTHER at each inner node, shape (R, 258).

        Parameters
        ----------
        row : int
            The row of the batch: a context that goes on from its last is not read again.
        context : list of int
            The drafter's tokens, at least one.
        """
        last, cache = self._read(row, context)
        self.drafter.check_logits(last)
        logits = last.new_empty(len(self.trie.inner), len(self.drafter), dtype=torch.float64)
        logits[0] = last
        for chunk in self._chunks:
            after = self._after(context, cache, chunk.ids)
            logits[chunk.rows] = after[chunk.paths, chunk.positions].double()
        laws = self.shape(logits)
        return laws.new_zeros(len(laws), SYMBOLS).index_add_(1, self.symbols, laws)

    def _read(self, row: int, context: list[int]) -> tuple[Tensor, Any]:
        """The logits after a context, and its keys and values."""
        from transformers import DynamicCache

        if not self.model.use_cache:
            return self._forward([context], None)[0, -1], None
        held, cache = self._caches.pop(row, ([], DynamicCache()))
        keep = min(common_prefix(held, context), len(context) - 1)
        if keep < len(held):
            cache.crop(keep - len(held))
        logits = self._forward([context[keep:]], cache)
        self._caches[row] = (list(context), cache)
        return logits[0, -1], cache

    def _after(self, context: list[int], cache: Any, ids: Tensor) -> Tensor:
        """The logits after each token of several paths, shape (n, length, V)."""
        if cache is None:
            before = torch.tensor(context, device=ids.device).expand(len(ids), -1)
            return self._forward(torch.cat([before, ids], 1), None)[:, -ids.shape[1] :]
        copies = copy.deepcopy(cache)
        copies.batch_repeat_interleave(len(ids))
        return self._forward(ids, copies)

    def _forward(self, ids: Tensor | list[list[int]], cache: Any) -> Tensor:
        ids = torch.as_tensor(ids, device=self.model.device)
        self.model.forwards += 1
        output = self.model.model(
            input_ids=ids, past_key_values=cache, use_cache=cache is not None
        )
        logits: Tensor = output.logits
        return logits

    def _chunk(self, paths: Sequence[bytes]) -> Chunk:
        length = max(map(len, paths))
        ids = [[self.drafter.by_bytes.get(bytes([byte]), 0) for byte in path] for path in paths]
        padded = [row + [0] * (length - len(row)) for row in ids]
        found: dict[bytes, tuple[int, int]] = {}
        for number, path in enumerate(paths):
            for end in range(1, len(path) + 1):
                found[path[:end]] = (number, end - 1)
        rows = self.trie.rows[[self.trie.nodes[prefix] for prefix in found]]
        where = torch.tensor(list(found.values()), device=rows.device)
        return Chunk(torch.tensor(padded, device=rows.device), rows, where[:, 0], where[:, 1])


def longest_paths(trie: ByteTrie) -> list[bytes]:
    """The inner nodes without an inner node below; every other is on the way to one.

    Examples
    --------
    >>> longest_paths(ByteTrie({b"a": 0, b"abc": 1, b"axy": 2}))
    [b'ab', b'ax']
    """
    inner = [trie.prefixes[node] for node in trie.inner.tolist()]
    above = {prefix[:-1] for prefix in inner if prefix}
    return [prefix for prefix in inner if prefix and prefix not in above]


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
                "SLRS needs a drafter whose tokens are single bytes; use slem"
            )
    codes = [OTHER if piece is None else piece[0] for piece in drafter.spelled]
    if drafter.eos is not None:
        codes[drafter.eos] = END
    return codes


def _split(paths: list[bytes], most: int) -> list[list[bytes]]:
    return [paths[start : start + most] for start in range(0, len(paths), most)]
