"""mini-infer: `speculative.verifier.speculative_step`."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import imported, require, require_parameters

PACKAGES = ("torch", "transformers", "mini_infer")
REMEDY = "pip install mini-infer"
GIVEN = ("target_model", "draft_model", "prefix_ids", "k_draft", "temperature")


def load_step() -> Callable[..., Any]:
    """One iteration under the contract ``step``; its models return (logits, cache)."""
    require(PACKAGES, REMEDY)
    from specref.contrib.engines.toys import on_toys

    function = imported("mini_infer.speculative.verifier", "speculative_step")
    require_parameters(function, "speculative_step", GIVEN, by_position=3)

    def decode(target: Any, drafter: Any, prompt: Any, lookahead: int) -> Any:
        models = (lambda ids, toy=toy: (toy(ids).logits, None) for toy in (target, drafter))
        return function(*models, prompt, k_draft=lookahead, temperature=1.0)[0]

    return on_toys(decode, rule="standard")
