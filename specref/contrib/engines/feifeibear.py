"""feifeibear/LLMSpeculativeSampling: both versions of its loop."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from specref.adapters.needs import require, require_parameters
from specref.contrib.engines.checkouts import from_checkout
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

REPOSITORY = "feifeibear/LLMSpeculativeSampling"
PACKAGES = ("torch", "transformers", "tqdm")
GIVEN = ("prefix", "approx_model", "target_model", "max_len", "gamma")
DEFAULTS = ("temperature", "top_k", "top_p", "verbose", "random_seed")


def load_generate(name: str) -> Callable[..., Any]:
    """A loop under the contract ``generate``, three drafts at a time.

    Its `sample` raises an error where id 0 is drawn, so that ids are those of the `Model` plus 1.
    """
    require(PACKAGES, "pip install torch transformers tqdm")
    from specref.contrib.engines.toys import WithTuples, on_toys

    (function,) = from_checkout(
        REPOSITORY, "sampling.speculative_sampling", name, absent=("globals.Decoder",)
    )
    require_parameters(function, name, GIVEN, DEFAULTS, by_position=4)

    def decode(target: Any, drafter: Any, prompt: Any, tokens: int) -> Any:
        text = function(prompt, WithTuples(drafter), WithTuples(target), tokens, gamma=3)
        return text[0, prompt.shape[1] :][:tokens].tolist()

    run, later = on_toys(decode), lru_cache(shifted)

    def generate(
        target: Model, drafter: Model, context: Tokens, tokens: int, rng: np.random.Generator
    ) -> Tokens:
        text = run(later(target), later(drafter), tuple(x + 1 for x in context), tokens, rng)
        return tuple(x - 1 for x in text)

    return generate


def shifted(model: Model) -> Model:
    """The model with one more token, of id 0 and probability 0."""
    words = model.vocabulary
    more = Vocabulary(["never", *words.tokens], eos=words.eos)
    return Model(more, lambda ids: np.insert(model.next_token(tuple(x - 1 for x in ids)), 0, 0))
