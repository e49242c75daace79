"""Hugging Face Transformers on a checkpoint: the probabilities that it computes."""

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, warn-unused-ignores=False

from pathlib import Path

from specref.adapters.needs import require
from specref.arrays import Floats
from specref.checkpoints.fidelity import Probabilities
from specref.vocabulary import Tokens

PACKAGES = ("torch", "transformers")
REMEDY = "pip install 'specref[torch]'"


def load_probabilities(folder: Path) -> Probabilities:
    """The distribution after each of the ids, in float32 on the CPU; softmax in float64.

    Raises
    ------
    NotInstalledError
        transformers or torch is missing.
    """
    require(PACKAGES, REMEDY)
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    finally:
        if shown:
            logging.enable_progress_bar()

    def probabilities(ids: Tokens) -> Floats:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids])).logits[0]
        rows: Floats = logits.double().softmax(dim=-1).numpy()
        return rows

    return probabilities
