"""Toy models of Transformers, each with the law of a specref `Model`, and loops of others on them.

Small enough that `generate` costs only its own bookkeeping, and complete enough for all paths of
it. The key-value cache holds the token ids that the model was fed, and the law depends
on what the cache holds: wrong positions, wrong crops and wrong ids change the law, as they do
in a real model.

Loops are those of one text, given to `on_toys`, and batched ones: `torch_backend.generate`, and
plain sampling of Transformers, whose assisted generation takes one prompt at a time. Verifiers of
one row, which need no models, are given to `row_by_row`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar, Unpack

import numpy as np
import torch
from torch import nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from specref.arrays import Floats, Ints, one_hot_rows
from specref.contracts.capabilities import Claims, capable
from specref.contracts.process_state import global_randomness, one_thread, seeded
from specref.contrib.engines.calling_generate import (
    CACHE_NAMES,
    Forward,
    cache_of,
    without_deprecations,
)
from specref.models import Model
from specref.vocabulary import Tokens

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, disallow-subclassing-any=False, warn-unused-ignores=False

REMEMBERED_MODELS, REMEMBERED_ROWS, LOOKAHEAD = 64, 4096, 3
NEVER = -1e30


Toy = TypeVar("Toy", bound="ToyModel")


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
        return output_of(self.head(rows)[None], cache)

    def _row(self, context: Tokens) -> torch.Tensor:
        # Not -inf: the identity would turn that into NaN elsewhere.
        row = np.full(self.size, NEVER)
        p = self.next_token(context).astype(np.float64)
        row[: self.known][p > 0] = self.temperature * np.log(p[p > 0])
        return torch.from_numpy(row).float()


def output_of(logits: torch.Tensor, cache: Any) -> CausalLMOutputWithPast:
    """What a model returns: the cache by its name of this version."""
    name = next(one for one in CACHE_NAMES if one in CausalLMOutputWithPast.__annotations__)
    return CausalLMOutputWithPast(logits=logits, **{name: cache})


def eos_of(model: Model) -> int | None:
    """The id of EOS."""
    end = model.vocabulary.eos
    return None if end is None else model.vocabulary.ids[end]


def remembered(kind: type[Toy]) -> Callable[[Model], Toy]:
    """(model) -> its toy; the same for the same model."""

    @lru_cache(REMEMBERED_MODELS)
    def toy(model: Model) -> Toy:
        made = kind(model, len(model.vocabulary) + 1)
        made.train(False)
        return made

    return toy


Decode: TypeAlias = Callable[[ToyModel, ToyModel, torch.Tensor, int], Sequence[int]]
"""(target, drafter, prompt of one row, lookahead or tokens) -> the tokens after the prompt."""


def on_toys(decode: Decode, **claims: Unpack[Claims]) -> Callable[..., Tokens]:
    """A function under the contract ``step``, or ``generate``: both are a pair and a number.

    Global generators of Python, NumPy and torch are seeded. A prompt starts with an id that no
    vocabulary has. What comes after EOS is cut: it changes nothing before.
    """
    toy = remembered(ToyModel)

    @capable(**claims)
    def run(
        target: Model, drafter: Model, context: Tokens, number: int, rng: np.random.Generator
    ) -> Tokens:
        pair, end = (toy(target), toy(drafter)), eos_of(target)
        prompt = torch.tensor([[pair[0].known, *context]])
        with global_randomness(rng), one_thread(), torch.no_grad():
            tokens = tuple(decode(*pair, prompt, number))
        for one in pair:
            one.forwards.clear()
        return tokens[: tokens.index(end) + 1] if end in tokens else tokens

    return run


class WithTuples:
    """A toy model whose cache is a pair of tensors for each layer, as it was in Transformers."""

    device = "cpu"

    def __init__(self, toy: ToyModel) -> None:
        self.toy = toy

    def __call__(
        self, input_ids: torch.Tensor, past_key_values: Any = None, use_cache: bool = True
    ) -> SimpleNamespace:
        """Logits after each of these ids, and the ids so far as keys and values of one layer."""
        before = [keys[:, 0, :, 0] for keys, _ in past_key_values or ()]
        whole = torch.cat([*before, input_ids], dim=1)
        kept = whole[:, None, :, None]
        logits = self.toy(whole).logits[:, -input_ids.shape[1] :]
        return SimpleNamespace(logits=logits, past_key_values=((kept, kept),))


VerifyRow: TypeAlias = Callable[[torch.Tensor, torch.Tensor, Tokens], Tokens]
"""(logits of the target, one row more than drafts; of the drafter; drafts) -> the block."""


def row_by_row(
    verify_row: VerifyRow, device: str = "cpu", rule: str | None = None
) -> Callable[..., tuple[Ints, Ints]]:
    """A function under the contract ``verify``.

    A row without drafts is drawn from the target by `torch.multinomial`, as engines do: functions
    that verify are never called for one. Logits are log p in float32, -inf for 0.
    """

    @capable(rule=rule)
    def verify(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator,
    ) -> tuple[Ints, Ints]:
        size = target_probs.shape[2]
        given = one_hot_rows(draft_tokens, size) if draft_probs is None else draft_probs
        p, q = (torch.from_numpy(one).log().float().to(device) for one in (target_probs, given))
        tokens = np.full((len(draft_tokens), draft_tokens.shape[1] + 1), -1)
        with seeded(rng, device), torch.no_grad():
            for row, drafts in enumerate(draft_tokens):
                known = tuple(drafts[drafts >= 0].tolist())
                if known:
                    block = verify_row(p[row, : len(known) + 1], q[row, : len(known)], known)
                else:
                    block = (int(torch.multinomial(p[row, 0].softmax(dim=-1), num_samples=1)),)
                tokens[row, : len(block)] = block
        return tokens, (tokens >= 0).sum(axis=1)

    return verify


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
        return output_of(self.head(logits), kept)

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


def start_of(model: Any) -> list[int]:
    """What comes before a context: a toy has a start token, a trained checkpoint has none."""
    return [model.known] if isinstance(model, ToyBatchModel) else []


Models: TypeAlias = Callable[[Model], Any]
"""From a model of the contract to the one that computes it, by default a toy."""


def load_torch_backend(
    models: Models | None = None, temperature: float = 1.0
) -> Callable[..., Any]:
    """`torch_backend.generate`, with a seed for each row; greedy at temperature 0."""
    from specref.torch_backend import generate as backend

    model_of = models or remembered(ToyBatchModel)

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
                *pair, prompts, seeds=seeds, lookahead=LOOKAHEAD, max_new_tokens=tokens,
                eos=eos_of(target), temperature=temperature,
            )  # fmt: skip
        return found.tokens

    return generate


def load_transformers(models: Models | None = None, greedy: bool = False) -> Callable[..., Any]:
    """`generate` of Transformers without an assistant, prompts padded to the left."""
    model_of = models or remembered(ToyBatchModel)
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
