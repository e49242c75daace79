"""Hugging Face Transformers: `generation.utils._speculative_sampling`."""

from collections.abc import Callable
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from specref.vocabulary import Tokens

PROMPT = 0


class NotInstalledError(ImportError):
    """The implementation's package is not installed."""


def load(seed: int, device: str = "cpu") -> tuple[str, Callable[..., Tokens]]:
    """The function under test as a `Verify`, and its name with the versions it came from.

    Parameters
    ----------
    seed : int
        For torch's global generator, which the function draws from.
    device : str
        Where the function runs.

    Raises
    ------
    NotInstalledError
        transformers or torch is missing.
    """
    try:
        import torch
        from transformers.generation.utils import _speculative_sampling
    except ImportError as error:
        raise NotInstalledError(
            f"{error.name} is not installed: pip install 'specref[torch]'"
        ) from None
    torch.manual_seed(seed)

    def verify(p: NDArray[np.float64], q: NDArray[np.float64], drafts: Tokens) -> Tokens:
        candidates = torch.tensor([[PROMPT, *drafts]], device=device)
        tokens, _ = _speculative_sampling(candidates, logits(q), len(drafts), logits(p))
        return tuple(tokens[0].tolist())

    def logits(probabilities: NDArray[np.float64]) -> "torch.Tensor":
        return torch.from_numpy(probabilities).log().float()[None].to(device)

    return f"transformers {version('transformers')} _speculative_sampling", verify
