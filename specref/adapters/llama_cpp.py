"""llama.cpp, by the package xllamacpp, on checkpoints of a known law."""

from pathlib import Path
from typing import Any

import numpy as np

from specref.adapters.needs import require
from specref.arrays import Floats
from specref.checkpoints.fidelity import Probabilities
from specref.vocabulary import Tokens

PACKAGES = ("xllamacpp",)
REMEDY = "pip install xllamacpp"
PLAIN = {"temperature": 1.0, "samplers": ["temperature"], "cache_prompt": False}


def load_server(folder: Path, configure: Any = None) -> Any:
    """llama.cpp's server, in this process, on the CPU, with one slot.

    Raises
    ------
    NotInstalledError
        xllamacpp is missing.
    """
    require(PACKAGES, REMEDY)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(folder / "model.gguf")
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 512, 1, False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(params)


def load_probabilities(folder: Path) -> Probabilities:
    """The distribution after each of the ids, as the server reports it: a request for each.

    Raises
    ------
    NotInstalledError
        xllamacpp is missing.
    """
    server = load_server(folder)

    def probabilities(ids: Tokens) -> Floats:
        return np.array([row(ids[:known]) for known in range(1, len(ids) + 1)])

    def row(ids: Tokens) -> Floats:
        asked = {"prompt": list(ids), "n_predict": 1, "n_probs": 1000, **PLAIN}
        (token,) = server.handle_completions(asked)["choices"][0]["logprobs"]["content"]
        logs = {one["id"]: one["logprob"] for one in token["top_logprobs"]}
        return np.exp([logs[one] for one in range(len(logs))])

    return probabilities
