"""The engines that a checkpoint can be verified with, by its format."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from specref.adapters import llama_cpp, mlx_lm, transformers_checkpoint
from specref.checkpoints.fidelity import Probabilities


class Reader(NamedTuple):
    """An engine that computes the probabilities of a checkpoint.

    Attributes
    ----------
    format : str
    package : str
        Of the engine; its version is shown.
    architectures : tuple of str
    load : callable
        Raises `NotInstalledError`.
    """

    format: str
    package: str
    architectures: tuple[str, ...]
    load: Callable[[Path], Probabilities]


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "transformers": Reader(
            "hf", "transformers", ("llama", "gpt2"), transformers_checkpoint.load_probabilities
        ),
        # Its GPT-2 shares the head with the embedding.
        "mlx-lm": Reader("hf", "mlx-lm", ("llama",), mlx_lm.load_probabilities),
        "llama.cpp": Reader("gguf", "xllamacpp", ("llama",), llama_cpp.load_probabilities),
    }
)
