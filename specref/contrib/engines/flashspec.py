"""flashspec: `sampling.rejection.rejection_step`, and its `…_onehot` for drafts without laws."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from specref.adapters.needs import imported, require, require_parameters
from specref.contracts.capabilities import capable

if TYPE_CHECKING:
    from torch import Generator, Tensor

PACKAGES = ("torch", "flashspec")
REMEDY = "pip install flashspec"
MODULE = "flashspec.sampling.rejection"
GIVEN = ("draft_token_ids", "target_logprobs", "generator")


def load_verify() -> Callable[..., Any]:
    """Both functions under the contract ``ragged``; all requests have equally many drafts."""
    require(PACKAGES, REMEDY)
    from torch import cat

    step, one_hot = (imported(MODULE, f"rejection_step{end}") for end in ("", "_onehot"))
    require_parameters(step, "rejection_step", (*GIVEN, "draft_logprobs"), by_position=1)
    require_parameters(one_hot, "rejection_step_onehot", GIVEN, ("draft_len",), 1)

    @capable(rule="standard", ragged=False, arrays="torch", dtype="float32")
    def verify(
        *,
        draft_token_ids: "Tensor",
        num_draft_tokens: "Tensor",
        target_logits: "Tensor",
        draft_logits: "Tensor | None",
        generator: "Generator",
    ) -> tuple["Tensor", "Tensor"]:
        drafts = draft_token_ids.view(len(num_draft_tokens), -1)
        rows, size = len(drafts), target_logits.shape[1]
        given = {"target_logprobs": target_logits.log_softmax(-1).view(rows, -1, size)}
        if draft_logits is not None:
            given["draft_logprobs"] = draft_logits.log_softmax(-1).view(rows, -1, size)
        verified = one_hot if draft_logits is None else step
        count, last = verified(drafts, **given, generator=generator).T
        tokens = cat([drafts, last[:, None]], dim=1)
        return tokens.scatter(1, count[:, None], last[:, None]), count + 1

    return verify
