"""A causal language model with a key-value cache that follows texts as they are drafted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from specref.torch_backend.models.slotted import SlottedModel
from specref.torch_backend.shaping import sent

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class CachedModel(SlottedModel):
    """Next-token logits of token sequences; what was read before is not read again.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A causal language model; its layers may have sliding windows. It is not changed.
    use_cache : bool
        If False every text is read whole in every call: the reference for the cache, and the
        way to read a model whose cache cannot be cropped.

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

    Examples
    --------
    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> config = LlamaConfig(
    ...     vocab_size=5, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, max_position_embeddings=16,
    ... )
    >>> model = CachedModel(LlamaForCausalLM(config).eval())
    >>> model.logits([[1, 2, 3], [4]]).shape
    torch.Size([2, 1, 5])
    >>> model.logits([[1, 2, 0, 0], [4, 1]], last=2).shape  # reads two tokens of each row
    torch.Size([2, 2, 5])
    >>> model.forwards
    2
    """  # fmt: skip

    def __init__(self, model: "PreTrainedModel", use_cache: bool = True) -> None:
        super().__init__(model, use_cache)
        self._rows: list[list[int]] = []
        self._pending: Tensor | None = None

    @torch.inference_mode()
    def logits(
        self,
        rows: Sequence[Sequence[int]],
        last: int | Sequence[int] = 1,
        drafts: Tensor | None = None,
    ) -> Tensor:
        """The next-token logits after each of the last prefixes of every row.

        Parameters
        ----------
        rows : sequence of sequence of int
            Token ids. What a row shares with the row of the same number in the last call,
            from the start on, is not read again, unless logits are asked for there.
        last : int, or one for each row
            After how many prefixes, the longest being the whole row.
        drafts : Tensor of int64, shape [B, K], optional
            Tokens that follow the rows, and count as part of them. A negative id is no token;
            logits from there on mean nothing.

        Returns
        -------
        Tensor, shape [B, max(last), V]
            Right-aligned in each row; float64 from a float64 model, otherwise float32.

        Raises
        ------
        ValueError
            A row is empty, longer than the model's positions, or shorter than its `last`, or has
            what is no token id.
        """
        texts = [list(row) for row in rows]
        columns = 0 if drafts is None else drafts.shape[1]
        wanted = [last] * len(texts) if isinstance(last, int) else list(last)
        self._check(texts, wanted, columns)
        if len(self._rows) != len(texts):
            self.clear(len(texts))
            self._rows, self._pending = [[] for _ in texts], None
        if not self.use_cache:
            self._rows, self._pending = texts, drafts
            none = torch.empty(len(texts), 0, dtype=torch.int64, device=self.device)
            return self.whole(texts, max(wanted), none if drafts is None else drafts)
        self.settle()
        keep = [
            min(common_prefix(held, text), len(text) + columns - count)
            for held, text, count in zip(self._rows, texts, wanted, strict=True)
        ]
        self.crop(keep)
        self._rows, self._pending = texts, drafts
        fresh = [text[kept:] for text, kept in zip(texts, keep, strict=True)]
        ids = self.padded(fresh)
        ids = ids if drafts is None else torch.cat([ids, drafts.clamp(min=0)], 1)
        return self.append(ids, [len(row) + columns for row in fresh], max(wanted))

    @torch.inference_mode()
    def extend(self, tokens: Tensor) -> Tensor:
        """The logits after each of some more tokens, which need not be known on the host.

        Parameters
        ----------
        tokens : Tensor of int64, shape [B, K]
            They follow the rows of the last call, and what extended them since.

        Returns
        -------
        Tensor, shape [B, K, V]
        """
        drafts = tokens if self._pending is None else torch.cat([self._pending, tokens], 1)
        if not self.use_cache:
            return self.logits(self._rows, tokens.shape[1], drafts)
        self._pending = drafts
        return self.append(tokens.clamp(min=0), [tokens.shape[1]] * len(tokens), tokens.shape[1])

    def select(self, rows: Sequence[int]) -> None:
        """Drop all rows but these, which are numbered anew."""
        self._rows = [self._rows[row] for row in rows]
        if self._pending is not None:
            self._pending = self._pending[sent(rows, self.device)]
        super().select(rows)

    def settle(self) -> None:
        """Copy the tokens read last to the host; it waits, so call it when the device is idle."""
        if self._pending is not None:
            for row, tokens in zip(self._rows, self._pending.tolist(), strict=True):
                row += tokens
            self._pending = None

    def _check(self, rows: Sequence[Sequence[int]], wanted: Sequence[int], columns: int) -> None:
        self.check_rows(rows)
        for index, (row, count) in enumerate(zip(rows, wanted, strict=True)):
            if not 1 <= count <= len(row) + columns:
                raise ValueError(
                    f"last = {count} for rows[{index}]: expected 1 to {len(row) + columns}"
                )


def common_prefix(first: list[int], second: list[int]) -> int:
    """How many tokens two lists share from the start on.

    >>> common_prefix([1, 2, 3], [1, 2, 4, 5])
    2
    """
    low, high = 0, min(len(first), len(second))
    if first[:high] == second[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        same = first[low:middle] == second[low:middle]
        low, high = (middle, high) if same else (low, middle)
    return low
