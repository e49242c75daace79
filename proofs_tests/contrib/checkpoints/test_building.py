"""Checkpoints are written whole or not at all, and never over something; what each format has.

Tokenizers read and write text as their vocabularies do. GGUF files hold the tensors of the
checkpoint, queries and keys in their own order. ONNX and OpenVINO files have what a runtime asks
for, and compute by attention, in every head; all built-in laws, token by token:
proofs_tests/contrib/engines/test_checkpoints.py.
"""

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specref.contrib.checkpoints import Fidelity, compare
from specref.contrib.checkpoints.building import WRITERS, build
from specref.contrib.checkpoints.law import NAMED, Law, as_law, named_pair, plain
from specref.contrib.checkpoints.weights import HEAD, MOST_TOKENS, Weights, llama
from specref.contrib.engines.checkpoints import READERS

PAIR = named_pair("lookback-3")
FAR, LAW = PAIR["target"], named_pair("lookback")["target"]


@pytest.fixture
def _safetensors() -> None:
    pytest.importorskip("safetensors", reason="not_run (safetensors is not installed)")


@pytest.mark.usefixtures("_safetensors")
def test_each_folder_has_its_law(tmp_path: Path) -> None:
    folders = build(PAIR, tmp_path / "new" / "pair")
    assert folders == {role: tmp_path / "new" / "pair" / role for role in ("target", "drafter")}
    for role, folder in folders.items():
        assert json.loads((folder / "law.json").read_text()) == plain(PAIR[role])
        assert (folder / "model.safetensors").stat().st_size < 150_000
    alone = build({"": PAIR["target"]}, tmp_path / "alone")
    assert alone == {"": tmp_path / "alone"}
    assert (tmp_path / "alone" / "config.json").is_file()


def test_what_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    for out in (tmp_path, tmp_path / "kept"):
        with pytest.raises(FileExistsError, match="exists: expected a folder that does not"):
            build(PAIR, out)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize(
    ("package", "one"),
    [
        ("safetensors.numpy", "hf"),
        ("gguf", "gguf"),
        ("onnx", "onnx"),
        ("openvino", "openvino"),
    ],
)
def test_a_missing_package_says_how_to_install_it(
    package: str, one: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package.split('.')[0]} is not installed: pip inst"):
        build(PAIR, tmp_path / "pair", [one])
    assert not list(tmp_path.iterdir()), "something unfinished is left"


def many(tokens: int) -> Law:
    names = [f"t{index}" for index in range(tokens)]
    flat = [1 / tokens] * tokens
    return as_law({"tokens": names, "initial": flat, "rows": dict.fromkeys(names, flat)})


def test_what_cannot_be_built_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "pair"
    with pytest.raises(ValueError, match=r"ts\[1\] = 'h5': expected one of hf, gguf, onnx, open"):
        build(PAIR, out, ["hf", "h5"])
    with pytest.raises(ValueError, match="architecture = 'mamba': expected one of llama, gpt2"):
        build(PAIR, out, architecture="mamba")
    for one in ("gguf", "onnx", "openvino"):
        with pytest.raises(ValueError, match=f"architecture = gpt2: expected llama for {one}"):
            build(PAIR, out, [one], "gpt2")
    far = as_law({**plain(PAIR["target"]), "back": 7})
    with pytest.raises(ValueError, match="back = 7: expected at most 6 for llama"):
        build({"": far}, out)
    with pytest.raises(ValueError, match="tokens: 1,001 of them, expected at most 1,000"):
        build({"": many(MOST_TOKENS + 1)}, out)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMED)
def test_tokenizers(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="not_run (no transformers)")
    pair = named_pair(name)
    for role, folder in build(pair, tmp_path / "pair").items():
        law, found = pair[role], transformers.AutoTokenizer.from_pretrained(folder)
        vocabulary = law.vocabulary
        ordinary = [str(token) for token in vocabulary.tokens if token != vocabulary.eos]
        for words in itertools.product(ordinary, repeat=3):
            text = "".join(words)
            ids = vocabulary.encode(text)
            assert found(text)["input_ids"] == [law.start, *ids]
            assert found.decode(ids) == text
        assert (found.bos_token_id, found.eos_token_id) == (law.start, law.eos)
        assert found(f"a{vocabulary.eos}")["input_ids"] == [
            law.start,
            vocabulary.ids["a"],
            law.eos,
        ]
        assert found("?", add_special_tokens=False)["input_ids"] == [law.start]


def test_plain_generate_samples_from_the_law_by_default(tmp_path: Path) -> None:
    """No sampler setting of `generation_config.json` changes the law."""
    transformers = pytest.importorskip("transformers", reason="not_run (no transformers)")
    folder = build({"": named_pair("order-1")["target"]}, tmp_path / "one")[""]
    config = transformers.GenerationConfig.from_pretrained(folder)
    assert (config.do_sample, config.temperature, config.top_k, config.top_p) == (True, 1, 0, 1)
    assert config.eos_token_id == 4


def test_interleaving_keeps_heads_apart() -> None:
    pytest.importorskip("gguf", reason="not_run (gguf is not installed)")
    from specref.contrib.checkpoints.gguf_file import interleaved

    rows = np.arange(2 * HEAD, dtype=np.float32)[:, None]
    found = interleaved(rows)[:, 0].reshape(2, HEAD)
    assert found[0, :4].tolist() == [0, 32, 1, 33]
    assert found[1, -2:].tolist() == [95, 127]


def test_the_file_holds_the_tensors(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf", reason="not_run (gguf is not installed)")
    from specref.contrib.checkpoints.gguf_file import interleaved

    build({"": FAR}, tmp_path / "one", ["gguf"])
    reader = gguf.GGUFReader(tmp_path / "one" / "model.gguf")
    found = {tensor.name: tensor.data for tensor in reader.tensors}
    tensors = llama(FAR).tensors
    assert len(found) == len(tensors)
    np.testing.assert_array_equal(found["output.weight"], tensors["lm_head.weight"])
    query = tensors["model.layers.0.self_attn.q_proj.weight"]
    np.testing.assert_array_equal(found["blk.0.attn_q.weight"], interleaved(query))
    assert reader.fields["tokenizer.ggml.eos_token_id"].contents() == FAR.eos


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
