"""A checkpoint as OpenVINO IR with a key-value cache, which OpenVINO GenAI loads."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo

from specref.contrib.checkpoints.law import Law
from specref.contrib.checkpoints.weights import FREQUENCIES, HEAD, Weights


def write_openvino(law: Law, weights: Weights, folder: Path) -> None:
    """Write `openvino_model.xml`, in float32, and a tokenizer that gives 0 for every text.

    The MLP, which is zero, is left out.
    """
    config, tensor = weights.config, weights.by_short_name()
    ids, mask, position, beam = given = inputs()
    angles = np.outer(np.arange(config["max_position_embeddings"]), FREQUENCIES)
    halves = np.concatenate([angles, angles], axis=1)
    waves = (rows(wave(halves), position) for wave in (np.cos, np.sin))
    cos, sin = (op.unsqueeze(wave, op.constant(1)) for wave in waves)
    turned = np.roll(np.eye(HEAD), HEAD // 2, axis=1)
    turned[HEAD // 2 :] *= -1  # (x, y) @ turned = (-y, x)

    def linear(x: Any, name: str) -> Any:
        return op.matmul(x, constant(tensor[name]), False, True)

    def norm(x: Any, name: str) -> Any:
        mean = op.reduce_mean(op.multiply(x, x), op.constant(-1), True)
        root = op.sqrt(op.add(mean, constant(np.array(config["rms_norm_eps"]))))
        return op.multiply(op.divide(x, root), constant(tensor[name]))

    def rotated(x: Any) -> Any:
        other = op.matmul(x, constant(turned), False, False)
        return op.add(op.multiply(x, cos), op.multiply(other, sin))

    embedded = rows(tensor["embed_tokens"], ids)
    x = norm(embedded, "input_layernorm")
    query, key, value = (heads(linear(x, f"{one}_proj"), HEAD) for one in "qkv")
    shape, sinks = (config["num_key_value_heads"], HEAD), list[Any]()
    key = cached("key", rotated(key), beam, shape, sinks)
    value = cached("value", value, beam, shape, sinks)
    found = attention(rotated(query), key, value, mask)
    stream = op.add(embedded, linear(found, "o_proj"))
    save(linear(norm(stream, "norm"), "lm_head"), sinks, given, folder)
    for name, content in {
        "config": config,
        "generation_config": weights.generation_config(),
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")


def inputs() -> tuple[Any, Any, Any, Any]:
    """Ids, mask, positions, and where rows of the batch come from in the cache."""
    names = ("input_ids", "attention_mask", "position_ids")
    ids, mask, position = (_input(np.int64, [-1, -1], name) for name in names)
    return ids, mask, position, _input(np.int32, [-1], "beam_idx")


def constant(table: NDArray[Any]) -> Any:
    """A node that holds a table, in float32."""
    return op.constant(table.astype(np.float32))


def rows(table: NDArray[Any], index: Any) -> Any:
    """The rows of a table that the index names."""
    return op.gather(constant(table), index, op.constant(0))


def heads(found: Any, width: int) -> Any:
    """Heads of a width: [B, L, N * D] as [B, N, L, D]."""
    return op.transpose(op.reshape(found, [0, 0, -1, width], True), [0, 2, 1, 3])


def cached(part: str, new: Any, beam: Any, shape: tuple[int, int], sinks: list[Any]) -> Any:
    """What is cached, with new rows [B, N, L, D] behind it; adds to `sinks` what is cached now."""
    count, width = shape
    info = VariableInfo()
    info.data_shape, info.data_type = ov.PartialShape([-1, count, -1, width]), ov.Type.f32
    info.variable_id = f"past_key_values.0.{part}present.0.{part}"
    variable = Variable(info)
    batch = op.gather(op.shape_of(new), op.constant([0]), op.constant(0))
    empty = op.concat([batch, op.constant([count]), op.constant([0]), op.constant([width])], 0)
    past = op.read_value(op.broadcast(op.constant(np.float32(0)), empty), variable)
    both = op.concat([op.gather(past, beam, op.constant(0)), new], 2)
    sinks.append(op.assign(both, variable))
    return both


def attention(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """What each position finds up to itself: [B, L, N * D]."""
    seen = op.scaled_dot_product_attention(query, key, value, _visible(query, key, mask))
    return op.reshape(op.transpose(seen, [0, 2, 1, 3]), [0, 0, -1], True)


def save(logits: Any, sinks: Sequence[Any], given: Sequence[Any], folder: Path) -> None:
    """Write a model, and a tokenizer that gives 0 for every text: pipelines ask for one."""
    model = ov.Model([_output(logits, "logits")], [*sinks], [*given], "specref")
    ov.save_model(model, folder / "openvino_model.xml", compress_to_fp16=False)
    text = op.parameter([-1], ov.Type.string, name="string_input")
    shape = op.concat([op.shape_of(text), op.constant([1])], 0)
    ids = (op.broadcast(op.constant(np.int64(one)), shape) for one in (0, 1))
    outputs = map(_output, ids, ("input_ids", "attention_mask"))
    ov.save_model(ov.Model([*outputs], [text]), folder / "openvino_tokenizer.xml")


def _input(dtype: Any, shape: list[int], name: str) -> Any:
    found = op.parameter(shape, dtype, name=name)
    found.output(0).set_names({name})
    return found


def _output(node: Any, name: str) -> Any:
    node.output(0).set_names({name})
    return op.result(node)


def _visible(query: Any, key: Any, mask: Any) -> Any:
    """Additive: not what comes later, nor what is masked."""
    new, all_ = (op.gather(op.shape_of(x), op.constant(2), op.constant(0)) for x in (query, key))
    one, zero, never = op.constant(np.int64(1)), op.constant(np.int64(0)), np.float32(-1e9)
    row = op.unsqueeze(op.range(op.subtract(all_, new), all_, one, "i64"), op.constant(1))
    column = op.unsqueeze(op.range(zero, all_, one, "i64"), op.constant(0))
    seen, hidden = op.constant(np.float32(0)), op.constant(never)
    causal = op.select(op.less_equal(column, row), seen, hidden)
    kept = op.select(op.equal(mask, zero), hidden, seen)
    return op.add(op.unsqueeze(causal, [0, 1]), op.unsqueeze(kept, [1, 2]))
