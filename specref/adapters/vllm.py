"""vLLM: `v1.sample.rejection_sampler.rejection_sample`, under the contract ``ragged``.

Judged are the acceptance of drafts, the token after a rejection, and which bonus token a request
gets. vLLM draws bonus tokens outside, with its ordinary sampler: that path is not judged.
"""

from collections.abc import Callable
from inspect import signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from specref.adapters.needs import NotInstalledError, imported, require, require_parameters
from specref.contracts.capabilities import capable
from specref.contracts.timeout import described

if TYPE_CHECKING:
    from torch import Tensor

PACKAGES = ("torch", "vllm")
REMEDY = "pip install vllm"
MODULE = "vllm.v1.sample.rejection_sampler"
GIVEN = (
    "draft_token_ids", "num_draft_tokens", "max_spec_len", "cu_num_draft_tokens", "draft_probs",
    "bonus_token_ids", "sampling_metadata",
)  # fmt: skip
TARGETS = ("target_probs", "target_logits")
# Options of 0.33.0. What others would change is not known, so they are refused.
OFF_BY_DEFAULT = (
    "synthetic_mode", "synthetic_conditional_rates", "use_fp64_gumbel", "fly_window_size",
    "fly_entropy_threshold", "fly_entropy_top_k",
)  # fmt: skip


def load_verify() -> Callable[..., Any]:
    """The function under test under the contract ``ragged``, on CUDA if available.

    Raises
    ------
    NotInstalledError
        vllm or torch is missing, the parameters of the function are not known, or it cannot be
        called on this machine.
    """
    require(PACKAGES, REMEDY)
    import torch

    function = imported(MODULE, "rejection_sample")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    verify, one = adapted(function, device), torch.ones(1, dtype=torch.int64, device=device)
    flat = torch.full((1, 3), 1 / 3, device=device)
    laws = {"target_logits": flat, "draft_probs": flat}
    lengths = {"num_draft_tokens": one, "cu_num_draft_tokens": one, "max_spec_len": 1}
    try:
        verify(draft_token_ids=one, bonus_token_ids=one, **laws, **lengths)
    except Exception as error:  # of CUDA, of Triton
        raise NotInstalledError(
            f"rejection_sample cannot be called on {device}: {described(error)}"
        ) from None
    return verify


def target_name(function: Callable[..., Any]) -> str:
    """The parameter of `rejection_sample` for the target: its probabilities or its logits.

    Raises
    ------
    NotInstalledError
        It has unknown parameters, or lacks a known one.

    Examples
    --------
    >>> def rejection_sample(draft_ids, target_probs): ...
    >>> target_name(rejection_sample)
    Traceback (most recent call last):
    specref.adapters.needs.NotInstalledError: rejection_sample has unknown \
parameters, draft_ids
    """
    require_parameters(function, "rejection_sample", GIVEN, (*TARGETS, *OFF_BY_DEFAULT))
    target = [name for name in TARGETS if name in signature(function).parameters]
    if len(target) != 1:
        words = " and ".join(TARGETS)
        raise NotInstalledError(f"rejection_sample has {len(target)} of {words}, expected one")
    return target[0]


def adapted(function: Callable[..., Any], device: str) -> Callable[..., Any]:
    """`rejection_sample` under the contract ``ragged``; its parameters are passed by name.

    Raises
    ------
    NotInstalledError
        Its parameters are not known.
    """
    target = target_name(function)

    @capable(rule="standard", arrays="torch", dtype="float32", device=device)
    def verify(
        *,
        draft_token_ids: "Tensor",
        num_draft_tokens: "Tensor",
        cu_num_draft_tokens: "Tensor",
        target_logits: "Tensor",
        draft_probs: "Tensor | None",
        bonus_token_ids: "Tensor",
        max_spec_len: int,
    ) -> "Tensor":
        laws = target_logits if target == "target_logits" else target_logits.softmax(dim=-1)
        ones = laws.new_ones(len(bonus_token_ids))  # logits are divided by temperatures before
        tokens: Tensor = function(
            draft_token_ids=draft_token_ids.int(),
            num_draft_tokens=num_draft_tokens.tolist(),
            max_spec_len=max_spec_len,
            cu_num_draft_tokens=cu_num_draft_tokens.int(),
            draft_probs=draft_probs,
            bonus_token_ids=bonus_token_ids.int()[:, None],
            sampling_metadata=SimpleNamespace(
                all_greedy=False, all_random=True, temperature=ones, generators={}
            ),
            **{target: laws},
        )
        return tokens

    return verify
