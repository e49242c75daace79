"""Hugging Face Transformers: `generation.utils._speculative_sampling`."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from specref.adapters.needs import NotInstalledError, require
from specref.arrays import Floats, Ints, one_hot_rows
from specref.contracts.capabilities import capable
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

    A row without drafts is drawn from the target by `torch.multinomial`, as `generate` does:
    the function itself is never called for one.

    Raises
    ------
    NotInstalledError
        transformers or torch is missing.
    """
    require(PACKAGES, REMEDY)
    import torch
    from transformers.generation.utils import _speculative_sampling

    from specref.contracts.torch_state import seeded

    sample: Callable[..., Any] = _speculative_sampling
    # Until 5.17 it asked whether the assistant had ended; an ended one changes nothing here.
    if "is_done_candidate" in inspect.signature(sample).parameters:
        sample = partial(sample, is_done_candidate=False)

    def verify_row(p: "torch.Tensor", q: "torch.Tensor", drafts: Tokens) -> Tokens:
        if not drafts:
            return (int(torch.multinomial(p[0].softmax(dim=-1), num_samples=1)),)
        candidates = torch.tensor([[PROMPT, *drafts]], device=device)
        tokens, _ = sample(candidates, q[None], len(drafts), p[None])
        return tuple(tokens[0].tolist())

    @capable(rule="standard")
    def verify(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator,
    ) -> tuple[Ints, Ints]:
        """`_speculative_sampling` on every row of a batch."""
        size = target_probs.shape[2]
        q = one_hot_rows(draft_tokens, size) if draft_probs is None else draft_probs
        laws = _logits(target_probs, device), _logits(q, device)
        tokens = np.full((len(draft_tokens), draft_tokens.shape[1] + 1), -1)
        with seeded(rng, device), torch.no_grad():
            for row, (p_row, q_row, drafts) in enumerate(zip(*laws, draft_tokens, strict=True)):
                known = tuple(drafts[drafts >= 0].tolist())
                block = verify_row(p_row[: len(known) + 1], q_row[: len(known)], known)
                tokens[row, : len(block)] = block
        return tokens, (tokens >= 0).sum(axis=1)

    return verify


def _logits(probabilities: NDArray[np.float64], device: str) -> "torch.Tensor":
    import torch

    return torch.from_numpy(probabilities).log().float().to(device)
