"""LitGPT: one iteration of `generate.speculative_decoding`, and its loop."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import imported, require, require_parameters

PACKAGES = ("torch", "transformers", "litgpt")
REMEDY = "pip install litgpt"
GIVEN = {
    "speculative_decoding": (
        "draft_model", "target_model", "token", "input_pos", "input_pos_maxp1", "speculative_k",
        "sample_kwargs",
    ),
    "generate": (
        "draft_model", "target_model", "prompt", "max_returned_tokens", "temperature", "top_k",
        "top_p", "stop_tokens", "include_prompt", "speculative_k",
    ),
}  # fmt: skip


def load(loop: bool = False) -> Callable[..., Any]:
    """The iteration under the contract ``step``; or the loop under ``generate``, three drafts."""
    require(PACKAGES, REMEDY)
    from torch import nn, tensor

    from specref.contrib.engines.toys import on_toys

    name = "generate" if loop else "speculative_decoding"
    function = imported("litgpt.generate.speculative_decoding", name)
    require_parameters(function, name, GIVEN[name], by_position=4 if loop else 6)

    class Cached(nn.Module):
        """Logits after ids at their positions; the cache holds what was fed last at each."""

        def __init__(self, toy: Any, prompt: Any) -> None:
            super().__init__()
            self.toy, self.max_seq_length = toy, prompt.shape[1] + 1_000
            self.ids = prompt.new_zeros(1, self.max_seq_length)
            self.ids[:, : prompt.shape[1]] = prompt

        def forward(self, idx: Any, input_pos: Any, input_pos_maxp1: int) -> Any:
            self.ids[0, input_pos] = idx[0]
            return self.toy(self.ids[:, : int(input_pos[-1]) + 1]).logits[:, -len(input_pos) :]

    def decode(target: Any, drafter: Any, prompt: Any, number: int) -> Any:
        size = prompt.shape[1]
        pair = Cached(drafter, prompt), Cached(target, prompt)
        if loop:
            text = function(*pair, prompt[0], size + number + 1, speculative_k=3)[0][size:]
        else:
            last = tensor([size - 1])
            text = function(*pair, prompt[0, -1:], last, size, number, temperature=1.0)
        return text[:number].tolist() if loop else text.tolist()

    return on_toys(decode, rule=None if loop else "standard")
