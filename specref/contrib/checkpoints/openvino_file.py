"""A checkpoint as OpenVINO IR with a key-value cache, which OpenVINO GenAI loads."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from specref.contrib.checkpoints.hugging_face import generation_config
from specref.contrib.checkpoints.law import Law
from specref.contrib.checkpoints.weights import FREQUENCIES, HEAD, Weights


def write_openvino(law: Law, weights: Weights, folder: Path) -> None:
    """Write `openvino_model.xml`, in float32, and a tokenizer that gives 0 for every text.

    The MLP, which is zero, is left out.

    * raises `ImportError`: openvino is missing.
    * raises `ValueError`: It is no Llama.
    """
    config = weights.config
    if config["model_type"] != "llama":
        raise ValueError(f"architecture = {config['model_type']}: expected llama for openvino")
    try:
        from openvino import opset13 as op
    except ImportError:
        raise ImportError("openvino is not installed: pip install openvino") from None
    from specref.contrib.checkpoints import openvino_parts as parts

    tensor = {
        name.removesuffix(".weight").rsplit(".", 1)[-1]: tensor
        for name, tensor in weights.tensors.items()
    }
    ids, mask, position, beam = given = parts.inputs()
    angles = np.outer(np.arange(config["max_position_embeddings"]), FREQUENCIES)
    halves = np.concatenate([angles, angles], axis=1)
    waves = (parts.rows(wave(halves), position) for wave in (np.cos, np.sin))
    cos, sin = (op.unsqueeze(wave, op.constant(1)) for wave in waves)
    turned = np.roll(np.eye(HEAD), HEAD // 2, axis=1)
    turned[HEAD // 2 :] *= -1  # (x, y) @ turned = (-y, x)

    def linear(x: Any, name: str) -> Any:
        return op.matmul(x, parts.constant(tensor[name]), False, True)

    def norm(x: Any, name: str) -> Any:
        mean = op.reduce_mean(op.multiply(x, x), op.constant(-1), True)
        root = op.sqrt(op.add(mean, parts.constant(np.array(config["rms_norm_eps"]))))
        return op.multiply(op.divide(x, root), parts.constant(tensor[name]))

    def rotated(x: Any) -> Any:
        other = op.matmul(x, parts.constant(turned), False, False)
        return op.add(op.multiply(x, cos), op.multiply(other, sin))

    embedded = parts.rows(tensor["embed_tokens"], ids)
    x = norm(embedded, "input_layernorm")
    query, key, value = (parts.heads(linear(x, f"{one}_proj"), HEAD) for one in "qkv")
    shape, sinks = (config["num_key_value_heads"], HEAD), list[Any]()
    key = parts.cached("key", rotated(key), beam, shape, sinks)
    value = parts.cached("value", value, beam, shape, sinks)
    found = parts.attention(rotated(query), key, value, mask)
    stream = op.add(embedded, linear(found, "o_proj"))
    parts.save(linear(norm(stream, "norm"), "lm_head"), sinks, given, folder)
    for name, content in {
        "config": config,
        "generation_config": generation_config(weights),
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
