"""jaymody/speculative-sampling: `speculative_sampling`, in NumPy."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import require, require_parameters
from specref.contrib.engines.checkouts import from_checkout

REPOSITORY = "jaymody/speculative-sampling"
PACKAGES = ("torch", "transformers", "tqdm")
GIVEN = ("x", "draft_model", "target_model", "N", "K")
# Of picoGPT, a submodule: the networks and their checkpoints.
ABSENT = ("gpt2.gpt2", "gpt2.softmax", "utils.load_encoder_hparams_and_params")


def load_generate() -> Callable[..., Any]:
    """The loop under the contract ``generate``, three drafts at a time."""
    require(PACKAGES, "pip install torch transformers tqdm")
    from torch import from_numpy

    from specref.contrib.engines.toys import on_toys

    (function,) = from_checkout(REPOSITORY, "main", "speculative_sampling", absent=ABSENT)
    require_parameters(function, "speculative_sampling", GIVEN, by_position=3)

    def decode(target: Any, drafter: Any, prompt: Any, tokens: int) -> Any:
        p, q = (
            lambda ids, toy=toy: toy(from_numpy(ids)[None]).logits[0].double().softmax(-1).numpy()
            for toy in (target, drafter)
        )
        text = function(prompt[0].numpy(), q, p, N=tokens, K=3)
        return text[prompt.shape[1] :][:tokens].tolist()

    return on_toys(decode)
