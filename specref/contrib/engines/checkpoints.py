"""The probabilities that engines compute from a checkpoint, to compare them with its law."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from specref.adapters.needs import require
from specref.arrays import Floats
from specref.contrib.checkpoints.fidelity import Probabilities
from specref.contrib.engines import (
    llama_cpp,
    mlx_lm,
    onnxruntime_genai,
    openvino_genai,
    transformers,
)
from specref.vocabulary import Tokens


class Reader(NamedTuple):
    """An engine that computes the probabilities of a checkpoint.

    * `load`: Maps a folder to the distribution after each of the ids; raises `NotInstalledError`.
    """

    format: str
    package: str
    architectures: tuple[str, ...]
    load: Callable[[Path], Probabilities]


def by_transformers(folder: Path) -> Probabilities:
    """In float32 on the CPU; softmax in float64."""
    require(transformers.PACKAGES, transformers.REMEDY)
    import torch
    from transformers import AutoModelForCausalLM

    from specref.contrib.engines.calling_generate import without_progress

    with without_progress():
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    def probabilities(ids: Tokens) -> Floats:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids])).logits[0]
        rows: Floats = logits.double().softmax(dim=-1).numpy()
        return rows

    return probabilities


def by_mlx_lm(folder: Path) -> Probabilities:
    """In float32; softmax in float64."""
    require(mlx_lm.PACKAGES, mlx_lm.REMEDY)
    import mlx.core as mx
    from mlx_lm.utils import load_model

    model, _ = load_model(folder)

    def probabilities(ids: Tokens) -> Floats:
        logits = model(mx.array([ids]))[0].astype(mx.float32)
        return softmax(np.array(logits, np.float64))

    return probabilities


def by_llama_cpp(folder: Path) -> Probabilities:
    """As its server reports them: a request for each of the ids."""
    require(llama_cpp.PACKAGES[:1], llama_cpp.REMEDY)
    from xllamacpp import Server

    server = Server(llama_cpp.parameters(folder))

    def probabilities(ids: Tokens) -> Floats:
        return np.array([row(ids[:known]) for known in range(1, len(ids) + 1)])

    def row(ids: Tokens) -> Floats:
        asked = {"prompt": list(ids), "n_predict": 1, "n_probs": MOST, **llama_cpp.ASKED}
        (token,) = server.handle_completions(asked)["choices"][0]["logprobs"]["content"]
        logs = {one["id"]: one["logprob"] for one in token["top_logprobs"]}
        return np.exp([logs[one] for one in range(len(logs))])

    return probabilities


def by_onnxruntime_genai(folder: Path) -> Probabilities:
    """In float32, one of the ids after the other; softmax in float64."""
    require(onnxruntime_genai.PACKAGES[:1], onnxruntime_genai.REMEDY)
    import onnxruntime_genai as genai

    model = genai.Model(str(folder))

    def probabilities(ids: Tokens) -> Floats:
        params = genai.GeneratorParams(model)
        params.set_search_options(max_length=len(ids) + 1)
        generator, logits = genai.Generator(model, params), []
        for one in ids:
            generator.append_tokens(np.array([one], np.int32))
            logits.append(generator.get_output("logits")[0, -1])
        return softmax(np.array(logits, np.float64))

    return probabilities


def by_openvino(folder: Path) -> Probabilities:
    """In float32 on the CPU, one of the ids after the other; softmax in float64."""
    require(("openvino",), openvino_genai.REMEDY)
    import openvino

    file, settings = folder / "openvino_model.xml", openvino_genai.EXACT
    request = openvino.Core().compile_model(file, "CPU", settings).create_infer_request()

    def probabilities(ids: Tokens) -> Floats:
        request.reset_state()
        logits = []
        for position, one in enumerate(ids):
            given = {
                "input_ids": np.array([[one]]),
                "attention_mask": np.ones((1, position + 1), np.int64),
                "position_ids": np.array([[position]]),
                "beam_idx": np.zeros(1, np.int32),
            }
            logits.append(request.infer(given)["logits"][0, 0].copy())
        return softmax(np.array(logits, np.float64))

    return probabilities


def softmax(logits: Floats) -> Floats:
    """Of each row."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


MOST = 2000  # more than a checkpoint has tokens
READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "transformers": Reader("hf", "transformers", ("llama", "gpt2"), by_transformers),
        # Its GPT-2 shares the head with the embedding.
        "mlx-lm": Reader("hf", "mlx-lm", ("llama",), by_mlx_lm),
        "llama.cpp": Reader("gguf", "xllamacpp", ("llama",), by_llama_cpp),
        "onnxruntime-genai": Reader("onnx", "onnxruntime-genai", ("llama",), by_onnxruntime_genai),
        "openvino": Reader("openvino", "openvino", ("llama",), by_openvino),
    }
)
