"""An OpenVINO model whose next-token law is known, and reads its cache.

The law depends on the last token and on the one two before it. The second is found by attention:
at position i the query is the position, and the key of a cached token its position and two more,
so a cache that is shifted, cropped or filled wrongly changes the law.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo

from specref.arrays import Floats
from specref.models import Model
from specref.vocabulary import Vocabulary

BACK, POSITIONS, SHARP = 2, 64, 60.0


def toy_law(vocabulary: Vocabulary, last: Floats, earlier: Floats) -> Model:
    """The law that `write_model` writes: softmax(last[x] + earlier[y]), y two tokens before x.

    Parameters
    ----------
    last, earlier : ndarray, shape (V, V)
        Logits.
    """

    def next_token(context: Sequence[int]) -> Floats:
        logits = last[context[-1]] + earlier[context[-1 - BACK]]
        weights = np.exp(logits - logits.max())
        return np.asarray(weights / weights.sum())

    return Model(vocabulary, next_token)


def write_model(folder: Path, last: Floats, earlier: Floats) -> Path:
    """Make a folder with a model of this law, for contexts of 3 to 61 tokens.

    The tokenizer beside it, which pipelines ask for, gives 0 for every text.
    """
    folder.mkdir()
    size = len(last)
    token, mask, position = (
        _input(np.int64, [-1, -1], name)
        for name in ("input_ids", "attention_mask", "position_ids")
    )
    beam = _input(np.int32, [-1], "beam_idx")
    places, kinds = np.eye(POSITIONS), np.eye(size, POSITIONS)
    sinks: list[Any] = []
    key = _cached("key", _rows(np.roll(places, -BACK, axis=0), position), token, beam, sinks)
    value = _cached("value", _rows(kinds, token), token, beam, sinks)
    query = _head(_rows(places * SHARP * POSITIONS**0.5, position))
    seen = op.scaled_dot_product_attention(query, key, value, _visible(token, mask, key))
    found = op.reshape(op.transpose(seen, [0, 2, 1, 3]), [0, 0, POSITIONS], True)
    read = np.zeros((POSITIONS, size), np.float32)
    read[:size] = earlier
    logits = op.add(_rows(last, token), op.matmul(found, op.constant(read), False, False))
    model = ov.Model(
        [_output(logits, "logits")], sinks, [token, mask, position, beam], "specref-toy"
    )
    ov.save_model(model, folder / "openvino_model.xml", compress_to_fp16=False)
    text = op.parameter([-1], ov.Type.string, name="string_input")
    shape = op.concat([op.shape_of(text), op.constant([1])], 0)
    ids = (op.broadcast(op.constant(np.int64(one)), shape) for one in (0, 1))
    outputs = map(_output, ids, ("input_ids", "attention_mask"))
    ov.save_model(ov.Model([*outputs], [text]), folder / "openvino_tokenizer.xml")
    for name in ("config", "generation_config"):
        (folder / f"{name}.json").write_text(json.dumps({"vocab_size": size}), encoding="utf-8")
    return folder


def _input(dtype: Any, shape: list[int], name: str) -> Any:
    found = op.parameter(shape, dtype, name=name)
    found.output(0).set_names({name})
    return found


def _output(node: Any, name: str) -> Any:
    node.output(0).set_names({name})
    return op.result(node)


def _rows(table: Floats, index: Any) -> Any:
    return op.gather(op.constant(table.astype(np.float32)), index, op.constant(0))


def _head(rows: Any) -> Any:
    """One head of attention: [B, L, D] as [B, 1, L, D]."""
    return op.transpose(op.reshape(rows, [0, 0, 1, POSITIONS], True), [0, 2, 1, 3])


def _cached(name: str, rows: Any, token: Any, beam: Any, sinks: list[Any]) -> Any:
    """What is cached, with new rows behind it."""
    info = VariableInfo()
    info.data_shape, info.data_type = ov.PartialShape([-1, 1, -1, POSITIONS]), ov.Type.f32
    info.variable_id = f"past_key_values.0.{name}present.0.{name}"
    variable = Variable(info)
    batch = op.gather(op.shape_of(token), op.constant([0]), op.constant(0))
    empty = op.concat([batch, op.constant([1]), op.constant([0]), op.constant([POSITIONS])], 0)
    past = op.read_value(op.broadcast(op.constant(np.float32(0)), empty), variable)
    both = op.concat([op.gather(past, beam, op.constant(0)), _head(rows)], 2)
    sinks.append(op.assign(both, variable))
    return both


def _visible(token: Any, mask: Any, key: Any) -> Any:
    """Additive: not what comes later, nor what is masked."""
    new = op.gather(op.shape_of(token), op.constant(1), op.constant(0))
    all_ = op.gather(op.shape_of(key), op.constant(2), op.constant(0))
    one, zero, never = op.constant(np.int64(1)), op.constant(np.int64(0)), np.float32(-1e9)
    row = op.unsqueeze(op.range(op.subtract(all_, new), all_, one, "i64"), op.constant(1))
    column = op.unsqueeze(op.range(zero, all_, one, "i64"), op.constant(0))
    seen, hidden = op.constant(np.float32(0)), op.constant(never)
    causal = op.select(op.less_equal(column, row), seen, hidden)
    kept = op.select(op.equal(mask, zero), hidden, seen)
    return op.add(op.unsqueeze(causal, [0, 1]), op.unsqueeze(kept, [1, 2]))
