"""mlx-dspark: `_spec_sample_accept`, which all its samplers call; drafts are given."""

from collections.abc import Callable
from typing import Any

import numpy as np

from specref.adapters.needs import imported, require, require_parameters
from specref.arrays import Floats, Ints, one_hot_rows
from specref.contracts.capabilities import capable

PACKAGES = ("mlx_lm", "mlx_vlm", "mlx_dspark")
REMEDY = "pip install mlx-dspark 'mlx[cpu]'"
GIVEN = ("v_logits", "draft", "q_probs", "temperature", "top_p", "top_k")


def load_verify() -> Callable[..., Any]:
    """The function under the contract ``verify``, row by row, at temperature 1.

    A row without drafts is drawn by `mx.random.categorical`: the function is never called for one.
    """
    require(PACKAGES, REMEDY)
    import mlx.core as mx

    name = "_spec_sample_accept"
    function = imported("mlx_dspark.generate", name)
    require_parameters(function, name, GIVEN, by_position=4)

    @capable(rule="standard", inputs="logits", dtype="float32")
    def verify(p: Floats, q: Floats | None, x: Ints, *, rng: np.random.Generator) -> Any:
        given = one_hot_rows(x, p.shape[2]).astype("float32") if q is None else q
        of_q = mx.array(given) if q is None else mx.softmax(mx.array(given), axis=-1)
        mx.random.seed(int(rng.integers(2**63)))
        tokens = np.full((len(x), x.shape[1] + 1), -1)
        for row, drafts in enumerate(x):
            known, logits = drafts[drafts >= 0].tolist(), mx.array(p[row])
            if known:
                kept, last = function(logits[: len(known) + 1], known, of_q[row], 1.0)
            else:
                kept, last = 0, mx.random.categorical(logits[0]).item()
            tokens[row, : kept + 1] = *known[:kept], last
        return tokens, (tokens >= 0).sum(axis=1)

    return verify
