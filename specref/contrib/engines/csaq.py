"""csaq-quant: the self-speculative loop of `CSAQInferenceEngine`."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import imported, require, require_parameters

PACKAGES = ("torch", "transformers", "csaq")
REMEDY = "pip install csaq-quant"
GIVEN = ("self", "input_ids", "max_new_tokens", "lookahead", "temperature", "top_p")


def load_generate() -> Callable[..., Any]:
    """The loop under the contract ``generate``, three drafts at a time.

    Its drafter is the same model with other weights; here it is another model with the same cache,
    of tensors: 0.6.0 crops those of Transformers 5 in a way that raises an error.
    """
    require(PACKAGES, REMEDY)
    from specref.contrib.engines.toys import WithTuples, on_toys

    engine, loop, _ = (
        imported("csaq.inference", f"CSAQInferenceEngine{name}")
        for name in ("", "._generate_speculative", "._swap_to_verify")
    )
    require_parameters(loop, "_generate_speculative", GIVEN, by_position=3)

    def decode(target: Any, drafter: Any, prompt: Any, tokens: int) -> Any:
        class Swapped(engine):  # type: ignore[misc,valid-type]
            def _swap_to_verify(self) -> None:
                self.model = WithTuples(target)

            def _swap_to_draft(self) -> None:
                self.model = WithTuples(drafter)

            _ensure_draft_state = _swap_to_draft

            def _build_hooks(self) -> None:
                self._hooks = ["one"]

        made = Swapped(drafter, {}, verbose=False)
        text = loop(made, prompt, tokens, lookahead=3, temperature=1.0, top_p=1.0)[0]
        return text[0, prompt.shape[1] :].tolist()

    return on_toys(decode)
