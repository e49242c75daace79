"""A causal language model whose key-value cache has holes: the base of cached models.

A slot is a column of the cache. Rows keep different numbers of draft tokens, so after a while a
row has holes: slots that hold what was rejected, or what other rows read while it had less to
read. Its own tokens stand in the slots it uses, in order.

Layers with a sliding window keep the keys and values of all tokens here, so that any token can
be taken back; what is outside a window is hidden by the mask. A window counts tokens of a text,
not slots: where rows have holes, the mask is made here, one for each kind of layers.
"""

from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from specref.torch_backend.models.configs import (
    check_cache,
    longest_text,
    takes,
    takes_masks,
    vocabulary_size,
    windows,
)
from specref.torch_backend.shaping import moved, sent

if TYPE_CHECKING:
    from transformers import PreTrainedModel


FEW_HOLES = 16


class Layout(NamedTuple):
    """The mask [B, slots] and positions [B, width] that a model needs for a batch with holes."""

    mask: Tensor
    positions: Tensor


class Slots:
    """The slots of `rows` rows, none used yet: `lengths` tokens in each row, `size` slots in all.

    >>> slots = Slots(2)
    >>> slots.append([3, 1], 3).positions.tolist()
    [[0, 1, 2], [0, 0, 0]]
    >>> slots.crop([1, 1])
    >>> slots.size, slots.used.tolist()
    (3, [[True, False, False], [False, False, True]])
    """

    def __init__(self, rows: int) -> None:
        self.lengths, self.size = [0] * rows, 0
        self._used: Tensor | None = None

    @property
    def used(self) -> Tensor:
        """Which row uses which slot, shape [B, slots]; on the CPU."""
        if self._used is None:
            return torch.ones(len(self.lengths), self.size, dtype=torch.bool)
        return self._used

    def crop(self, lengths: Sequence[int]) -> None:
        """Keep so many tokens of each row, and no slot after the last that is used."""
        if self._used is None and len(set(lengths)) == 1:
            self.size = lengths[0]
        else:
            used = self.used & (self.used.cumsum(1) <= torch.tensor(lengths)[:, None])
            self.size = 1 + max(compress(range(self.size), used.any(0).tolist()), default=-1)
            self._used = used[:, : self.size]
        self.lengths = list(lengths)
        self._forget_if_dense()

    def append(self, counts: Sequence[int], width: int, positions: int = 2**31) -> Layout | None:
        """Add `width` slots, of which each row uses its last; None if there are no holes.

        What comes after position `positions` is put on the last: nothing that is used.
        """
        before = torch.tensor(self.lengths)[:, None]
        dense = self._used is None and min(counts) == width
        used, self.size = self.used, self.size + width
        self.lengths = [length + count for length, count in zip(self.lengths, counts, strict=True)]
        if dense:
            return None
        offsets = torch.arange(width) - (width - torch.tensor(counts)[:, None])
        self._used = torch.cat([used, offsets >= 0], 1)
        return Layout(self._used, (before + offsets).clamp(0, positions - 1))

    def compact(self) -> Tensor | None:
        """Close the holes if there are many: the slots to gather, [B, new size], or None."""
        longest = max(self.lengths)
        if self.size - longest <= max(FEW_HOLES, longest // 4):
            return None
        order = self.used.byte().argsort(dim=1, descending=True, stable=True)[:, :longest]
        self._used = torch.arange(longest) < torch.tensor(self.lengths)[:, None]
        self.size = longest
        self._forget_if_dense()
        return order

    def select(self, rows: Sequence[int]) -> None:
        self._used = None if self._used is None else self._used[list(rows)]
        self.lengths = [self.lengths[row] for row in rows]

    def _forget_if_dense(self) -> None:
        if min(self.lengths) == self.size:
            self._used = None


class SlottedModel:
    """A model, the keys and values of a batch, and which slots of these each row uses.

    Parameters, attributes and errors as of `CachedModel`.
    """

    def __init__(self, model: "PreTrainedModel", use_cache: bool = True) -> None:
        if use_cache:
            check_cache("model", model)
        self.model, self.use_cache, self.forwards = model, use_cache, 0
        self.positions, self.device = longest_text(model.config), model.device
        self._windows = windows(model.config)
        self._cache_name = "past_key_values" if takes(model, "past_key_values") else "cache"
        self._keeps = takes(model, "logits_to_keep")
        self.clear(0)

    def clear(self, rows: int) -> None:
        """Forget all that was read, for so many rows to come."""
        from transformers import DynamicCache

        self.slots, self._cache = Slots(rows), DynamicCache()

    def append(self, ids: Tensor, counts: Sequence[int], last: int) -> Tensor:
        """Read tokens after what each row holds, the last `counts` of each row of `ids`."""
        layout = self.slots.append(counts, ids.shape[1], self.positions)
        if layout is None:
            return self.call(ids, last)
        mask, positions = (moved(one, self.device) for one in layout)
        if not takes_masks(self.model):
            return self.call(ids, last, attention_mask=mask, position_ids=positions)
        seen, places = mask[:, None].repeat(1, ids.shape[1], 1), mask.cumsum(1) - 1
        return self.call(
            ids, last, attention_mask=self.masks(seen, places), position_ids=positions
        )

    def masks(self, seen: Tensor, places: Tensor) -> Tensor | dict[str, Tensor]:
        """The additive mask of the last columns, [B, 1, width, slots], for each kind of layers.

        Of a mask that says no more than `seen`, Transformers reads a value in every forward.

        * `seen`, [B, width, slots]: What each of the last columns may see of what came before it.
        * `places`, [B, slots]: Which token of its text stands in a slot, by which windows count.
        """
        width, past = seen.shape[1], seen.shape[2] - seen.shape[1]
        seen = seen.tril(past)
        seen.diagonal(past, 1, 2).fill_(True)  # padding has to attend to something
        age = places[:, -width:, None] - places[:, None]
        masks = {
            kind: self._additive(seen if window is None else seen & (age < window))
            for kind, window in self._windows.items()
        }
        return masks if len(masks) > 1 else masks.popitem()[1]

    def _additive(self, seen: Tensor) -> Tensor:
        mask = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device)
        return mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)[:, None]

    def whole(self, rows: Sequence[Sequence[int]], last: int, drafts: Tensor) -> Tensor:
        """The last logits of texts that are read from the start, without a cache or a mask.

        Padding stands to the right, where no causal model sees it. Arguments as of
        `CachedModel.logits`.
        """
        columns, longest = drafts.shape[1], max(map(len, rows))
        width = min(longest + columns, self.positions)
        ids = sent([[*row] + [0] * (longest + columns - len(row)) for row in rows], self.device)
        steps = torch.arange(columns, device=self.device)
        starts = sent(list(map(len, rows)), self.device)[:, None]
        ids = ids.scatter_(1, starts + steps, drafts.clamp(min=0))[:, :width]
        first = max(0, min(min(map(len, rows)) + columns, width) - last)
        logits = self.call(ids, width - first)
        places = starts + columns - last - first + torch.arange(last, device=self.device)
        return logits.take_along_dim(places.clamp(0, width - first - 1)[..., None], 1)

    def call(self, ids: Tensor, last: int, **arguments: Any) -> Tensor:
        """One forward: the logits of the last columns."""
        if self.use_cache:
            arguments[self._cache_name] = self._cache
        if self._keeps:
            arguments["logits_to_keep"] = last
        self.forwards += 1
        logits: Tensor = self.model(
            input_ids=ids, use_cache=self.use_cache, return_dict=True, **arguments
        ).logits[:, -last:]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def crop(self, lengths: Sequence[int]) -> None:
        """Forget what follows the first tokens of each row, as many as it is told."""
        self.slots.crop(lengths)
        size, order = self.slots.size, self.slots.compact()
        index = None if order is None else moved(order, self.device)[:, None, :, None]
        for layer in self._layers():
            keys, values = layer.keys[:, :, :size], layer.values[:, :, :size]
            layer.keys = keys if index is None else keys.take_along_dim(index, 2)
            layer.values = values if index is None else values.take_along_dim(index, 2)

    def select(self, rows: Sequence[int]) -> None:
        """Drop all rows but these, which are numbered anew."""
        self.slots.select(rows)
        index = sent(rows, self.device)
        for layer in self._layers():
            layer.keys, layer.values = layer.keys[index], layer.values[index]

    def _layers(self) -> list[Any]:
        layers: list[Any] = self._cache.layers
        return [layer for layer in layers if layer.is_initialized]

    def padded(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Rows of one width, on the device of the model: zeros come first."""
        width = max(map(len, rows))
        return sent([[0] * (width - len(row)) + [*row] for row in rows], self.device)

    def check_rows(self, rows: Sequence[Sequence[int]]) -> None:
        if not rows:
            raise ValueError("rows is empty: expected at least one")
        for index, row in enumerate(rows):
            if not 1 <= len(row) <= self.positions:
                raise ValueError(
                    f"rows[{index}] has {len(row)} tokens: expected 1 to {self.positions}"
                )
            self.check_ids(f"rows[{index}]", row)

    def check_ids(self, name: str, ids: Sequence[int]) -> None:
        size = vocabulary_size(self.model.config)
        if not ids or (min(ids) >= 0 and max(ids) < size):
            return
        place = next(place for place, token in enumerate(ids) if not 0 <= token < size)
        raise ValueError(f"{name}[{place}] = {ids[place]}: expected a token id below {size}")
