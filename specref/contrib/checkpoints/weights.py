"""The weights of a language model of one layer whose next-token law is prescribed.

The residual stream is made of blocks: a one-hot of the token, a one-hot of a token looked back
at, and what says the position. At `back` 1 the attention writes nothing and the head reads the
first block; otherwise the attention copies the token `back` - 1 positions before the last one
(or the first one of the text) into the second block, and the head reads that. The MLP is zero.
The head is log P: softmax gives P.

Normalisation does not disturb this: the number of ones in the stream is the same at every
position, so it divides by a constant, and its weights multiply by it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specref.arrays import Floats
from specref.contrib.checkpoints.law import Law

Float32s: TypeAlias = NDArray[np.float32]
FLOOR = -80.0  # the logit of an impossible token: exp(-80) = 2e-35, a normal float32
EPSILON = 1e-6
HEAD = 64
SHARPNESS = 40.0  # by how much the score of the wanted position exceeds all others
MOST_TOKENS = 1000
LLAMA_CONTEXT, LLAMA_BACK, LLAMA_THETA = 2048, 6, 10.0
FREQUENCIES = LLAMA_THETA ** -(np.arange(HEAD // 2) / (HEAD // 2))
GPT2_CONTEXT = 256


@dataclass(frozen=True)
class Weights:
    """Tensors and the configuration, as Hugging Face names them."""

    config: dict[str, Any]
    tensors: dict[str, Float32s]

    def by_short_name(self) -> dict[str, Float32s]:
        """The tensors of the only layer, and those beside it, by the last part of their names."""
        names = {name.removesuffix(".weight").rsplit(".", 1)[-1]: name for name in self.tensors}
        return {short: self.tensors[name] for short, name in names.items()}

    def generation_config(self) -> dict[str, Any]:
        """What `generation_config.json` holds: sampling, with no settings that change the law."""
        names = (f"{name}_token_id" for name in ("bos", "eos", "pad"))
        ids = {name: self.config[name] for name in names}
        return {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, **ids}


def llama(law: Law) -> Weights:
    """A Llama. It finds the position to look back at by its rotary embedding.

    Queries and keys are the same at every position, but for the rotation: the score of a key r
    positions back is the sum of cos(f (r - back + 1)) over the frequencies f, largest at
    r = back - 1, and in a shorter text at its first token. That holds up to a `back` of 6 at this
    base of the frequencies; scores are scaled until the others are 40 below.
    """
    size, looks = law.size, law.back > 1
    _check(law, LLAMA_BACK, "llama")
    width = HEAD * math.ceil((2 * size + 1) / HEAD)
    one = 2 * size  # the dimension that is 1 at every position
    embedding = np.zeros((size, width))
    embedding[:, :size] = np.eye(size)
    embedding[:, one] = 1
    query, key, value, output = np.zeros((4, width, width))
    angles = -(law.back - 1) * FREQUENCIES
    scale = SHARPNESS / _gap(law.back) * math.sqrt(HEAD)
    for head in range(0, width, HEAD):
        query[head : head + HEAD, one] = scale * np.concatenate([np.cos(angles), np.sin(angles)])
        key[head : head + HEAD // 2, one] = 1
    value[:size, :size] = np.eye(size)
    output[size : 2 * size, :size] = np.eye(size) * looks
    layer = "model.layers.0"
    tensors = {
        "model.embed_tokens.weight": embedding,
        f"{layer}.input_layernorm.weight": np.full(width, math.sqrt(2 / width + EPSILON)),
        f"{layer}.self_attn.q_proj.weight": query,
        f"{layer}.self_attn.k_proj.weight": key,
        f"{layer}.self_attn.v_proj.weight": value,
        f"{layer}.self_attn.o_proj.weight": output,
        f"{layer}.post_attention_layernorm.weight": np.ones(width),
        f"{layer}.mlp.gate_proj.weight": np.zeros((HEAD, width)),
        f"{layer}.mlp.up_proj.weight": np.zeros((HEAD, width)),
        f"{layer}.mlp.down_proj.weight": np.zeros((width, HEAD)),
        "model.norm.weight": np.full(width, math.sqrt((2 + looks) / width + EPSILON)),
        "lm_head.weight": _head(law, width),
    }
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": HEAD,
        "num_hidden_layers": 1,
        "num_attention_heads": width // HEAD,
        "num_key_value_heads": width // HEAD,
        "head_dim": HEAD,
        "max_position_embeddings": LLAMA_CONTEXT,
        "rms_norm_eps": EPSILON,
        # Libraries read one or the other.
        "rope_theta": LLAMA_THETA,
        "rope_parameters": {"rope_type": "default", "rope_theta": LLAMA_THETA},
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
    }
    return _weights(law, config, tensors)


def gpt2(law: Law) -> Weights:
    """A GPT-2. Positions are one-hot: any `back` below its context of 256 tokens."""
    size, looks = law.size, law.back > 1
    _check(law, GPT2_CONTEXT - 1, "gpt2")
    width = 2 * size + GPT2_CONTEXT
    here = np.arange(GPT2_CONTEXT)
    there = np.maximum(here - law.back + 1, 0)
    embedding, positions = np.zeros((size, width)), np.zeros((GPT2_CONTEXT, width))
    embedding[:, :size] = np.eye(size)
    positions[here, 2 * size + here] = 1
    query, key, value, output = np.zeros((4, width, width))  # the transposes of Llama's
    query[2 * size + here, there] = SHARPNESS * math.sqrt(width)
    key[2 * size + here, here] = 1
    value[:size, :size] = np.eye(size)
    output[:size, size : 2 * size] = np.eye(size) * looks
    layer = "transformer.h.0"
    tensors = {
        "transformer.wte.weight": embedding,
        "transformer.wpe.weight": positions,
        **_norm(f"{layer}.ln_1", 2, width),
        f"{layer}.attn.c_attn.weight": np.concatenate([query, key, value], axis=1),
        f"{layer}.attn.c_attn.bias": np.zeros(3 * width),
        f"{layer}.attn.c_proj.weight": output,
        f"{layer}.attn.c_proj.bias": np.zeros(width),
        **_norm(f"{layer}.ln_2", 2 + looks, width),
        f"{layer}.mlp.c_fc.weight": np.zeros((width, HEAD)),
        f"{layer}.mlp.c_fc.bias": np.zeros(HEAD),
        f"{layer}.mlp.c_proj.weight": np.zeros((HEAD, width)),
        f"{layer}.mlp.c_proj.bias": np.zeros(width),
        **_norm("transformer.ln_f", 2 + looks, width),
        "lm_head.weight": _head(law, width),
    }
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": width,
        "n_head": 1,
        "n_inner": HEAD,
        "n_layer": 1,
        "n_positions": GPT2_CONTEXT,
        "layer_norm_epsilon": EPSILON,
        "activation_function": "gelu_new",
    }
    return _weights(law, config, tensors)


ARCHITECTURES: Mapping[str, Callable[[Law], Weights]] = MappingProxyType(
    {"llama": llama, "gpt2": gpt2}
)


def _check(law: Law, back: int, architecture: str) -> None:
    if len(law.vocabulary) > MOST_TOKENS:
        raise ValueError(
            f"tokens: {len(law.vocabulary):,} of them, expected at most {MOST_TOKENS:,}"
        )
    if law.back > back:
        raise ValueError(f"back = {law.back}: expected at most {back} for {architecture}")


def _gap(back: int) -> float:
    """By how much the wanted position's score exceeds the next best, at the worst position."""
    scores = np.cos(np.outer(np.arange(LLAMA_CONTEXT), FREQUENCIES)).sum(axis=1)
    in_short_texts = [  # the first token is wanted
        scores[back - 1 - last] - scores[back - last : back].max() for last in range(1, back - 1)
    ]
    return float(min(scores[0] - scores[1:].max(), *in_short_texts, np.inf))


def _norm(name: str, ones: int, width: int) -> dict[str, Floats]:
    """LayerNorm that gives back a stream of so many ones: its mean and deviation are known."""
    mean = ones / width
    deviation = math.sqrt(mean - mean**2 + EPSILON)
    return {f"{name}.weight": np.full(width, deviation), f"{name}.bias": np.full(width, mean)}


def _head(law: Law, width: int) -> Floats:
    """The logits of next tokens (rows) after each token: the start token's are `initial`."""
    table = np.array([*law.rows, law.initial], dtype=np.float64)
    logits = np.full((law.size, law.size), FLOOR)
    logits[:, : law.size - 1][table > 0] = np.log(table[table > 0])
    head = np.zeros((law.size, width))
    block = law.size if law.back > 1 else 0
    head[:, block : block + law.size] = logits.T
    return head


def _weights(law: Law, config: dict[str, Any], tensors: Mapping[str, Floats]) -> Weights:
    common = {
        "vocab_size": law.size,
        "bos_token_id": law.start,
        "eos_token_id": law.eos,
        "pad_token_id": law.eos,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }
    return Weights(
        config | common, {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
    )
