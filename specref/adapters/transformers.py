"""Hugging Face Transformers: `generation.utils._speculative_sampling`."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from specref.adapters.needs import NotInstalledError, require
from specref.arrays import Ints
from specref.optional import PARTS
from specref.vocabulary import Tokens

if TYPE_CHECKING:
    import torch

PROMPT = 0
PACKAGES = ("torch", "transformers")
REMEDY = PARTS["torch"].remedy

__all__ = ["NotInstalledError", "load_verify"]


def load_verify(device: str = "cpu") -> Callable[..., tuple[Ints, Ints]]:
    """The function under test as an implementation of the contract ``verify``, row by row.

    Raises
    ------
    NotInstalledError
        transformers or torch is missing.
    """
    require(PACKAGES, REMEDY)
    import torch
    from transformers.generation.utils import _speculative_sampling

    from specref.adapters.rows import row_by_row

    sample: Callable[..., Any] = _speculative_sampling
    # Until 5.17 it asked whether the assistant had ended; an ended one changes nothing here.
    if "is_done_candidate" in inspect.signature(sample).parameters:
        sample = partial(sample, is_done_candidate=False)

    def verify_row(p: "torch.Tensor", q: "torch.Tensor", drafts: Tokens) -> Tokens:
        candidates = torch.tensor([[PROMPT, *drafts]], device=device)
        tokens, _ = sample(candidates, q[None], len(drafts), p[None])
        return tuple(tokens[0].tolist())

    return row_by_row(verify_row, device, rule="standard")
