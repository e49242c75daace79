"""vLLM: `v1.sample.rejection_sampler.rejection_sample`, under the contract ``verify``.

Judged are the acceptance of drafts and the token after a rejection. vLLM draws the bonus
token outside, with its ordinary sampler; here `torch.multinomial` draws it, so that path is not
judged.
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from specref.adapters.needs import NotInstalledError, require
from specref.arrays import Floats, Ints
from specref.contracts.capabilities import Capabilities
from specref.contracts.timeout import described

if TYPE_CHECKING:
    import torch

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


def load_verify() -> "RejectionSample":
    """The function under test as an implementation of ``verify``, on CUDA if available.

    Raises
    ------
    NotInstalledError
        vllm or torch is missing, the parameters of the function are not known, or it cannot be
        called on this machine.
    """
    require(PACKAGES, REMEDY)
    import torch

    try:
        function = import_module(MODULE).rejection_sample
    except Exception as error:  # importing vllm may raise anything
        raise NotInstalledError(f"{MODULE} cannot be imported: {described(error)}") from None
    verify = RejectionSample(function, "cuda" if torch.cuda.is_available() else "cpu")
    laws, drafts = np.full((2, 2, 3), 1 / 3), np.array([[0], [-1]])
    try:
        verify(laws, laws[:, :1], drafts, rng=np.random.default_rng(0))
    except Exception as error:  # as above
        raise NotInstalledError(
            f"rejection_sample cannot be called on {verify.device}: {described(error)}"
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
    names = tuple(inspect.signature(function).parameters)
    unknown = [name for name in names if name not in (*GIVEN, *TARGETS, *OFF_BY_DEFAULT)]
    if unknown:
        words = ", ".join(unknown)
        raise NotInstalledError(f"rejection_sample has unknown parameters, {words}")
    missing = [name for name in GIVEN if name not in names]
    if missing:
        raise NotInstalledError(f"rejection_sample has no parameter {', '.join(missing)}")
    target = [name for name in TARGETS if name in names]
    if len(target) != 1:
        words = " and ".join(TARGETS)
        raise NotInstalledError(f"rejection_sample has {len(target)} of {words}, expected one")
    return target[0]


class RejectionSample:
    """`rejection_sample` on whole batches.

    Parameters
    ----------
    function : callable
        A function with the parameters of vllm's, which are passed by name.
    device : str

    Raises
    ------
    NotInstalledError
        Its parameters are not known.
    """

    specref_capabilities = Capabilities(rule="standard")

    def __init__(self, function: Callable[..., Any], device: str) -> None:
        self.function, self.device = function, device
        self.target = target_name(function)

    def __call__(
        self,
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator,
    ) -> tuple[Ints, Ints]:
        """Verify a batch; drafts of all rows are flattened, as vllm wants them."""
        import torch

        from specref.contracts.torch_state import seeded

        drafted = draft_tokens >= 0
        lens = drafted.sum(axis=1)
        laws = self._floats(target_probs[:, :-1][drafted])
        last = self._floats(target_probs[np.arange(len(lens)), lens])
        ones = torch.ones(len(lens), device=self.device)
        with seeded(rng, self.device):
            out = self.function(
                draft_token_ids=self._integers(draft_tokens[drafted]),
                num_draft_tokens=lens.tolist(),
                max_spec_len=draft_tokens.shape[1],
                cu_num_draft_tokens=self._integers(lens.cumsum()),
                draft_probs=None if draft_probs is None else self._floats(draft_probs[drafted]),
                bonus_token_ids=torch.multinomial(last, num_samples=1).to(torch.int32),
                sampling_metadata=SimpleNamespace(
                    all_greedy=False, all_random=True, temperature=ones, generators={}
                ),
                **{self.target: laws.log() if self.target == "target_logits" else laws},
            )
        tokens = out.cpu().numpy().astype(np.int64)
        return tokens, (tokens >= 0).sum(axis=1)

    def _integers(self, values: Ints) -> "torch.Tensor":
        import torch

        return torch.from_numpy(values).to(self.device, torch.int32)

    def _floats(self, values: Floats) -> "torch.Tensor":
        import torch

        return torch.from_numpy(values).to(self.device, torch.float32).contiguous()
