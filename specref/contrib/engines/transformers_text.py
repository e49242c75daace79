"""Hugging Face Transformers under the contract ``text``: `generate` on a pair with a known law.

The models are Llamas with the library's own key-value cache, loaded from files, as their
tokenizers are. `engine_of_folders` puts two models of anyone's to the same contract.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from specref.adapters.needs import require, set_known
from specref.contracts.sampling import TEXT
from specref.contracts.text import Engine, Respond, Text
from specref.contrib.checkpoints.law import NO_SETTINGS
from specref.contrib.engines.calling_generate import Forward, blocks, cache_of
from specref.contrib.engines.on_pairs import PROMPTS, Pair, on_pair
from specref.vocabulary import Tokens

PACKAGES = ("torch", "tokenizers", "transformers")
REMEDY = "pip install 'specref[torch]'"
UNSHAPED: Mapping[str, float] = MappingProxyType(
    {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
)
"""What `generate` is told, so that its own default, top-k 50, is not a setting of everyone."""


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
    """
    require(PACKAGES, REMEDY)

    def modes(pair: Pair) -> tuple[Respond, Respond]:
        given = {"do_sample": False} if greedy else dict(settings)
        target, _, options = assisted(pair[2:], path, lookahead)
        begin = (pair.target.start,)
        speculative = responding(target, {**options, **given}, begin)
        # The library changes an assistant when it first sees its tokenizer, and draws numbers.
        speculative(PROMPTS[-1], 2, 0)
        return speculative, responding(target, given, begin)

    # Of an empty text, the assistant's tokenizer makes no ids at all, and it raises.
    prompts = PROMPTS[1:] if path == "tli" else PROMPTS
    return on_pair(modes, law, settings, greedy=greedy, prompts=prompts, has_drafter=path == "sd")


def engine_of_folders(
    target: str | Path,
    drafter: str | Path,
    prompts: Sequence[str],
    tokens: int = TEXT,
    lookahead: int = 3,
    settings: Mapping[str, float] = NO_SETTINGS,
) -> Engine:
    """`generate` with an assistant, from two local folders, to be compared with plain decoding.

    The assistant's tokenizer is given, too, where its vocabulary is another (TLI).

    Parameters
    ----------
    target, drafter : path
        Of folders with a model and its tokenizer, as `save_pretrained` writes them.
    prompts : sequence of str
        Each is tried. Where the target is fairly sure how to go on, texts come again, so that
        few of them show a difference.
    tokens : int
        Of each text.
    lookahead : int
    settings : mapping from str to float
        As for `generate`; by default the target's own law, without top-k.

    Raises
    ------
    NotInstalledError
        A package is missing.
    ValueError
        A folder has no whole model.
    """
    require(PACKAGES, REMEDY)
    # Imported here: it needs torch, which may be missing.
    from specref.contrib.real_models.loading import check_folder

    for name, folder in (("target", target), ("drafter", drafter)):
        check_folder(folder, name)
    model, tokenizers, options = assisted((target, drafter), "", lookahead)
    given = {**UNSHAPED, **settings}
    speculative, plain = responding(model, {**options, **given}), responding(model, given)
    ids = [tuple(tokenizers[0].encode(prompt)) for prompt in prompts]
    engine = Engine(speculative, ids, None, plain, tokens=tokens, eos=tokenizers[0].eos_token_id)
    speculative(engine.prompts[0], 2, 0)  # it changes the assistant, and draws numbers
    return engine


def assisted(
    folders: Sequence[str | Path], path: str, lookahead: int
) -> tuple[Any, list[Any], dict[str, Any]]:
    """A target, both tokenizers, and the options of `generate` that make it speculate.

    `path` is one of `load_engine`; empty, it is ``sd`` for one vocabulary and ``tli`` for two.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from specref.contrib.engines.calling_generate import without_progress

    with without_progress():
        target, drafter = (
            AutoModelForCausalLM.from_pretrained(one, local_files_only=True) for one in folders
        )
        tokenizers = [AutoTokenizer.from_pretrained(one, local_files_only=True) for one in folders]
    options: dict[str, Any] = {"assistant_model": drafter}
    drafting = {"num_assistant_tokens": lookahead, "assistant_confidence_threshold": 0.0}
    set_known(drafter.generation_config, num_assistant_tokens_schedule="constant", **drafting)
    if not path:
        one, other = (tokenizer.get_vocab() for tokenizer in tokenizers)
        path = "sd" if one == other else "tli"
    if path == "tli":
        options |= {"tokenizer": tokenizers[0], "assistant_tokenizer": tokenizers[1]}
    if path == "pld":
        options = {"prompt_lookup_num_tokens": lookahead, "max_matching_ngram_size": 1}
    return target, tokenizers, options


def responding(model: Any, options: Mapping[str, Any], start: Tokens = ()) -> Respond:
    """Texts by `generate` with these options, after a start that every prompt has."""
    import torch

    from specref.contracts.process_state import seeded
    from specref.contrib.engines.calling_generate import without_deprecations

    forwards: list[Forward] = []

    def note(module: Any, args: Any, given: dict[str, Any]) -> None:
        cached, fed = cache_of(given).get_seq_length(), given["input_ids"].shape[1]
        forwards.append(Forward(cached, fed))

    def respond(prompt: Tokens, budget: int, seed: int) -> Text:
        ids = torch.tensor([[*start, *prompt]])
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
