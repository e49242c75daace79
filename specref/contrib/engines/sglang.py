"""SGLang: the Triton kernel that verifies chains, token by token or as blocks."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import NotInstalledError, imported_alone, require, require_parameters
from specref.contracts.capabilities import capable

NAME, PACKAGES = "sglang", ("torch", "triton")
REMEDY = "pip install --no-deps sglang"
FILE = "kernels/ops/speculative/reject_sampling.py"
GIVEN = (
    "predicts", "accept_index", "accept_token_num", "candidates", "retrive_index",
    "retrive_next_token", "retrive_next_sibling", "uniform_samples",
    "uniform_samples_for_final_sampling", "target_probs", "draft_probs", "threshold_single",
    "threshold_acc", "deterministic", "block_verification",
)  # fmt: skip


def load_verify(block: bool = False) -> Callable[..., Any]:
    """`chain_speculative_sampling_triton` under ``ragged``; requests have equally many drafts.

    The file is read alone: the package asks for many others. Without CUDA it runs in Triton's
    interpreter, for which ``TRITON_INTERPRET=1`` must be set before Python starts.
    """
    require(PACKAGES, "pip install torch triton")
    import torch
    from triton import knobs

    cuda = torch.cuda.is_available()
    name = "chain_speculative_sampling_triton"
    kernel = imported_alone(NAME, FILE, name, REMEDY)
    if not cuda and not knobs.runtime.interpret:
        raise NotInstalledError("no CUDA, and TRITON_INTERPRET=1 is not set")
    require_parameters(kernel, name, GIVEN, by_position=len(GIVEN) - 1)

    @capable(
        rule="block" if block else "standard", arrays="torch", dtype="float32", one_hot=False,
        device="cuda" if cuda else "cpu", ragged=False,
    )  # fmt: skip
    def verify(
        *, draft_token_ids: Any, num_draft_tokens: Any, target_probs: Any, draft_probs: Any,
        generator: Any,
    ) -> Any:  # fmt: skip
        rows, device = len(num_draft_tokens), draft_token_ids.device
        drafts = draft_token_ids.view(rows, -1)
        slots, size = drafts.shape[1] + 1, target_probs.shape[1]
        index = torch.arange(rows * slots, device=device, dtype=torch.int32).view(rows, slots)
        tokens, kept = torch.zeros_like(index.view(-1)), torch.zeros_like(index[:, 0])
        coins, last = (
            torch.rand(shape, generator=generator, device=device) for shape in (index.shape, rows)
        )
        kernel(
            tokens, index.clone(), kept, torch.nn.functional.pad(drafts, (1, 0)), index, index,
            index, coins, last, target_probs.view(rows, slots, size),
            draft_probs.view(rows, slots - 1, size), 1.0, 1.0, True, block_verification=block,
        )  # fmt: skip
        return tokens.view(rows, slots), kept + 1

    return verify
