"""vLLM's `rejection_sample` from three of its files, for Triton's interpreter.

The package itself asks for many others, and launches no kernel without CUDA. The functions, the
kernels and what launches them are vLLM's; what else the files import is named here and never used.
"""

import logging
from typing import Any

from specref.adapters.needs import (
    NotInstalledError,
    file_alone,
    imported,
    imported_alone,
    require,
    there,
)

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


def rejection_sampling(cuda: bool, remedy: str) -> Any:
    """The function of the package, or, where Triton's interpreter has to do, of the files.

    Raises
    ------
    NotInstalledError
        There is no package, it cannot be imported, or a file imports something else of it.
    """
    if not cuda and interpreting():
        return _of_files(remedy)
    require((NAME,), remedy)
    try:
        return imported("vllm.v1.sample.rejection_sampler", FUNCTION)
    except NotInstalledError as error:
        hint = "" if cuda else "; without CUDA set TRITON_INTERPRET=1"
        raise NotInstalledError(f"{error}{hint}") from None


def _of_files(remedy: str) -> Any:
    import triton
    from triton import language

    known: dict[str, Any] = {module: dict.fromkeys(names) for module, names in UNUSED.items()}
    known["vllm.logger"] = {"init_logger": logging.getLogger}
    known["vllm.triton_utils"] = {"HAS_TRITON": True, "tl": language, "triton": triton}
    for file in LAUNCHING:
        known[f"{NAME}.{file.replace('/', '.')}"] = file_alone(NAME, f"{file}.py", remedy, known)
    return imported_alone(NAME, FILE, FUNCTION, remedy, known)
