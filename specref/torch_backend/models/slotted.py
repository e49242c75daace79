"""A causal language model whose key-value cache has holes: the base of cached models.

Layers with a sliding window keep the keys and values of all tokens here, so that any token can
be taken back; what is outside a window is hidden by the mask. A window counts tokens of a text,
not slots: where rows have holes, the mask is made here, one for each kind of layers.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
from specref.torch_backend.models.slots import Slots
from specref.torch_backend.shaping import moved, sent

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class SlottedModel:
    """A model, the keys and values of a batch, and which slots of these each row uses.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A causal language model. It is not changed.
    use_cache : bool
        If False no keys and values are kept, and texts are read whole, without a mask.

    Attributes
    ----------
    forwards : int
        How often the model was called.
    positions : int
        The longest sequence that the model can read.
    device : torch.device
        Where the model is.

    Raises
    ------
    ValueError
        The model's cache cannot be cropped, and `use_cache` is True.
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

        Parameters
        ----------
        seen : Tensor of bool, shape [B, width, slots]
            What each of the last columns may see of what came before it.
        places : Tensor of int64, shape [B, slots]
            Which token of its text stands in a slot, by which windows count.
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

        Padding stands to the right, where no causal model sees it.

        Parameters
        ----------
        rows, last, drafts
            As `CachedModel.logits` takes them.
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
