"""romsto/Speculative-Decoding: with a drafter, and with n-grams of the text; without its cache."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import require, require_parameters
from specref.contrib.engines.checkouts import from_checkout

REPOSITORY = "romsto/Speculative-Decoding"
PACKAGES = ("torch", "transformers", "termcolor")
GIVEN = ("inputs", "target", "gamma", "logits_processor", "max_gen_len", "eos_tokens_id")
DRAFTER = ("drafter", "skip_sample_adjustment")
NGRAMS = ("ngramstorage", "filler_top_k", "stop_if_unknown")
DEFAULTS = ("tokenizer", "pad_token_id", "use_cache", "first_target", "debug")


def load_generate(ngrams: bool = False) -> Callable[..., Any]:
    """A loop under the contract ``generate``, three drafts at a time.

    Three tokens are asked for at least: with fewer it drafts nothing, and divides by their number.
    """
    require(PACKAGES, "pip install torch transformers termcolor")
    from specref.contrib.engines.toys import on_toys

    (module, name), own = (
        (("ngram_assisted", "ngram_assisted_speculative_generate"), NGRAMS)
        if ngrams
        else (("sampling", "speculative_generate"), DRAFTER)
    )
    (function,) = from_checkout(REPOSITORY, module, name)
    require_parameters(function, name, (*GIVEN, *own), DEFAULTS, by_position=1)
    (processor,) = from_checkout(REPOSITORY, "utils.logits_processor", "MultinomialProcessor")
    storage = from_checkout(REPOSITORY, module, "OneLevelNGramStorage")[0] if ngrams else None

    def decode(target: Any, drafter: Any, prompt: Any, tokens: int) -> Any:
        target.config.max_position_embeddings = 10_000
        drafts = {"ngramstorage": storage(2, target.known)} if storage else {"drafter": drafter}
        return function(
            prompt[0].tolist(), target=target, gamma=3, logits_processor=processor(1.0),
            max_gen_len=max(tokens, 3), eos_tokens_id=target.known, **drafts,
        )[0][:tokens]  # fmt: skip

    return on_toys(decode)
