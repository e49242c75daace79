"""rotalabs-accel: `speculative.core.verify_tokens`, which gets q of the drafted tokens alone."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from specref.adapters.needs import imported, require, require_parameters
from specref.vocabulary import Tokens

if TYPE_CHECKING:
    from torch import Tensor

PACKAGES = ("torch", "transformers", "rotalabs_accel")
REMEDY = "pip install rotalabs-accel"
GIVEN = (
    "model", "input_ids", "draft_tokens", "draft_probs", "past_key_values", "temperature", "top_p",
    "use_sampling",
)  # fmt: skip
LAST = 0


def load_verify() -> Callable[..., Any]:
    """The function under the contract ``verify``, with its own `top_p` of 0.9 for bonus tokens.

    With 1.0, which filters nothing, 1.1.1 raises a `TypeError` where all drafts are accepted.
    """
    require(PACKAGES, REMEDY)
    from torch import tensor

    from specref.contrib.engines.toys import row_by_row

    function = imported("rotalabs_accel.speculative.core", "verify_tokens")
    require_parameters(function, "verify_tokens", GIVEN, by_position=4)

    def verify_row(p: "Tensor", q: "Tensor", drafts: Tokens) -> Tokens:
        def model(ids: "Tensor", past_key_values: None, use_cache: bool) -> SimpleNamespace:
            return SimpleNamespace(logits=p[None], past_key_values=None)

        x = tensor(drafts)
        of_drafts = q.exp().gather(1, x[:, None])[:, 0]
        tokens = function(model, tensor([[LAST]]), x, of_drafts, past_key_values=None)[0]
        return tuple(tokens.tolist())

    return row_by_row(verify_row)
