"""Small random models of published architectures, with windows of `WINDOW` tokens."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel

from proofs_tests.helpers.torch.models import POSITIONS, gpt2, llama

WINDOW = 8
HYBRID = ("sliding_attention", "full_attention")
EXPERTS = MappingProxyType({"num_experts_per_tok": 1})


SIZES = MappingProxyType(
    {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": POSITIONS,
        "initializer_range": 0.5,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
)


def made(kind: str, seed: int = 0, *, model: str = "", size: int = 7, **more: Any) -> Any:
    """A model of two layers of the configuration ``kind + "Config"``."""
    config = getattr(transformers, f"{kind}Config")(vocab_size=size, **{**SIZES, **more})
    torch.manual_seed(seed)
    return getattr(transformers, f"{model or kind}ForCausalLM")(config).eval()


window = partial(made, sliding_window=WINDOW)
some = partial(window, use_sliding_window=True, max_window_layers=1)
Family = Callable[..., PreTrainedModel]

SLIDING: Mapping[str, Family] = MappingProxyType(
    {
        "gemma2": partial(window, "Gemma2", head_dim=8),
        "gemma3": partial(window, "Gemma3Text", model="Gemma3", head_dim=8, layer_types=[*HYBRID]),
        "qwen2": partial(some, "Qwen2"),
        "qwen3": partial(some, "Qwen3", head_dim=8),
        "mistral": partial(window, "Mistral"),
        "ministral": partial(window, "Ministral", head_dim=8, layer_types=[*HYBRID]),
        "phi3": partial(window, "Phi3"),
        "starcoder2": partial(window, "Starcoder2"),
        "cohere2": partial(window, "Cohere2", head_dim=8),
        "olmo3": partial(window, "Olmo3"),
        "exaone4": partial(window, "Exaone4", layer_types=[*HYBRID]),
        "gpt-oss": partial(
            window,
            "GptOss",
            head_dim=8,
            num_local_experts=2,
            rope_parameters={"rope_type": "default", "rope_theta": 150000.0},
            **EXPERTS,
        ),
        "mixtral": partial(window, "Mixtral", num_local_experts=2, **EXPERTS),
    }
)
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "llama": llama,
        "gpt2": gpt2,
        "qwen2, window not used": partial(window, "Qwen2"),
        **SLIDING,
    }
)
# Experts are read in float32 at most, and eager attention takes its softmax in float32.
ROUNDED = ("gemma2", "gpt-oss", "mixtral")
LINEAR = ("linear_attention", "full_attention")
WITHOUT_CROPS: Mapping[str, tuple[Family, str]] = MappingProxyType(
    {
        "mamba": (partial(made, "Mamba", state_size=4), "a state that cannot be taken back"),
        "jamba": (
            partial(
                made,
                "Jamba",
                attn_layer_period=2,
                attn_layer_offset=1,
                mamba_d_state=4,
                mamba_dt_rank=2,
                num_experts=2,
                **EXPERTS,
            ),
            "a state that cannot be taken back",
        ),
        "qwen3-next": (
            partial(
                made,
                "Qwen3Next",
                head_dim=8,
                layer_types=[*LINEAR],
                linear_num_value_heads=2,
                linear_num_key_heads=2,
                linear_key_head_dim=8,
                linear_value_head_dim=8,
                num_experts=2,
                moe_intermediate_size=8,
                shared_expert_intermediate_size=8,
                **EXPERTS,
            ),
            "a state that cannot be taken back",
        ),
        "rwkv": (
            partial(made, "Rwkv", attention_hidden_size=16, context_length=POSITIONS),
            "a state that cannot be taken back",
        ),
        "lfm2": (partial(made, "Lfm2", layer_types=["conv", "full_attention"]), "layers of conv"),
        "bloom": (partial(made, "Bloom", n_head=2, n_layer=2), "no position_ids"),
        "gpt-neo": (
            partial(
                made,
                "GPTNeo",
                attention_types=[[["global", "local"], 1]],
                num_layers=2,
                num_heads=2,
                window_size=WINDOW,
            ),
            "attention that counts places in the cache",
        ),
    }
)
