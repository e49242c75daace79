"""A causal language model whose key-value cache has holes: the base of cached models."""

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from specref.torch_backend.models.configs import check_attention, longest_text
from specref.torch_backend.models.slots import Slots
from specref.torch_backend.sending import moved, sent

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MASKED = ("sdpa", "eager")  # what takes a mask of four dimensions


class SlottedModel:
    """A model, the keys and values of a batch, and which slots of these each row uses.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A causal language model with full attention. It is not changed.
    use_cache : bool
        If False no keys and values are kept.

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
        The model has layers whose attention is not full: their cache cannot be cropped.
    """

    def __init__(self, model: "PreTrainedModel", use_cache: bool = True) -> None:
        check_attention(model.config)
        self.model, self.use_cache, self.forwards = model, use_cache, 0
        self.positions, self.device = longest_text(model.config), model.device
        named = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in named else "past_key_values"
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
        if self.model.config._attn_implementation in MASKED:
            mask = self.additive(mask[:, None].repeat(1, ids.shape[1], 1))
        return self.call(ids, last, attention_mask=mask, position_ids=positions)

    def additive(self, seen: Tensor) -> Tensor:
        """The additive mask of the last columns, [B, 1, width, slots], from what they may see.

        Of a mask that says no more than `seen`, Transformers reads a value in every forward.
        """
        past = seen.shape[2] - seen.shape[1]
        seen = seen.tril(past)
        seen.diagonal(past, 1, 2).fill_(True)  # padding has to attend to something
        mask = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device)
        return mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)[:, None]

    def call(self, ids: Tensor, last: int, **arguments: Tensor) -> Tensor:
        """One forward: the logits of the last columns."""
        cache = {self._cache_name: self._cache} if self.use_cache else {}
        self.forwards += 1
        logits: Tensor = self.model(
            input_ids=ids,
            use_cache=self.use_cache,
            logits_to_keep=last,
            return_dict=True,
            **cache,
            **arguments,
        ).logits
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
        size = self.model.config.vocab_size
        if not ids or (min(ids) >= 0 and max(ids) < size):
            return
        place = next(place for place, token in enumerate(ids) if not 0 <= token < size)
        raise ValueError(f"{name}[{place}] = {ids[place]}: expected a token id below {size}")
