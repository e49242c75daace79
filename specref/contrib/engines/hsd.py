"""ZhouYuxuanYX/Hierarchical-Speculative-Decoding: `algorithm_clean.py`, which later commits lack.

`algorithm.py`, which replaced it, uses names that it never sets. The copy of Transformers beside
it mixes tabs and spaces (commit b8575e2), and is no Python. `candidates.py` has its trees.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from specref.adapters.needs import require, require_parameters
from specref.contrib.engines.checkouts import from_checkout
from specref.vocabulary import Tokens

if TYPE_CHECKING:
    from torch import Tensor

TREE = "ZhouYuxuanYX/Hierarchical-Speculative-Decoding"
REPOSITORY = f"{TREE}@8974510"
PACKAGES = ("torch", "transformers")
GIVEN = (
    "candidate_input_ids", "candidate_logits", "candidate_length", "new_logits",
    "is_done_candidate", "HSD", "return_probs", "hist_lengths", "approxi",
)  # fmt: skip
PROMPT = 0


def load_verify() -> Callable[..., Any]:
    """`_speculative_sampling` with `HSD` under the contract ``verify``, row by row.

    Without `HSD` its blocks are to be continued by another law than the target's: not judged.
    """
    require(PACKAGES, "pip install torch transformers")
    from torch import tensor

    from specref.contrib.engines.toys import row_by_row

    name = "_speculative_sampling"
    (function,) = from_checkout(REPOSITORY, "algorithm_clean", name)
    require_parameters(function, name, GIVEN, by_position=5)

    def verify_row(p: "Tensor", q: "Tensor", drafts: Tokens) -> Tokens:
        candidates = tensor([[PROMPT, *drafts]])
        tokens, _ = function(candidates, q[None], len(drafts), p[None], [False], HSD=True)
        return tuple(tokens[0].tolist())

    return row_by_row(verify_row)
