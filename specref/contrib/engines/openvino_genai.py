"""OpenVINO GenAI's `LLMPipeline`, with a draft model or prompt lookup, on laws that are known."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from specref.adapters.needs import require, set_known, tried
from specref.contracts.text import Engine, Respond, Text
from specref.contrib.checkpoints import Law
from specref.contrib.checkpoints.law import NO_SETTINGS
from specref.contrib.engines.on_pairs import PROMPTS, Pair, on_pair
from specref.vocabulary import Tokens

PACKAGES = ("openvino_genai",)
REMEDY = "pip install openvino-genai"
EXACT = {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f32"}
SAMPLED: dict[str, Any] = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0}


class Responding:
    """Texts of a pipeline over a checkpoint of a law, with counts of drafts."""

    def __init__(self, pipe: Any, law: Law, **settings: Any) -> None:
        end = law.size if law.eos is None else law.eos  # without EOS, no token
        ends = {"eos_token_id": end, "stop_token_ids": {end}, "ignore_eos": law.eos is None}
        self.pipe, self.start, self.settings = pipe, law.start, {**SAMPLED, **ends, **settings}

    def __call__(self, prompt: Tokens, budget: int, seed: int) -> Text:
        import openvino_genai as genai
        from openvino import Tensor

        config = genai.GenerationConfig()  # which takes any name by keyword, and leaves it out
        set_known(config, max_new_tokens=budget, rng_seed=seed, **self.settings)
        answer = self.pipe.generate(Tensor(np.array([[self.start, *prompt]])), config)
        drafts = answer.extended_perf_metrics
        if drafts is None:  # each iteration gives one token and the drafts that it accepts
            given = answer.perf_metrics.raw_metrics.m_batch_sizes
            return Text(answer.tokens[0], None, sum(given) - len(given))
        accepted = drafts.get_num_accepted_tokens()
        # 2026.4.1 leaves the drafts of the last iteration out of the first count.
        return Text(answer.tokens[0], max(drafts.get_num_draft_tokens(), accepted), accepted)


def load_engine(
    lookup: bool = False,
    law: str = "lookback",
    settings: Mapping[str, float] = NO_SETTINGS,
    greedy: bool = False,
) -> Engine:
    """A pipeline with two drafts, and the same without speculation; by argmax, if `greedy`."""
    require(PACKAGES, REMEDY)
    import openvino_genai as genai

    drafts = {"num_assistant_tokens": 2, "max_ngram_size": 2 if lookup else 0}

    def modes(pair: Pair) -> tuple[Respond, Respond]:
        with tried("LLMPipeline"):
            scheduler = genai.SchedulerConfig()
            # With it and a draft model, 2026.4.1 raises here.
            set_known(scheduler, enable_prefix_caching=False)
            draft = {"draft_model": genai.draft_model(pair.drafter_folder, "CPU", **EXACT)}
            fast, slow = (
                genai.LLMPipeline(
                    pair.target_folder, "CPU", scheduler_config=scheduler, **EXACT, **own
                )
                for own in ({"prompt_lookup": True} if lookup else draft, {})
            )
            given = {"do_sample": False} if greedy else settings
            drafting = Responding(fast, pair.target, **drafts, **given)
            plain = Responding(slow, pair.target, **given)
            for mode in (drafting, plain):
                mode(PROMPTS[-1], 1, 0)
        return drafting, plain

    return on_pair(modes, law, settings, "openvino", greedy=greedy, has_drafter=not lookup)
