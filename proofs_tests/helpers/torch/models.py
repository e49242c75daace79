"""Small random models in torch, and their laws by teacher forcing, which texts are judged by."""

from collections.abc import Mapping
from functools import cache
from itertools import product
from types import MappingProxyType

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)

from specref.distributions import Probabilities, top_k, top_p, with_temperature
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

POSITIONS = 64


def llama(seed: int = 0, *, size: int = 7, layers: int = 2) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=POSITIONS,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(seed)
    return LlamaForCausalLM(config).eval()


def gpt2(seed: int = 0, *, size: int = 7, layers: int = 2) -> GPT2LMHeadModel:
    config = GPT2Config(
        vocab_size=size,
        n_embd=16,
        n_layer=layers,
        n_head=2,
        n_positions=POSITIONS,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(seed)
    return GPT2LMHeadModel(config).eval()


MODELS = MappingProxyType({"llama": llama, "gpt2": gpt2})


@cache
def small(name: str, seed: int, size: int) -> PreTrainedModel:
    """One layer, in float64."""
    return MODELS[name](seed, size=size, layers=1).double()


@cache
def laws(model: PreTrainedModel, prompt: Tokens, length: int) -> Mapping[Tokens, Probabilities]:
    """The law after a prompt and each continuation of fewer than `length` tokens."""
    found: dict[Tokens, Probabilities] = {}
    for count in range(length):
        texts = list(product(range(model.config.vocab_size), repeat=count))
        with torch.no_grad():
            logits = model(torch.tensor([(*prompt, *text) for text in texts])).logits[:, -1]
        found |= dict(zip(texts, logits.softmax(-1).numpy(), strict=True))
    return MappingProxyType(found)


def shaped(p: Probabilities, temperature: float = 1, k: int = 0, mass: float = 1) -> Probabilities:
    """Temperature, then top-k, then top-p, by the definitions of `specref.distributions`."""
    return top_p(top_k(with_temperature(p, temperature), k or len(p)), mass)


def as_model(
    model: PreTrainedModel,
    vocabulary: Vocabulary,
    prompt: Tokens,
    length: int,
    shape: Mapping[str, float],
) -> Model:
    """What a model does after a prompt, for the first tokens."""
    rows = laws(model, prompt, length)
    return Model(vocabulary, lambda context: shaped(rows[context], **shape))
