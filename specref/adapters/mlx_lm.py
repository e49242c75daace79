"""mlx-lm on checkpoints of a known law: plain decoding, and `speculative_generate_step`."""

from pathlib import Path

import numpy as np

from specref.adapters.needs import require
from specref.arrays import Floats
from specref.checkpoints.fidelity import Probabilities
from specref.vocabulary import Tokens

PACKAGES = ("mlx.core", "mlx_lm")
REMEDY = "pip install mlx-lm 'mlx[cpu]'"


def load_probabilities(folder: Path) -> Probabilities:
    """The distribution after each of the ids, in float32; softmax in float64.

    Raises
    ------
    NotInstalledError
        mlx or mlx-lm is missing.
    """
    require(PACKAGES, REMEDY)
    import mlx.core as mx
    from mlx_lm.utils import load_model

    model, _ = load_model(folder)

    def probabilities(ids: Tokens) -> Floats:
        logits = np.array(model(mx.array([ids]))[0].astype(mx.float32), dtype=np.float64)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        rows: Floats = weights / weights.sum(axis=1, keepdims=True)
        return rows

    return probabilities
