"""Hugging Face Transformers: `generation.utils._speculative_sampling`."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from specref.adapters.needs import NotInstalledError, imported, require, require_parameters
from specref.arrays import Ints
from specref.optional import PARTS
from specref.vocabulary import Tokens

if TYPE_CHECKING:
    import torch

PROMPT = 0
PACKAGES = ("torch", "transformers")
REMEDY = PARTS["torch"].remedy
NAME = "_speculative_sampling"
GIVEN = ("candidate_input_ids", "candidate_logits", "candidate_length", "new_logits")
# The second is an ensemble with the drafter, which is not lossless: off by default in 5.24.
OFF = ("is_done_candidate", "assistant_ensemble_weight")

__all__ = ["NotInstalledError", "load_verify"]


def load_verify(device: str = "cpu") -> Callable[..., tuple[Ints, Ints]]:
    """The function under test as an implementation of the contract ``verify``, row by row."""
    require(PACKAGES, REMEDY)
    import torch

    from specref.contrib.engines.toys import row_by_row

    sample: Callable[..., Any] = imported("transformers.generation.utils", NAME)
    require_parameters(sample, NAME, GIVEN, OFF)
    # Until 5.17 it asked whether the assistant had ended; an ended one changes nothing here.
    if "is_done_candidate" in inspect.signature(sample).parameters:
        sample = partial(sample, is_done_candidate=False)

    def verify_row(p: "torch.Tensor", q: "torch.Tensor", drafts: Tokens) -> Tokens:
        candidates = torch.tensor([[PROMPT, *drafts]], device=device)
        given = (candidates, q[None], len(drafts), p[None])
        tokens, _ = sample(**dict(zip(GIVEN, given, strict=True)))
        return tuple(tokens[0].tolist())

    return row_by_row(verify_row, device, rule="standard")
