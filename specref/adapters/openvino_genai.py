"""OpenVINO GenAI's `LLMPipeline`, with a draft model or prompt lookup, under the contract text."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from specref.adapters.needs import require, set_known, tried
from specref.checkpoints import shaped
from specref.checkpoints.shaping import NO_SETTINGS
from specref.contracts.text.contract import Engine, Text
from specref.vocabulary import Tokens, Vocabulary

PACKAGES = ("openvino_genai",)
REMEDY = "pip install openvino-genai"
PROMPT = (0, 1, 2, 3, 0, 1, 2, 3)
P, Q, EARLIER = (np.random.default_rng(seed).normal(size=(4, 4)) for seed in (1, 2, 3))
EXACT = {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f32"}
SAMPLED: dict[str, Any] = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0}
ENDLESS: dict[str, Any] = {"ignore_eos": True, "eos_token_id": 4, "stop_token_ids": {4}}


class Responding:
    """Texts of a pipeline, with counts of drafts."""

    def __init__(self, pipe: Any, **settings: Any) -> None:
        self.pipe, self.settings = pipe, {**SAMPLED, **ENDLESS, **settings}

    def __call__(self, prompt: Tokens, budget: int, seed: int) -> Text:
        import openvino_genai as genai
        from openvino import Tensor

        config = genai.GenerationConfig()  # which takes any name by keyword, and leaves it out
        set_known(config, max_new_tokens=budget, rng_seed=seed, **self.settings)
        answer = self.pipe.generate(Tensor(np.array([prompt])), config)
        drafts = answer.extended_perf_metrics
        if drafts is None:  # each iteration gives one token and the drafts that it accepts
            given = answer.perf_metrics.raw_metrics.m_batch_sizes
            return Text(answer.tokens[0], None, sum(given) - len(given))
        accepted = drafts.get_num_accepted_tokens()
        # 2026.4.1 leaves the drafts of the last iteration out of the first count.
        return Text(answer.tokens[0], max(drafts.get_num_draft_tokens(), accepted), accepted)


def load_engine(lookup: bool = False, settings: Mapping[str, float] = NO_SETTINGS) -> Engine:
    """A pipeline over toy models whose law is known, and the same without speculation.

    Raises
    ------
    NotInstalledError
        The package is missing, has no such setting, or cannot be called like this.
    """
    require(PACKAGES, REMEDY)
    import openvino_genai as genai

    from specref.adapters.toy_openvino import toy_law, write_model

    drafts = {"num_assistant_tokens": 2, "max_ngram_size": 2 if lookup else 0}
    with tempfile.TemporaryDirectory() as folder, tried("LLMPipeline"):
        scheduler = genai.SchedulerConfig()
        # With it and a draft model, 2026.4.1 raises here.
        set_known(scheduler, enable_prefix_caching=False)
        target = write_model(Path(folder, "target"), P, EARLIER)
        drafter = write_model(Path(folder, "drafter"), Q, EARLIER)
        draft = {"draft_model": genai.draft_model(drafter, "CPU", **EXACT)}
        fast, slow = (
            genai.LLMPipeline(target, "CPU", scheduler_config=scheduler, **EXACT, **own)
            for own in ({"prompt_lookup": True} if lookup else draft, {})
        )
        drafting, plain = Responding(fast, **drafts, **settings), Responding(slow, **settings)
        for mode in (drafting, plain):
            mode(PROMPT, 1, 0)
    law, guess = (toy_law(Vocabulary("abcd"), logits, EARLIER) for logits in (P, Q))
    known = shaped(law, settings)
    return Engine(drafting, [PROMPT], known, plain, None if lookup else guess)
