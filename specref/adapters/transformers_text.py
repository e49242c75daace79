"""Hugging Face Transformers under the contract ``text``: `generate` on a pair with a known law.

The models are Llamas with the library's own key-value cache, loaded from files, as their
tokenizers are.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from specref.adapters.forwards import Forward, blocks, cache_of
from specref.adapters.needs import require, set_known
from specref.adapters.on_pairs import MANY, PROMPTS, Pair, on_pair
from specref.checkpoints.shaping import NO_SETTINGS
from specref.contracts.text.contract import Engine, Respond, Text
from specref.vocabulary import Tokens

PACKAGES = ("torch", "tokenizers", "transformers")
REMEDY = "pip install 'specref[torch]'"


def load_engine(
    path: str = "sd",
    law: str = "lookback",
    lookahead: int = 3,
    settings: Mapping[str, float] = NO_SETTINGS,
    greedy: bool = False,
) -> Engine:
    """An assistant (``sd``), one with another vocabulary (``tli``), or prompt lookup (``pld``).

    `greedy` is decoding by argmax, with one text after each of 80 prompts.

    Drafts are counted by the lengths of the target's forward passes; those of the last block of a
    text are not known.

    Raises
    ------
    NotInstalledError
        A package is missing.
    """
    require(PACKAGES, REMEDY)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from specref.adapters.quiet_transformers import without_progress

    def modes(pair: Pair) -> tuple[Respond, Respond]:
        with without_progress():
            target, drafter = (AutoModelForCausalLM.from_pretrained(one) for one in pair[2:])
            tokenizers = [AutoTokenizer.from_pretrained(folder) for folder in pair[2:]]
        options: dict[str, Any] = {"assistant_model": drafter}
        drafting = {"num_assistant_tokens": lookahead, "assistant_confidence_threshold": 0.0}
        set_known(drafter.generation_config, num_assistant_tokens_schedule="constant", **drafting)
        if path == "tli":
            options |= {"tokenizer": tokenizers[0], "assistant_tokenizer": tokenizers[1]}
        if path == "pld":
            options = {"prompt_lookup_num_tokens": lookahead, "max_matching_ngram_size": 1}
        given = {"do_sample": False} if greedy else dict(settings)
        speculative = responding(target, pair.target.start, {**options, **given})
        # The library changes an assistant when it first sees its tokenizer, and draws numbers.
        speculative(PROMPTS[-1], 2, 0)
        return speculative, responding(target, pair.target.start, given)

    # Of an empty text, the assistant's tokenizer makes no ids at all, and it raises.
    prompts = MANY if greedy else PROMPTS[1:] if path == "tli" else PROMPTS
    return on_pair(modes, law, settings, prompts=prompts, has_drafter=path == "sd", long=greedy)


def responding(model: Any, start: int, options: dict[str, Any]) -> Respond:
    """Texts by `generate`, under the settings of the checkpoint, which change no law."""
    import torch

    from specref.adapters.quiet_transformers import without_deprecations
    from specref.contracts.torch_state import seeded

    forwards: list[Forward] = []

    def note(module: Any, args: Any, given: dict[str, Any]) -> None:
        cached, fed = cache_of(given).get_seq_length(), given["input_ids"].shape[1]
        forwards.append(Forward(cached, fed))

    def respond(prompt: Tokens, budget: int, seed: int) -> Text:
        ids = torch.tensor([[start, *prompt]])
        asked = {"attention_mask": torch.ones_like(ids), "max_new_tokens": budget, **options}
        forwards.clear()
        hook = model.register_forward_pre_hook(note, with_kwargs=True)
        try:
            with seeded(np.random.default_rng(seed)), without_deprecations():
                tokens = model.generate(ids, **asked)[0, ids.shape[1] :].tolist()
        finally:
            hook.remove()
        found = blocks(forwards, ids.shape[1])
        return Text(tokens, sum(one.drafted for one in found), sum(one.accepted for one in found))

    return respond
