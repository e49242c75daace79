"""onnxruntime-genai's `Generator`, with a draft model or n-grams, on a pair with a known law."""

import json
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from specref.adapters.needs import require
from specref.checkpoints import build, named_pair, shaped
from specref.checkpoints.shaping import NO_SETTINGS
from specref.contracts.text.contract import Engine, Text
from specref.vocabulary import Tokens

PACKAGES = ("onnxruntime_genai", "onnx")
REMEDY = "pip install onnxruntime-genai onnx"
PROMPTS: tuple[Tokens, ...] = ((), (0, 1, 2, 0, 1, 2, 0, 1), (3, 2, 1, 0))


def load_engine(
    law: str = "lookback", settings: Mapping[str, float] = NO_SETTINGS, **own: Any
) -> Engine:
    """A draft model, or with `ngram_size` what the text said before; three drafts at most."""
    require(PACKAGES, REMEDY)
    import onnxruntime_genai as genai

    pair, lookup = named_pair(law), "ngram_size" in own
    start, end = pair["target"].start, pair["target"].eos
    with tempfile.TemporaryDirectory() as folder:
        target, drafter = build(pair, Path(folder) / "pair", ["onnx"]).values()
        config = genai.Config(str(target))
        if not lookup:
            draft = json.loads((drafter / "genai_config.json").read_text())["model"]["decoder"]
            draft["filename"] = f"../{drafter.name}/{draft['filename']}"
            config.overlay(json.dumps({"model": {"draft": draft}}))
        plain, drafting = genai.Model(str(target)), genai.Model(config)

    def ask(model: Any, own: dict[str, Any], prompt: Tokens, budget: int, seed: int) -> Text:
        ids, params = np.array([start, *prompt], np.int32), genai.GeneratorParams(model)
        params.set_search_options(max_length=len(ids) + budget, random_seed=seed, **settings)
        params.set_speculative_options(**own)
        generator = genai.Generator(model, params)
        generator.append_tokens(ids)
        while not generator.is_done():
            generator.generate_next_token()
        tokens = [*generator.get_sequence(0)[len(ids) :], end][:budget]  # it leaves EOS out
        drafts = generator.get_speculative_stats()
        return Text(tokens, drafts["draft_tokens_proposed"], drafts["draft_tokens_accepted"])

    known, drafts = shaped(pair["target"].model, settings), {"max_draft_tokens": 3}
    plainly, speculatively = partial(ask, plain, {}), partial(ask, drafting, drafts | own)
    guess = None if lookup else pair["drafter"].model
    return Engine(speculatively, PROMPTS, known, plainly, guess, eos=None if known else end)
