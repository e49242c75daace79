"""onnxruntime-genai's `Generator`, with a draft model or n-grams, on a pair with a known law."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from specref.adapters.needs import require, require_names, tried
from specref.contracts.text import Engine, Respond, Text
from specref.contrib.checkpoints.law import NO_SETTINGS
from specref.contrib.engines.on_pairs import Pair, on_pair
from specref.vocabulary import Tokens

PACKAGES = ("onnxruntime_genai", "onnx")
REMEDY = "pip install onnxruntime-genai onnx"
# Options of speculation of 0.18. What others would change is not known, so they are refused.
OFF_BY_DEFAULT = ("ngram_size", "ngram_chained_lookup", "min_adaptive_k", "cooldown")


def load_engine(
    law: str = "lookback", settings: Mapping[str, float] = NO_SETTINGS, greedy: bool = False,
    **own: Any,
) -> Engine:  # fmt: skip
    """A draft model, or with `ngram_size` what the text said before; three drafts at most.

    `greedy` is decoding by argmax, with one text after each of 80 prompts.
    """
    require(PACKAGES, REMEDY)
    import onnxruntime_genai as genai

    lookup, asked = "ngram_size" in own, {"max_draft_tokens": 3, **own}
    given = {"do_sample": False} if greedy else settings

    def modes(pair: Pair) -> tuple[Respond, Respond]:
        with tried("Generator"):
            config = genai.Config(str(pair.target_folder))
            if not lookup:
                guess = pair.drafter_folder
                draft = json.loads((guess / "genai_config.json").read_text())["model"]["decoder"]
                draft["filename"] = f"../{guess.name}/{draft['filename']}"
                config.overlay(json.dumps({"model": {"draft": draft}}))
            ask = partial(respond, pair.target.start, pair.target.eos)
            plain, drafting = genai.Model(str(pair.target_folder)), genai.Model(config)
            options = genai.GeneratorParams(drafting).get_speculative_options()
            require_names(options, "GeneratorParams", "option", [*asked], OFF_BY_DEFAULT)
            both = partial(ask, drafting, asked), partial(ask, plain, {})
            for mode in both:
                mode((), 1, 0)
        return both

    def respond(
        start: int, end: int | None, model: Any, own: Mapping[str, Any],
        prompt: Tokens, budget: int, seed: int,
    ) -> Text:  # fmt: skip
        ids, params = np.array([start, *prompt], np.int32), genai.GeneratorParams(model)
        params.set_search_options(max_length=len(ids) + budget, random_seed=seed, **given)
        params.set_speculative_options(**own)
        generator = genai.Generator(model, params)
        generator.append_tokens(ids)
        while not generator.is_done():
            generator.generate_next_token()
        tokens = [*generator.get_sequence(0)[len(ids) :], end][:budget]  # it leaves EOS out
        drafts = generator.get_speculative_stats()
        return Text(tokens, drafts["draft_tokens_proposed"], drafts["draft_tokens_accepted"])

    return on_pair(modes, law, settings, "onnx", greedy=greedy, has_drafter=not lookup)
