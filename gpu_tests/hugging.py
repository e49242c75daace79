"""Transformers' own `generate` on the trained pairs, one text at a time."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TypeAlias
from unittest.mock import patch

import torch
from torch import Tensor

from gpu_tests.forcing import forced_laws
from gpu_tests.pairs import Pair
from gpu_tests.recording import Draws
from specref.contracts.process_state import seeded
from specref.contrib.engines.forwards import Block, Forward, blocks, cache_of
from specref.torch_backend import shape_logits

Path: TypeAlias = Literal["ar", "sd", "pld", "tli", "tli, sorted"]
LOOKAHEAD = 4
CERTAIN = "assistant_confidence_threshold"


class Texts(NamedTuple):
    """New tokens after each prompt, and the blocks that they were made of."""

    tokens: list[list[int]]
    blocks: list[tuple[Block, ...]]


def texts_by_transformers(
    pair: Pair, path: Path, prompts: Sequence[Sequence[int]], tokens: int, rng: Any
) -> Texts:
    """Sample `tokens` tokens after each prompt at temperature 1; nothing ends a text earlier."""
    model: Any = pair.target
    device, options = str(model.device), _options(pair, path)
    made, parts = [], []
    endless = patch.object(model.generation_config, "eos_token_id", None)
    with endless, seeded(rng, device), _listening(model) as forwards:
        for prompt in prompts:
            forwards.clear()
            ids = torch.tensor([list(prompt)], device=device)
            text = model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, **options
            )[0].tolist()
            made.append(text[len(prompt) :])
            # The forward that would come next tells what was kept of the last block.
            parts.append(blocks([*forwards, Forward(len(text) - 1, 1)], len(prompt)))
    return Texts(made, parts)


def _options(pair: Pair, path: Path) -> dict[str, Any]:
    config: Any = copy.deepcopy(pair.target.generation_config)
    config.update(do_sample=True, top_k=0, eos_token_id=None)
    options: dict[str, Any] = {"generation_config": config}
    if path == "pld":
        config.prompt_lookup_num_tokens = LOOKAHEAD
    elif path != "ar":
        options["assistant_model"] = _assistant(pair)
    if path.startswith("tli"):
        options["tokenizer"] = copy.deepcopy(pair.tokenizer)
        options["assistant_tokenizer"] = _listed(pair, "sorted" in path)
    return options


def _assistant(pair: Pair) -> Any:
    """A copy: universal decoding changes the model it is given."""
    assistant: Any = copy.deepcopy(pair.drafter)
    assistant.generation_config.update(num_assistant_tokens=LOOKAHEAD, eos_token_id=None)
    setattr(assistant.generation_config, CERTAIN, 0.0)
    return assistant


def _listed(pair: Pair, by_id: bool) -> Any:
    """The drafter's tokenizer, which lists its vocabulary in the library's order or by id."""
    tokenizer = copy.deepcopy(pair.drafter_tokenizer)
    if by_id:
        listed = dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]))
        tokenizer.get_vocab = lambda: dict(listed)
    return tokenizer


@contextmanager
def _listening(model: Any) -> Iterator[list[Forward]]:
    forwards: list[Forward] = []

    def note(_: Any, given: Any, named: dict[str, Any]) -> None:
        past, ids = cache_of(named), named.get("input_ids")
        fed = (given[0] if ids is None else ids).shape[1]
        forwards.append(Forward(past.get_seq_length() if past is not None else 0, fed))

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield forwards
    finally:
        handle.remove()


def draws(pair: Pair, method: str, prompts: Sequence[Sequence[int]], texts: Texts) -> Draws:
    """Tokens of some texts with p, and at the first draft of each block with a method's q."""
    p = forced_laws(pair.target, prompts, texts.tokens, shape_logits).cpu()
    q, kept = p.clone(), torch.zeros(len(p), dtype=torch.bool)
    starts, contexts, end = [], [], 0
    for prompt, text, parts in zip(prompts, *texts, strict=True):
        for part in parts:
            if part.drafted and method != "autoregressive":
                starts.append(end + part.start)
                contexts.append([*prompt, *text[: part.start]])
                kept[starts[-1]] = part.accepted > 0
        end += len(text)
    drafted = torch.zeros_like(kept)
    if contexts:
        q[starts], drafted[starts] = _first_laws(pair, method, contexts), True
    tokens = torch.tensor([token for text in texts.tokens for token in text])
    return Draws(p, q, tokens, torch.zeros_like(tokens), drafted, kept)


def _first_laws(pair: Pair, method: str, contexts: Sequence[Sequence[int]]) -> Tensor:
    seeds = torch.zeros(len(contexts), dtype=torch.int64, device=pair.target.device)
    drafts = pair.drafts_by(method, shape_logits).draft(contexts, 1, seeds, 0)
    assert drafts.laws is not None
    return drafts.laws[:, 0].float().cpu()
