"""The probabilities that engines compute from a checkpoint, to compare them with its law."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from specref.adapters import llama_cpp, mlx_lm, transformers
from specref.adapters.needs import require
from specref.arrays import Floats
from specref.checkpoints.fidelity import Probabilities
from specref.vocabulary import Tokens


class Reader(NamedTuple):
    """An engine that computes the probabilities of a checkpoint.

    Attributes
    ----------
    format : str
    package : str
        Of the engine; its version is shown.
    architectures : tuple of str
    load : callable
        Maps a folder to the distribution after each of the ids; raises `NotInstalledError`.
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

    from specref.adapters.transformers_generate import without_progress

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
        logits = np.array(model(mx.array([ids]))[0].astype(mx.float32), dtype=np.float64)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        rows: Floats = weights / weights.sum(axis=1, keepdims=True)
        return rows

    return probabilities


def by_llama_cpp(folder: Path) -> Probabilities:
    """As its server reports them: a request for each of the ids."""
    require(llama_cpp.PACKAGES[:1], llama_cpp.REMEDY)
    server = llama_cpp.started(llama_cpp.parameters(folder))

    def probabilities(ids: Tokens) -> Floats:
        return np.array([row(ids[:known]) for known in range(1, len(ids) + 1)])

    def row(ids: Tokens) -> Floats:
        asked = {"prompt": list(ids), "n_predict": 1, "n_probs": MOST, **llama_cpp.ASKED}
        (token,) = server.handle_completions(asked)["choices"][0]["logprobs"]["content"]
        logs = {one["id"]: one["logprob"] for one in token["top_logprobs"]}
        return np.exp([logs[one] for one in range(len(logs))])

    return probabilities


MOST = 2000  # more than a checkpoint has tokens
READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "transformers": Reader("hf", "transformers", ("llama", "gpt2"), by_transformers),
        # Its GPT-2 shares the head with the embedding.
        "mlx-lm": Reader("hf", "mlx-lm", ("llama",), by_mlx_lm),
        "llama.cpp": Reader("gguf", "xllamacpp", ("llama",), by_llama_cpp),
    }
)
