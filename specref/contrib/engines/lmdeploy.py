"""LMDeploy: its rejection sampling, in torch on the CPU and in Triton on CUDA.

Judged are the acceptance of drafts, the token after a rejection, and which bonus token a request
gets. LMDeploy draws bonus tokens outside, with its ordinary sampler: that path is not judged, and
neither are greedy requests beside sampled ones in one batch.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from specref.adapters.needs import imported, require, require_parameters
from specref.contracts.capabilities import capable

if TYPE_CHECKING:
    from torch import Tensor

PACKAGES = ("torch", "lmdeploy")
REMEDY = "pip install lmdeploy"
MODULE = "lmdeploy.pytorch.backends.{}.rejection_sampling"
GIVEN = ("target_logits", "draft_token_ids", "bonus_token_ids", "is_greedy", "draft_probs")


def load_verify(greedy: bool = False) -> Callable[..., Any]:
    """Its `forward` under the contract ``ragged``; all requests have equally many drafts.

    With `greedy` all requests are.
    """
    require(PACKAGES, REMEDY)
    import torch

    cuda = torch.cuda.is_available()
    module = MODULE.format("cuda" if cuda else "default")
    name = f"{'Cuda' if cuda else 'Default'}RejectionSamplingImpl"
    unbound, given = imported(module, f"{name}.forward"), ("self", *GIVEN)
    require_parameters(unbound, f"{name}.forward", given, by_position=4)
    forward = imported(module, name)().forward

    @capable(
        rule="standard", ragged=False, arrays="torch", dtype="float32", greedy=greedy,
        device="cuda" if cuda else "cpu",
    )  # fmt: skip
    def verify(
        *,
        draft_token_ids: "Tensor",
        num_draft_tokens: "Tensor",
        target_logits: "Tensor",
        draft_probs: "Tensor | None",
        bonus_token_ids: "Tensor",
    ) -> "Tensor":
        drafts = draft_token_ids.view(len(num_draft_tokens), -1)
        p = target_logits.view(*drafts.shape, -1)
        q = None if draft_probs is None else draft_probs.view_as(p)
        argmax = bonus_token_ids >= 0 if greedy else None  # for each request
        tokens: Tensor = forward(p, drafts, bonus_token_ids, is_greedy=argmax, draft_probs=q)[0]
        return tokens

    return verify
