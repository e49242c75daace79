"""speculative-decoding by lucidrains: its loop over two networks."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import imported, require, require_parameters

PACKAGES = ("torch", "transformers", "speculative_decoding")
REMEDY = "pip install speculative-decoding beartype einops"
GIVEN = ("net", "small_net", "prompt", "seq_len", "gamma", "temperature", "filter_thres")
DEFAULTS = ("lenience", "pad_id")


def load_generate() -> Callable[..., Any]:
    """The loop under the contract ``generate``, one row, three drafts, no filter of logits."""
    require(PACKAGES, REMEDY)
    from torch import zeros

    from specref.contrib.engines.toys import on_toys

    function = imported("speculative_decoding", "speculative_decoding")
    require_parameters(function, "speculative_decoding", GIVEN, DEFAULTS, by_position=4)

    def network(toy: Any) -> Callable[..., Any]:
        def net(ids: Any, seq_start_pos: Any, cache: Any, return_cache: bool) -> Any:
            return toy(ids).logits, (zeros(1, ids.shape[1], 1), None)

        return net

    def decode(target: Any, drafter: Any, prompt: Any, tokens: int) -> Any:
        text = function(
            network(target), network(drafter), prompt, prompt.shape[1] + tokens, gamma=3,
            temperature=1.0, filter_thres=0.0,
        )[0]  # fmt: skip
        return text[0].tolist()

    return on_toys(decode)
