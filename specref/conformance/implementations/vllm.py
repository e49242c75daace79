"""vLLM: `v1.sample.rejection_sampler.rejection_sample`, under the contract ``verify``.

Written from the published source and never run here: its kernels need CUDA. What is judged is
the acceptance of drafts and the token after a rejection. vLLM draws the bonus token outside,
with its ordinary sampler; here `torch.multinomial` draws it, so that path is not judged.
"""

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from specref.conformance.contract import Capabilities, Floats, Ints
from specref.conformance.implementations.needs import NotInstalledError, require

if TYPE_CHECKING:
    import torch

PACKAGES = ("torch", "vllm")
REMEDY = "pip install vllm"


def load_verify(device: str = "cuda") -> "RejectionSample":
    """The function under test, under the contract ``verify``.

    Raises
    ------
    NotInstalledError
        vllm or torch is missing, or there is no CUDA.
    """
    require(PACKAGES, REMEDY)
    import torch

    if not torch.cuda.is_available():
        raise NotInstalledError("there is no CUDA, which the kernels of vllm need")
    module = import_module("vllm.v1.sample.rejection_sampler")
    return RejectionSample(module.rejection_sample, device)


class RejectionSample:
    """`rejection_sample` on whole batches.

    Parameters
    ----------
    function : callable
        With the eight parameters of vllm's.
    device : str
    """

    specref_capabilities = Capabilities(rule="standard")

    def __init__(self, function: Callable[..., Any], device: str) -> None:
        self.function, self.device = function, device

    def __call__(
        self,
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator,
    ) -> tuple[Ints, Ints]:
        """Verify a batch; drafts of all rows are flattened, as vllm wants them."""
        from specref.conformance.implementations.torch_state import seeded

        drafted = draft_tokens >= 0
        lens = drafted.sum(axis=1)
        with seeded(rng, self.device):
            out = self.function(
                self._integers(draft_tokens[drafted]),
                lens.tolist(),
                draft_tokens.shape[1],
                self._integers(lens.cumsum()),
                None if draft_probs is None else self._floats(draft_probs[drafted]),
                self._floats(target_probs[:, :-1][drafted]),
                self._bonus(target_probs[np.arange(len(lens)), lens]),
                self._sampling(len(lens)),
            )
        tokens = out.cpu().numpy().astype(np.int64)
        return tokens, (tokens >= 0).sum(axis=1)

    def _integers(self, values: Ints) -> "torch.Tensor":
        import torch

        return torch.from_numpy(values).to(self.device, torch.int32)

    def _floats(self, values: Floats) -> "torch.Tensor":
        import torch

        return torch.from_numpy(values).to(self.device, torch.float32).contiguous()

    def _bonus(self, laws: Floats) -> "torch.Tensor":
        import torch

        return torch.multinomial(self._floats(laws), num_samples=1).to(torch.int32)

    def _sampling(self, requests: int) -> SimpleNamespace:
        import torch

        ones = torch.ones(requests, device=self.device)
        return SimpleNamespace(all_greedy=False, all_random=True, temperature=ones, generators={})
