"""Hugging Face Transformers under the contract ``text``: `generate` on a pair with a known law.

The models are Llamas with the library's own key-value cache, loaded from files, as their
tokenizers are.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from specref.adapters.forwards import Forward, blocks
from specref.adapters.needs import require
from specref.checkpoints import build, named_pair, shaped
from specref.checkpoints.shaping import NO_SETTINGS
from specref.contracts.text.contract import Engine, Respond, Text
from specref.vocabulary import Tokens

PACKAGES = ("torch", "tokenizers", "transformers")
REMEDY = "pip install 'specref[torch]'"
PROMPTS: tuple[Tokens, ...] = ((), (0, 1, 2, 0, 1, 2, 0, 1), (3, 2, 1, 0))


def load_engine(
    path: str = "sd",
    law: str = "lookback",
    lookahead: int = 3,
    settings: Mapping[str, float] = NO_SETTINGS,
) -> Engine:
    """An assistant (``sd``), one with another vocabulary (``tli``), or prompt lookup (``pld``).

    Drafts are counted by the lengths of the target's forward passes; those of the last block of a
    text are not known.

    Raises
    ------
    NotInstalledError
        A package is missing.
    """
    require(PACKAGES, REMEDY)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from specref.adapters.transformers_generate import without_progress

    pair = named_pair(law)
    with tempfile.TemporaryDirectory() as folder, without_progress():
        paths = build(pair, Path(folder) / "pair").values()
        target, drafter = (AutoModelForCausalLM.from_pretrained(path) for path in paths)
        tokenizers = [AutoTokenizer.from_pretrained(path) for path in paths]
    options: dict[str, Any] = {"assistant_model": drafter}
    for name, value in (
        ("num_assistant_tokens", lookahead),
        ("num_assistant_tokens_schedule", "constant"),
        ("assistant_confidence_threshold", 0.0),
    ):
        setattr(drafter.generation_config, name, value)
    if path == "tli":
        options |= {"tokenizer": tokenizers[0], "assistant_tokenizer": tokenizers[1]}
    if path == "pld":
        options = {"prompt_lookup_num_tokens": lookahead, "max_matching_ngram_size": 1}
    start, known = pair["target"].start, shaped(pair["target"].model, settings)
    speculative = responding(target, start, {**options, **settings})
    # The library changes an assistant when it first sees its tokenizer, and draws numbers.
    speculative(PROMPTS[-1], 2, 0)
    return Engine(
        speculative,
        # Of an empty text, the assistant's tokenizer makes no ids at all, and it raises.
        PROMPTS[1:] if path == "tli" else PROMPTS,
        law=known,
        plain=responding(target, start, dict(settings)),
        drafter=pair["drafter"].model if path == "sd" else None,
        eos=None if known else pair["target"].eos,
    )


def responding(model: Any, start: int, options: dict[str, Any]) -> Respond:
    """Texts by `generate`, under the settings of the checkpoint, which change no law."""
    import torch

    from specref.adapters.transformers_generate import without_deprecations
    from specref.contracts.torch_state import seeded

    forwards: list[Forward] = []

    def note(module: Any, args: Any, given: dict[str, Any]) -> None:
        forwards.append(
            Forward(given["past_key_values"].get_seq_length(), given["input_ids"].shape[1])
        )

    def respond(prompt: Tokens, budget: int, seed: int) -> Text:
        ids = torch.tensor([[start, *prompt]])
        forwards.clear()
        hook = model.register_forward_pre_hook(note, with_kwargs=True)
        try:
            with seeded(np.random.default_rng(seed)), without_deprecations():
                found = model.generate(
                    ids, attention_mask=torch.ones_like(ids), max_new_tokens=budget, **options
                )
        finally:
            hook.remove()
        tokens = found[0, ids.shape[1] :].tolist()
        drafted = blocks(forwards, ids.shape[1])
        return Text(
            tokens, sum(one.drafted for one in drafted), sum(one.accepted for one in drafted)
        )

    return respond
