"""Writes checkpoints into a new folder, all or nothing."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from specref.contrib.checkpoints.law import Law, plain
from specref.contrib.checkpoints.weights import ARCHITECTURES, Weights


def _written(
    package: str, file: str, writer: str, law: Law, weights: Weights, folder: Path
) -> None:
    """Write a checkpoint by a function of a file that needs a package."""
    name, kind = package.partition(".")[0], weights.config["model_type"]
    if name != "safetensors" and kind != "llama":
        raise ValueError(f"architecture = {kind}: expected llama for {name}")
    try:
        import_module(package)
    except ImportError:
        raise ImportError(f"{name} is not installed: pip install {name}") from None
    getattr(import_module(f"specref.contrib.checkpoints.{file}"), writer)(law, weights, folder)


WRITERS = {
    "hf": partial(_written, "safetensors.numpy", "hugging_face", "write_hugging_face"),
    "gguf": partial(_written, "gguf", "gguf_file", "write_gguf"),
    "onnx": partial(_written, "onnx", "onnx_file", "write_onnx"),
    "openvino": partial(_written, "openvino", "openvino_file", "write_openvino"),
}
LAW_FILE = "law.json"


def build(
    laws: Mapping[str, Law],
    out: str | Path,
    formats: Sequence[str] = ("hf",),
    architecture: str = "llama",
) -> dict[str, Path]:
    """Write a checkpoint for each distribution, in each of the formats, and a file of it.

    Parameters
    ----------
    laws : mapping
        `{"": …}` or `{"target": …, "drafter": …}`, of distributions: the keys are
        folders in `out`.
    out : path
        A folder that does not exist.
    formats : sequence of {"hf", "gguf", "onnx", "openvino"}
    architecture : {"llama", "gpt2"}
        Formats other than "hf" are for Llama alone.

    Returns
    -------
    dict
        {key: folder}

    Raises
    ------
    FileExistsError
        `out` exists.
    ImportError
        The package of a format is missing.
    ValueError
        An unknown format or architecture, or a distribution that it cannot have.

    Examples
    --------
    >>> import tempfile
    >>> from specref.contrib.checkpoints.law import named_pair
    >>> folder = Path(tempfile.mkdtemp()) / "pair"
    >>> sorted(build(named_pair("order-1"), folder))
    ['drafter', 'target']
    >>> sorted(file.name for file in (folder / "target").iterdir())[:3]
    ['config.json', 'generation_config.json', 'law.json']
    """
    out = Path(out)
    for index, one in enumerate(formats):
        if one not in WRITERS:
            raise ValueError(f"formats[{index}] = {one!r}: expected one of {', '.join(WRITERS)}")
    if architecture not in ARCHITECTURES:
        raise ValueError(
            f"architecture = {architecture!r}: expected one of {', '.join(ARCHITECTURES)}"
        )
    if out.exists():
        raise FileExistsError(f"{out} exists: expected a folder that does not")
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        for key, law in laws.items():
            folder = unfinished / key
            folder.mkdir(parents=True)
            weights = ARCHITECTURES[architecture](law)
            for one in formats:
                WRITERS[one](law, weights, folder)
            (folder / LAW_FILE).write_text(json.dumps(plain(law), indent=2) + "\n")
        unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return {key: out / key for key in laws}
