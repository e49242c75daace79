"""A checkpoint as an ONNX graph with a key-value cache, which onnxruntime-genai loads.

Attention is GroupQueryAttention of ONNX Runtime. The MLP, which is zero, is left out.
"""

import json
from pathlib import Path

import numpy as np
import onnx

from specref.contrib.checkpoints.law import Law
from specref.contrib.checkpoints.weights import FREQUENCIES, HEAD, Weights

GRAPH = """\
<ir_version: 11, opset_import: ["": 23, "com.microsoft": 1]>
llama (int64[batch, new] input_ids, int64[batch, all] attention_mask,
       float[batch, {heads}, past, {head}] past_key_0,
       float[batch, {heads}, past, {head}] past_value_0)
   => (float[batch, new, {size}] logits,
       float[batch, {heads}, all, {head}] present_key_0,
       float[batch, {heads}, all, {head}] present_value_0)
{{
    embedded = Gather (embed_tokens, input_ids)
    x = RMSNormalization <epsilon = {epsilon:f}> (embedded, input_layernorm)
    q = MatMul (x, q_proj)
    k = MatMul (x, k_proj)
    v = MatMul (x, v_proj)
    one = Constant <value = int64[1] {{1}}> ()
    tokens = ReduceSum <keepdims = 0> (attention_mask, one)
    before_last = Sub (tokens, one)
    lengths = Cast <to = 6> (before_last)
    shape = Shape <start = 1> (attention_mask)
    total = Cast <to = 6> (shape)
    attended, present_key_0, present_value_0 = com.microsoft.GroupQueryAttention
        <num_heads = {heads}, kv_num_heads = {heads}, do_rotary = 1>
        (q, k, v, past_key_0, past_value_0, lengths, total, cos, sin)
    o = MatMul (attended, o_proj)
    stream = Add (embedded, o)
    y = RMSNormalization <epsilon = {epsilon:f}> (stream, norm)
    logits = MatMul (y, lm_head)
}}
"""


def write_onnx(law: Law, weights: Weights, folder: Path) -> None:
    """Write `model.onnx`, in float32, and `genai_config.json` into a folder that exists."""
    config = weights.config
    heads, length = config["num_attention_heads"], config["max_position_embeddings"]
    graph = GRAPH.format(heads=heads, head=HEAD, size=law.size, epsilon=config["rms_norm_eps"])
    model = onnx.parser.parse_model(graph)
    angles = np.outer(np.arange(length), FREQUENCIES)
    tensors = {"cos": np.cos(angles), "sin": np.sin(angles)}
    for short, tensor in weights.by_short_name().items():
        tensors[short] = tensor.T if short.endswith(("_proj", "head")) else tensor
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(tensor.astype(np.float32), name)
        for name, tensor in tensors.items()
        if name in used
    )
    onnx.checker.check_model(model)
    onnx.save(model, folder / "model.onnx")
    end = law.start if law.eos is None else law.eos
    decoder = {
        "filename": "model.onnx",
        "head_size": HEAD,
        "hidden_size": config["hidden_size"],
        "num_attention_heads": heads,
        "num_hidden_layers": 1,
        "num_key_value_heads": heads,
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_%d",
            "past_value_names": "past_value_%d",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present_key_%d",
            "present_value_names": "present_value_%d",
        },
    }
    ids = {"bos_token_id": law.start, "eos_token_id": end, "pad_token_id": end}
    content = {
        "model": {
            "type": "llama",
            **ids,
            "vocab_size": law.size,
            "context_length": length,
            "decoder": decoder,
        },
        "search": {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0},
    }
    (folder / "genai_config.json").write_text(json.dumps(content, indent=2) + "\n")
