"""GGUF files hold the tensors of the checkpoint, queries and keys in their own order."""

from pathlib import Path

import numpy as np
import pytest

from specref.contrib.checkpoints.building import build
from specref.contrib.checkpoints.gguf_file import interleaved
from specref.contrib.checkpoints.law import named_pair
from specref.contrib.checkpoints.weights import HEAD, llama

LAW = named_pair("lookback-3")["target"]


def test_interleaving_keeps_heads_apart() -> None:
    rows = np.arange(2 * HEAD, dtype=np.float32)[:, None]
    found = interleaved(rows)[:, 0].reshape(2, HEAD)
    assert found[0, :4].tolist() == [0, 32, 1, 33]
    assert found[1, -2:].tolist() == [95, 127]


def test_the_file_holds_the_tensors(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf", reason="not_run (gguf is not installed)")
    build({"": LAW}, tmp_path / "one", ["gguf"])
    reader = gguf.GGUFReader(tmp_path / "one" / "model.gguf")
    found = {tensor.name: tensor.data for tensor in reader.tensors}
    tensors = llama(LAW).tensors
    assert len(found) == len(tensors)
    np.testing.assert_array_equal(found["output.weight"], tensors["lm_head.weight"])
    query = tensors["model.layers.0.self_attn.q_proj.weight"]
    np.testing.assert_array_equal(found["blk.0.attn_q.weight"], interleaved(query))
    assert reader.fields["tokenizer.ggml.eos_token_id"].contents() == LAW.eos
