"""Checkpoints are written whole or not at all, and never over something."""

import json
import sys
from pathlib import Path

import pytest

from specref.contrib.checkpoints.building import build
from specref.contrib.checkpoints.law import Law, as_law, named_pair, plain
from specref.contrib.checkpoints.weights import MOST_TOKENS

PAIR = named_pair("lookback-3")


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
