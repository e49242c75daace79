"""Engines compute the laws of checkpoints, each where its package is installed.

Transformers on all of them: proofs_tests/contrib/checkpoints/test_weights.py.
"""

from pathlib import Path

import numpy as np
import pytest

from specref.adapters.needs import NotInstalledError
from specref.contrib.checkpoints import NAMED, build, compare, named_pair
from specref.contrib.engines.checkpoints import READERS

FORMATS = {"gguf": ("gguf",), "onnx": ("onnx",)}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("engine", ["mlx-lm", "llama.cpp", "onnxruntime-genai", "openvino"])
def test_probabilities_are_the_law(engine: str, name: str, tmp_path: Path) -> None:
    reader = READERS[engine]
    for package in (reader.package.replace("-", "_"), *FORMATS.get(reader.format, ())):
        pytest.importorskip(package, reason=f"not_run ({package} is not installed)")
    law = named_pair(name)["target"]
    folder = build({"": law}, tmp_path / "one", [reader.format])[""]
    found = compare(law, reader.load(folder), np.random.default_rng(1))
    assert found.rows == len(law.vocabulary)
    assert found.largest < 5e-7


@pytest.mark.parametrize("engine", READERS)
def test_absent_engines_say_how_to_install_them(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = {
        "transformers": "torch",
        "mlx-lm": "mlx",
        "llama.cpp": "xllamacpp",
        "onnxruntime-genai": "onnxruntime_genai",
        "openvino": "openvino",
    }[engine]
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(NotInstalledError, match=f"{package} is not installed: pip install"):
        READERS[engine].load(Path())
