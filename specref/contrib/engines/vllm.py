"""vLLM: `v1.sample.rejection_sampler.rejection_sample`, under the contract ``ragged``.

Judged are the acceptance of drafts, the token after a rejection, and which bonus token a request
gets. vLLM draws bonus tokens outside, with its ordinary sampler: that path is not judged. Without
CUDA its kernels run in Triton's interpreter, from files that are read alone.
"""

import logging
from collections.abc import Callable
from inspect import signature
from types import SimpleNamespace
from typing import Any

from specref.adapters.needs import (
    NotInstalledError,
    file_alone,
    imported,
    imported_alone,
    require,
    require_parameters,
    there,
    tried,
)
from specref.contracts.capabilities import capable

PACKAGES = ("torch",)
REMEDY = "pip install vllm; without CUDA pip install --no-deps vllm, and set TRITON_INTERPRET=1"
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


def load_verify(greedy: bool = False) -> Callable[..., Any]:
    """The function with probabilities or logits of the target, as its signature says; on CUDA if
    there is any. With `greedy` all requests are.
    """
    require(PACKAGES, REMEDY)
    from torch import cuda, full, int32, ones

    function = rejection_sampling(cuda.is_available())
    require_parameters(function, "rejection_sample", GIVEN, (*TARGETS, *OFF_BY_DEFAULT))
    target = [name for name in TARGETS if name in signature(function).parameters]
    if len(target) != 1:
        words = " and ".join(TARGETS)
        raise NotInstalledError(f"rejection_sample has {len(target)} of {words}, expected one")
    device = "cuda" if cuda.is_available() else "cpu"

    @capable(rule="standard", arrays="torch", dtype="float32", device=device, greedy=greedy)
    def verify(
        *, draft_token_ids: Any, num_draft_tokens: Any, cu_num_draft_tokens: Any,
        target_logits: Any, draft_probs: Any, bonus_token_ids: Any, max_spec_len: int,
    ) -> Any:  # fmt: skip
        laws = target_logits if target == ["target_logits"] else target_logits.softmax(dim=-1)
        heat = laws.new_ones(len(bonus_token_ids))  # logits are divided by temperatures before
        modes = {"all_greedy": greedy, "all_random": not greedy}
        options = {**modes, "temperature": heat * (not greedy), "generators": {}}
        return function(
            draft_token_ids=draft_token_ids.int(), num_draft_tokens=num_draft_tokens.tolist(),
            max_spec_len=max_spec_len, cu_num_draft_tokens=cu_num_draft_tokens.int(),
            draft_probs=draft_probs, bonus_token_ids=bonus_token_ids.int()[:, None],
            sampling_metadata=SimpleNamespace(**options), **{target[0]: laws},
        )  # fmt: skip

    one, law = ones(1, dtype=int32, device=device), full((1, 3), 1 / 3, device=device)
    counts = {"num_draft_tokens": one, "cu_num_draft_tokens": one}
    laws = {"target_logits": law, "draft_probs": law}
    with tried(f"rejection_sample on {device}"):
        verify(draft_token_ids=one, bonus_token_ids=one, max_spec_len=1, **counts, **laws)
    return verify


NAME = "vllm"
WARMUP = "model_executor/warmup/jit_warmup"
LAUNCHING = (WARMUP, f"{WARMUP}_triton_helper")
FILE, FUNCTION = "v1/sample/rejection_sampler.py", "rejection_sample"
# What these files import of vLLM 0.33. Another import is refused: nobody knows what it changes.
UNUSED = {
    "vllm": ("envs",),
    "vllm.platforms": ("current_platform",),
    "vllm.config.model": ("PROCESSED_LOGPROBS_MODES",),
    "vllm.utils.torch_utils": ("async_tensor_h2d",),
    "vllm.v1.outputs": ("LogprobsLists", "LogprobsTensors", "SamplerOutput"),
    "vllm.v1.sample.logits_processor.builtin": ("MinTokensLogitsProcessor",),
    "vllm.v1.sample.metadata": ("SamplingMetadata",),
    "vllm.v1.sample.ops.bad_words": ("apply_bad_words_with_drafts",),
    "vllm.v1.sample.ops.penalties": ("apply_all_penalties",),
    "vllm.v1.sample.ops.topk_topp_sampler": ("apply_top_k_top_p",),
    "vllm.v1.sample.sampler": ("Sampler",),
    "vllm.v1.spec_decode.fly": (
        "apply_fly_greedy_acceptance_kernel", "apply_fly_random_acceptance_kernel",
        "compute_fly_entropy",
    ),
    "vllm.v1.spec_decode.metadata": ("SpecDecodeMetadata",),
    "vllm.v1.spec_decode.utils": ("unconditional_to_conditional_rates",),
}  # fmt: skip


def interpreting() -> bool:
    """Whether Triton runs kernels by its interpreter: ``TRITON_INTERPRET=1`` as Python started."""
    if not there("triton"):
        return False
    from triton import knobs

    return bool(knobs.runtime.interpret)


def rejection_sampling(cuda: bool) -> Any:
    """The function of the package, or, where Triton's interpreter has to do, of the files."""
    if not cuda and interpreting():
        return _of_files()
    require((NAME,), REMEDY)
    try:
        return imported("vllm.v1.sample.rejection_sampler", FUNCTION)
    except NotInstalledError as error:
        hint = "" if cuda else "; without CUDA set TRITON_INTERPRET=1"
        raise NotInstalledError(f"{error}{hint}") from None


def _of_files() -> Any:
    import triton
    from triton import language

    known: dict[str, Any] = {module: dict.fromkeys(names) for module, names in UNUSED.items()}
    known["vllm.logger"] = {"init_logger": logging.getLogger}
    known["vllm.triton_utils"] = {"HAS_TRITON": True, "tl": language, "triton": triton}
    for file in LAUNCHING:
        known[f"{NAME}.{file.replace('/', '.')}"] = file_alone(NAME, f"{file}.py", REMEDY, known)
    return imported_alone(NAME, FILE, FUNCTION, REMEDY, known)
