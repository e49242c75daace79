"""Parts of OpenVINO models with a key-value cache, as its pipelines ask for them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo


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
    """What is cached, with new rows behind it; adds to `sinks` what is cached now.

    * `part` ({"key", "value"})
    * `new` (node, shape (B, N, L, D))
    * `shape` (N, D)
    """
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
