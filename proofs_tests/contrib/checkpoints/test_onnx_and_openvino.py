"""ONNX and OpenVINO files have what a runtime asks for, and compute by attention, in every head.

All built-in laws, token by token: proofs_tests/contrib/engines/test_checkpoints.py.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specref.contrib.checkpoints import Fidelity, compare, named_pair
from specref.contrib.checkpoints.building import WRITERS
from specref.contrib.checkpoints.law import Law, as_law
from specref.contrib.checkpoints.weights import Weights, llama
from specref.contrib.engines.checkpoints import READERS

LAW = named_pair("lookback")["target"]
PACKAGES = {"onnxruntime-genai": ("onnx", "onnxruntime_genai"), "openvino": ("openvino",)}


def written(engine: str, law: Law, weights: Weights, folder: Path) -> Fidelity:
    """What an engine computes of a checkpoint with such weights."""
    for package in PACKAGES[engine]:
        pytest.importorskip(package, reason=f"not_run ({package} is not installed)")
    reader = READERS[engine]
    WRITERS[reader.format](law, weights, folder)
    return compare(law, reader.load(folder), np.random.default_rng(1), length=20)


@pytest.mark.parametrize("engine", PACKAGES)
def test_a_law_of_two_heads(engine: str, tmp_path: Path) -> None:
    names = [f"t{index}" for index in range(40)]
    flat = np.random.default_rng(2).dirichlet(np.ones(40), size=40)
    rows = {name: list(row / row.sum()) for name, row in zip(names, flat, strict=True)}
    law = as_law({"tokens": names, "back": 3, "initial": rows["t0"], "rows": rows})
    weights = llama(law)
    assert weights.config["num_attention_heads"] == 2
    assert written(engine, law, weights, tmp_path).largest < 5e-7


@pytest.mark.parametrize("part", ["q_proj", "k_proj", "v_proj", "o_proj"])
@pytest.mark.parametrize("engine", PACKAGES)
def test_every_part_of_attention_matters(engine: str, part: str, tmp_path: Path) -> None:
    weights = llama(LAW)
    name = f"model.layers.0.self_attn.{part}.weight"
    tensors = {**weights.tensors, name: np.zeros_like(weights.tensors[name])}
    assert written(engine, LAW, replace(weights, tensors=tensors), tmp_path).largest > 0.1


def test_the_ids_of_a_law_without_eos(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="not_run (onnx is not installed)")
    endless = as_law({"tokens": ["a"], "initial": [1], "rows": {"a": [1]}})
    for law, end in ((LAW, 4), (endless, 1)):
        WRITERS["onnx"](law, llama(law), tmp_path)
        model = json.loads((tmp_path / "genai_config.json").read_text())["model"]
        assert model["eos_token_id"] == end
        assert model["bos_token_id"] == law.start
        assert model["vocab_size"] == law.size
