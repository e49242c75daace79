"""sequential-speculative-decoding: standard, hierarchical and capped hierarchical steps."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import imported, require, require_parameters

PACKAGES = ("torch", "transformers", "seqspecdecod")
REMEDY = "pip install sequential-speculative-decoding"
GIVEN = (
    "draft_model", "target_model", "input_ids", "gamma", "draft_temperature", "target_temperature",
)  # fmt: skip
STEPS = {
    "standard": ("standard_sd.standard_speculative_step", "standard"),
    "naive": ("naive_hsd.naive_hsd_step", None),
    "capped": ("capped_hsd.capped_hsd_step", None),
}


def load_step(kind: str) -> Callable[..., Any]:
    """One iteration under the contract ``step``; the second and third declare no rule."""
    require(PACKAGES, REMEDY)
    from specref.contrib.engines.toys import on_toys

    (module, name), rule = STEPS[kind][0].split("."), STEPS[kind][1]
    function = imported(f"seqspecdecod.{module}", name)
    require_parameters(function, name, GIVEN, by_position=4)

    def decode(target: Any, drafter: Any, prompt: Any, lookahead: int) -> Any:
        text, _, _ = function(
            drafter, target, prompt, lookahead, draft_temperature=1.0, target_temperature=1.0
        )
        return text[0, prompt.shape[1] :].tolist()

    return on_toys(decode, rule=rule)
