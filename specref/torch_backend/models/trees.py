"""Growing trees of continuations, and a causal language model that reads them.

It reads many nodes at once, by tree attention.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from specref.torch_backend.models.cached import common_prefix
from specref.torch_backend.models.configs import check_cache
from specref.torch_backend.models.slotted import SlottedModel
from specref.torch_backend.shaping import moved

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass
class Tree:
    """Nodes are numbered in the order in which they were added; 0 is the end of the context.

    `tokens` are those of the nodes from 1 on, and `paths` the slots of a node and of those above
    it, of the nodes that have a place.

    >>> tree = Tree([7, 8])
    >>> tree.add([0, 0, 1], [4, 5, 6])
    >>> tree.place(3, 10), tree.positions(3)
    ([(7,), (8,), (7, 9)], [2, 2, 3])
    >>> tree.texts(1)
    [[7, 8, 4, 6]]
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
        """The texts of the last nodes: the context and the path to each."""
        texts = [list(self.context)]
        for parent, token in zip(self.parents[1:], self.tokens, strict=True):
            texts.append([*texts[parent], token])
        return texts[len(texts) - count :]

    def _depths_below(self, parents: Sequence[int]) -> list[int]:
        depths = list(self.depths)
        for parent in parents:
            depths.append(depths[parent] + 1)
        return depths[len(self.depths) :]


class TreeModel(SlottedModel):
    """Logits of a causal LM after the nodes of growing trees of continuations.

    Every row of a batch has a context and a tree of tokens after it. A node attends to the
    context, the nodes above it and itself, and stands where it would in a text of its own
    (tree attention: Miao et al. 2024, SpecInfer, section 4.2); many nodes are read at once.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A causal language model; its layers may have sliding windows. With a cache its attention
        is "sdpa" or "eager", which take a mask of four dimensions. It is not changed.
    use_cache : bool
        If False every path is read whole, as a text of its own: the reference for the cache,
        and the way to read a model whose cache cannot be cropped.

    Attributes
    ----------
    forwards, reads : int
        How often the model was called, and how many tokens it read; padding is not counted.
    positions : int
        The longest text, context and path, that the model can read.
    device : torch.device
        Where the model is.

    Raises
    ------
    ValueError
        The model's cache cannot be cropped, or its attention takes no mask, and `use_cache` is
        True.

    Examples
    --------
    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> config = LlamaConfig(
    ...     vocab_size=5, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, max_position_embeddings=16,
    ... )
    >>> model = TreeModel(LlamaForCausalLM(config).eval())
    >>> model.begin([[1, 2, 3], [4]]).shape
    torch.Size([2, 5])
    >>> below, none = model.grow([[0, 0, 1], []], [[1, 2, 1], []])  # row 0: [1], [2], [1, 1]
    >>> below.shape, none.shape
    (torch.Size([3, 5]), torch.Size([0, 5]))
    >>> _, below = model.grow([[], [0]], [[], [3]])
    >>> model.forwards, model.reads
    (3, 8)
    """  # fmt: skip

    def __init__(self, model: "PreTrainedModel", use_cache: bool = True) -> None:
        if use_cache:
            check_cache("model", model, trees=True)
        super().__init__(model, use_cache)
        self.reads, self._trees = 0, list[Tree]()

    @torch.inference_mode()
    def begin(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Forget all trees; the logits after new contexts.

        Parameters
        ----------
        rows : sequence of sequence of int
            Token ids. What a row shares with the context of the same number before, from the
            start on, is not read again, but for its last token.

        Returns
        -------
        Tensor, shape [B, V]
            float64 from a float64 model, otherwise float32.

        Raises
        ------
        ValueError
            A row is empty, or longer than the model's positions, or has what is no token id.
        """
        contexts = [list(row) for row in rows]
        self.check_rows(contexts)
        if len(self._trees) != len(contexts):
            self.clear(len(contexts))
            self._trees = [Tree([]) for _ in contexts]
        if not self.use_cache:
            self._trees = [Tree(row) for row in contexts]
            return self._whole(contexts)
        keep = [
            min(common_prefix(tree.context, row), len(row) - 1)
            for tree, row in zip(self._trees, contexts, strict=True)
        ]
        self.crop(keep)
        self._trees = [Tree(row) for row in contexts]
        fresh = [row[kept:] for row, kept in zip(contexts, keep, strict=True)]
        self.reads += sum(map(len, fresh))
        return self.append(self.padded(fresh), list(map(len, fresh)), 1)[:, 0]

    @torch.inference_mode()
    def grow(
        self, parents: Sequence[Sequence[int]], tokens: Sequence[Sequence[int]]
    ) -> list[Tensor]:
        """Add nodes to the trees; the logits after each of them. One forward.

        Parameters
        ----------
        parents : sequence of sequence of int
            Of each row's new nodes, a node of that row: 0 for the end of its context, 1 for its
            first node, and so on in the order in which they were given, in this call too.
        tokens : sequence of sequence of int
            The new nodes' own. A row may have none, but not all of them.

        Returns
        -------
        list of Tensor, each of shape [n, V]
            For every row, in the order of its new nodes.

        Raises
        ------
        ValueError
            A parent is no node, a token no id, or a path too long for the model's positions; or
            there are not as many parents as tokens, as many rows as contexts, or no nodes at all.
        """
        self._check(parents, tokens)
        for tree, above, ids in zip(self._trees, parents, tokens, strict=True):
            tree.add(above, ids)
        counts = list(map(len, tokens))
        if not self.use_cache:
            texts = [tree.texts(count) for tree, count in zip(self._trees, counts, strict=True)]
            return list(torch.split(self._whole(list(chain.from_iterable(texts))), counts))
        logits = self._read(counts)
        return [row[len(row) - count :] for row, count in zip(logits, counts, strict=True)]

    def forget(self) -> None:
        """Drop all nodes; the contexts stay, and are not read again."""
        self._trees = [Tree(tree.context) for tree in self._trees]
        if self.use_cache:
            self.crop([len(tree.context) for tree in self._trees])

    def select(self, rows: Sequence[int]) -> None:
        """Drop all rows but these, which are numbered anew."""
        self._trees = [self._trees[row] for row in rows]
        super().select(rows)

    def _read(self, counts: Sequence[int]) -> Tensor:
        """The logits of the last nodes of each row, which alone are read."""
        pairs = list(zip(self._trees, counts, strict=True))
        ids = [tree.tokens[len(tree.tokens) - count :] for tree, count in pairs]
        self.reads += sum(counts)
        self.slots.append(counts, max(counts))
        return self.call(
            self.padded(ids),
            max(counts),
            attention_mask=self._mask(counts, max(counts)),
            position_ids=self.padded([tree.positions(count) for tree, count in pairs]),
        )

    def _whole(self, texts: list[list[int]]) -> Tensor:
        """The logits after texts that are read from the start."""
        self.reads += sum(map(len, texts))
        none = torch.empty(len(texts), 0, dtype=torch.int64, device=self.device)
        return self.whole(texts, 1, none)[:, 0]

    def _mask(self, nodes: Sequence[int], width: int) -> Tensor | dict[str, Tensor]:
        """The masks of the last slots, by which nodes see their context and their path."""
        size, used = self.slots.size, self.slots.used
        lengths = torch.tensor([len(tree.context) for tree in self._trees])[:, None]
        order = used.cumsum(1)
        context = moved(used & (order <= lengths), self.device)
        seen = context[:, None].repeat(1, width, 1)
        paths = [tree.place(n, size) for tree, n in zip(self._trees, nodes, strict=True)]
        flat = moved(_flat(paths, width, size), self.device)
        seen = seen.view(-1).index_fill_(0, flat, True).view_as(seen)
        return self.masks(seen, moved(self._places(order - 1), self.device))

    def _places(self, places: Tensor) -> Tensor:
        """Which token of its text stands in each slot, [B, slots]: a node's is by its depth."""
        for row, tree in enumerate(self._trees):
            slots = [path[-1] for path in tree.paths[1:]]
            places[row, slots] = torch.tensor(tree.positions(len(slots)), dtype=torch.int64)
        return places

    def _check(self, parents: Sequence[Sequence[int]], tokens: Sequence[Sequence[int]]) -> None:
        for name, given in (("parents", parents), ("tokens", tokens)):
            if len(given) != len(self._trees):
                raise ValueError(
                    f"{name} has {len(given)} rows: expected {len(self._trees)}, as many as "
                    "contexts"
                )
        if not any(map(len, tokens)):
            raise ValueError("tokens: no row has any: expected at least one new node")
        for row, (above, ids) in enumerate(zip(parents, tokens, strict=True)):
            if len(above) != len(ids):
                raise ValueError(
                    f"tokens[{row}] has {len(ids)}: expected {len(above)}, as many as parents"
                )
            self.check_ids(f"tokens[{row}]", ids)
            self._trees[row].check(row, above, self.positions)


def _flat(paths: Sequence[Sequence[tuple[int, ...]]], width: int, size: int) -> Tensor:
    """The flat indices of the paths of each row's last nodes in a mask [B, width, size]."""
    rows = [
        (row + 1) * width - len(found) + index
        for row, found in enumerate(paths)
        for index in range(len(found))
    ]
    flat = list(chain.from_iterable(paths))
    lengths = torch.tensor(list(map(len, flat)), dtype=torch.int64)
    starts = torch.tensor(rows, dtype=torch.int64).repeat_interleave(lengths) * size
    return starts + torch.tensor(list(chain.from_iterable(flat)), dtype=torch.int64)
