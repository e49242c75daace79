"""A Transformers model whose next-token law is that of a specref `Model`.

Small enough that `generate` costs only its own bookkeeping, and complete enough for all paths of
it. The key-value cache holds the token ids that the model was fed, and the law depends
on what the cache holds: wrong positions, wrong crops and wrong ids change the law, as they do
in a real model.
"""

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, disallow-subclassing-any=False, warn-unused-ignores=False

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from specref.contrib.engines.forwards import CACHE_NAMES, Forward, cache_of
from specref.models import Model
from specref.vocabulary import Tokens

REMEMBERED_ROWS = 4096
NEVER = -1e30


class ToyConfig(PretrainedConfig):
    """The configuration that `generate` needs."""

    model_type = "specref-toy"

    def __init__(self, vocab_size: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.vocab_size = vocab_size
        self.num_hidden_layers = self.num_attention_heads = 1
        self.hidden_size = vocab_size


class ToyModel(PreTrainedModel, GenerationMixin):
    """A language model over the tokens of a specref `Model`, and ids that mean none of them.

    Ids from len(vocabulary) to `size` - 1 are never generated, and left out of the context:
    the first of them starts every text, so that the empty context is a text.

    * `size`: The size of the embedding, at least one more than the vocabulary.
    * `temperature`: A factor on logits: sampled at this temperature, the law is that of the model.
    * `forwards`: All forward passes so far, from which drafted and accepted tokens can be derived.
    * raises `ValueError`: `size` is too small.

    >>> from specref.models import markov_model
    >>> from specref.vocabulary import Vocabulary
    >>> model = ToyModel(markov_model(Vocabulary("ab"), [1, 0], [[0, 1], [1, 0]]), size=3)
    >>> model(input_ids=torch.tensor([[2, 0]])).logits.softmax(-1).detach()
    tensor([[[1., 0., 0.],
             [0., 1., 0.]]])
    """

    config_class = ToyConfig

    def __init__(self, model: Model, size: int, temperature: float = 1.0) -> None:
        known = len(model.vocabulary)
        if size <= known:
            raise ValueError(f"size = {size}: expected more than the vocabulary's {known}")
        super().__init__(ToyConfig(vocab_size=size))
        self.known, self.size = known, size
        self.next_token, self.temperature = model.next_token, temperature
        self.row = lru_cache(REMEMBERED_ROWS)(self._row)
        self.embedding = nn.Embedding(size, 1, _weight=torch.arange(size).float()[:, None])
        self.head = nn.Linear(size, size, bias=False, device="meta")  # draws no numbers
        self.head.weight = nn.Parameter(torch.eye(size))
        self.forwards: list[Forward] = []

    def get_input_embeddings(self) -> nn.Module:
        """The table of ids; universal assisted generation replaces it."""
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embedding = value  # type: ignore[assignment]

    def get_output_embeddings(self) -> nn.Module:
        """The identity; universal assisted generation prunes it."""
        return self.head

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        self.head = new_embeddings  # type: ignore[assignment]

    def forward(
        self,
        input_ids: torch.Tensor,
        logits_to_keep: int = 0,
        **others: Any,
    ) -> CausalLMOutputWithPast:
        """Logits after each fed id, or the last `logits_to_keep` of them."""
        ids, cached = self.embedding(input_ids)[:, None], 0
        fed, cache = ids.shape[2], cache_of(others)
        if cache is not None:
            cached = cache.get_seq_length()
            ids, _ = cache.update(ids, ids, 0)
        self.forwards.append(Forward(cached, fed))
        seen = ids[0, 0, :, 0].long().tolist()
        kept = range(len(seen) - (logits_to_keep or fed) + 1, len(seen) + 1)
        contexts = (tuple(x for x in seen[:length] if x < self.known) for length in kept)
        rows = torch.stack([self.row(context) for context in contexts])
        logits = self.head(rows)[None]
        name = next(one for one in CACHE_NAMES if one in CausalLMOutputWithPast.__annotations__)
        return CausalLMOutputWithPast(logits=logits, **{name: cache})

    def _row(self, context: Tokens) -> torch.Tensor:
        # Not -inf: the identity would turn that into NaN elsewhere.
        row = np.full(self.size, NEVER)
        p = self.next_token(context).astype(np.float64)
        row[: self.known][p > 0] = self.temperature * np.log(p[p > 0])
        return torch.from_numpy(row).float()
