"""Batched loops in torch under the contract ``generate-batch``, by default on toys with a cache.

`torch_backend.generate`; and plain sampling of Transformers, whose assisted generation takes one
prompt at a time.
"""

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, disallow-subclassing-any=False, warn-unused-ignores=False

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch
from transformers.modeling_outputs import CausalLMOutputWithPast

from specref.contracts.process_state import one_thread, seeded
from specref.contrib.engines.forwards import CACHE_NAMES
from specref.contrib.engines.quiet_transformers import without_deprecations
from specref.contrib.engines.toy_transformers import ToyModel
from specref.models import Model
from specref.vocabulary import Tokens

REMEMBERED_MODELS, LOOKAHEAD = 64, 3


class ToyBatchModel(ToyModel):
    """A toy model of several rows: each token sees what its mask shows, in order of positions.

    The cache holds ids and positions. A token that a mask shows wrongly, or at another position,
    makes another context, and so another distribution; a gap between positions reads as token 0.

    >>> from specref.models import markov_model
    >>> from specref.vocabulary import Vocabulary
    >>> model = ToyBatchModel(markov_model(Vocabulary("ab"), [1, 0], [[0, 1], [1, 0]]), size=3)
    >>> ids, mask = torch.tensor([[2, 0], [0, 2]]), torch.tensor([[1, 1], [0, 1]])
    >>> positions = mask.cumsum(1) - 1
    >>> model(ids, mask, positions.clamp(min=0)).logits.softmax(-1).detach()[:, -1]
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """

    def forward(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        attention_mask: Any = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Any = None,
        cache: Any = None,
        logits_to_keep: int = 0,
        **others: Any,
    ) -> CausalLMOutputWithPast:
        """Logits after each fed id of each row, or the last `logits_to_keep` of them."""
        kept = cache if cache is not None else past_key_values
        past = 0 if kept is None else kept.get_seq_length()
        (rows, fed), keys = input_ids.shape, self.embedding(input_ids)[:, None]
        if position_ids is None:
            position_ids = torch.arange(past, past + fed).expand(rows, fed)
        places = position_ids.expand(rows, fed).to(keys.dtype)[:, None, :, None]
        if kept is not None:
            keys, places = kept.update(keys, places, 0)
        ids, at = (one[:, 0, :, 0].long().tolist() for one in (keys, places))
        seen = visible(attention_mask, rows, fed, len(ids[0]))
        first = fed - (logits_to_keep or fed)
        logits = torch.stack(
            [
                torch.stack([self.row(self.context(own, place, shown)) for shown in row[first:]])
                for own, place, row in zip(ids, at, seen, strict=True)
            ]
        )
        name = next(one for one in CACHE_NAMES if one in CausalLMOutputWithPast.__annotations__)
        return CausalLMOutputWithPast(logits=self.head(logits), **{name: kept})

    def context(self, ids: list[int], places: list[int], shown: list[bool]) -> Tokens:
        """The known tokens that are seen, by position."""
        found = sorted((p, x) for p, x, here in zip(places, ids, shown, strict=True) if here)
        whole, after = list[int](), found[0][0]
        for place, token in found:
            whole += [*[0] * (place - after), token]
            after = place + 1
        return tuple(x for x in whole if x < self.known)


def visible(mask: Any, rows: int, fed: int, size: int) -> list[list[list[bool]]]:
    """What each fed token of each row sees of all slots, by a mask in any of its forms."""
    causal = torch.ones(fed, size, dtype=torch.bool).tril(size - fed).expand(rows, fed, size)
    if isinstance(mask, dict):
        (mask,) = mask.values()
    if mask is None:
        shown = causal
    elif mask.ndim == 2:
        shown = causal & mask.bool()[:, None]
    else:
        four = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        shown = four[:, 0].expand(rows, fed, size)
    # Padding has to see something.
    return (shown | torch.eye(size, dtype=torch.bool)[size - fed :]).tolist()  # type: ignore[no-any-return]


def toys() -> Callable[[Model], ToyBatchModel]:
    """(model) -> its toy; the same for the same model."""

    @lru_cache(REMEMBERED_MODELS)
    def toy(model: Model) -> ToyBatchModel:
        made = ToyBatchModel(model, len(model.vocabulary) + 1)
        made.train(False)
        return made

    return toy


def eos_of(model: Model) -> int | None:
    """The id of EOS."""
    end = model.vocabulary.eos
    return None if end is None else model.vocabulary.ids[end]


def start_of(model: Any) -> list[int]:
    """What comes before a context: a toy has a start token, a trained checkpoint has none."""
    return [model.known] if isinstance(model, ToyBatchModel) else []


Models: TypeAlias = Callable[[Model], Any]
"""From a model of the contract to the one that computes it, by default a toy."""


def load_torch_backend(
    lookahead: int = LOOKAHEAD, models: Models | None = None, temperature: float = 1.0
) -> Callable[..., Any]:
    """`torch_backend.generate`, with a seed for each row; greedy at temperature 0."""
    from specref.torch_backend import generate as backend

    model_of = models or toys()

    def generate(
        target: Model,
        drafter: Model,
        contexts: Sequence[Tokens],
        tokens: int,
        *,
        seeds: Sequence[int],
    ) -> Sequence[Tokens]:
        pair = model_of(target), model_of(drafter)
        prompts = [(*start_of(pair[0]), *context) for context in contexts]
        with one_thread():
            found = backend(
                *pair, prompts, seeds=seeds, lookahead=lookahead, max_new_tokens=tokens,
                eos=eos_of(target), temperature=temperature,
            )  # fmt: skip
        return found.tokens

    return generate


def load_transformers(models: Models | None = None, greedy: bool = False) -> Callable[..., Any]:
    """`generate` of Transformers without an assistant, prompts padded to the left."""
    model_of = models or toys()
    asked: dict[str, Any] = {"do_sample": False} if greedy else {"do_sample": True, "top_k": 0}

    def generate(
        target: Model,
        drafter: Model,
        contexts: Sequence[Tokens],
        tokens: int,
        rng: np.random.Generator,
    ) -> list[list[int]]:
        model = model_of(target)
        start, end = start_of(model), eos_of(target)
        pad = start[0] if start else model.config.pad_token_id
        prompts = [[*start, *context] for context in contexts]
        pads = [max(map(len, prompts)) - len(one) for one in prompts]
        both = list(zip(pads, prompts, strict=True))
        # As pad, 0 is a token like any other: only the mask hides it.
        ids = torch.tensor([[*[0] * n, *one] for n, one in both])
        mask = torch.tensor([[*[0] * n, *[1] * len(one)] for n, one in both])
        with seeded(rng), one_thread(), without_deprecations():
            found = model.generate(
                ids, attention_mask=mask, max_new_tokens=tokens, pad_token_id=pad,
                eos_token_id=end, **asked,
            )  # fmt: skip
        texts = found[:, ids.shape[1] :].tolist()
        return [text[: text.index(end) + 1] if end in text else text for text in texts]

    return generate
