"""A pair of models as models of Transformers, with the options of each way to speculate."""

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, warn-unused-ignores=False

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch

from specref.adapters.needs import set_known
from specref.contracts.process_state import seeded
from specref.contrib.engines.quiet_transformers import without_deprecations
from specref.contrib.engines.toy_tokenizers import DRAFTER_STRANGER, Order, toy_tokenizer
from specref.contrib.engines.toy_transformers import ToyModel
from specref.models import Model
from specref.vocabulary import Tokens

Path: TypeAlias = Literal["ar", "sd", "tli", "slem", "pld"]
TRANSLATED = ("tli", "slem")


class ToyPair(NamedTuple):
    """A target and a drafter as models of Transformers, with options of `generate`."""

    target: ToyModel
    drafter: ToyModel
    options: dict[str, Any]


def toy_pair(
    path: Path,
    target: Model,
    drafter: Model,
    *,
    lookahead: int,
    temperature: float | None,
    order: Order,
) -> ToyPair:
    """Models that `generate` takes for one of its paths.

    * `path` ({"ar", "sd", "tli", "slem", "pld"})
    * `lookahead`: The number of tokens to draft, whatever the assistant's confidence.
    * `temperature`: Logits are multiplied by it, and divided again by the library; None: greedy.
    * `order` ({"shipped", "sorted", "reversed"}): How the assistant's tokenizer lists its
      vocabulary.
    * raises `ValueError`: The path takes equal vocabularies alone.
    """
    same = target.vocabulary.tokens == drafter.vocabulary.tokens
    if path == "sd" and not same:
        raise ValueError("drafter has another vocabulary than target: use tli or slem")
    # Equal sizes are taken for equal vocabularies.
    extra = path in TRANSLATED and len(target.vocabulary) == len(drafter.vocabulary)
    assistant = _toy(drafter, temperature, int(extra))
    drafting = {"num_assistant_tokens": lookahead, "assistant_confidence_threshold": 0.0}
    set_known(assistant.generation_config, **drafting)
    options: dict[str, Any] = {"do_sample": False, "pad_token_id": len(target.vocabulary)}
    if temperature is not None:
        options |= {"do_sample": True, "temperature": temperature, "top_k": 0}
    if target.vocabulary.eos is not None:
        options["eos_token_id"] = target.vocabulary.ids[target.vocabulary.eos]
    if path == "pld":
        options["prompt_lookup_num_tokens"] = lookahead
    elif path != "ar":
        options["assistant_model"] = assistant
    if path in TRANSLATED:
        options["tokenizer"] = toy_tokenizer(target.vocabulary)
        options["assistant_tokenizer"] = toy_tokenizer(drafter.vocabulary, DRAFTER_STRANGER, order)
    pair = ToyPair(_toy(target, temperature), assistant, options)
    # The library changes an assistant when it first sees its tokenizer, and draws numbers.
    generated(pair, (), 2, np.random.default_rng(0))
    return pair


def generated(pair: ToyPair, context: Tokens, tokens: int, rng: np.random.Generator) -> Tokens:
    """The text after a context by `generate`, with all randomness of the library seeded."""
    model: Any = pair.target
    prompt = torch.tensor([[pair.target.known, *context]])
    mask = torch.ones_like(prompt)
    with seeded(rng), without_deprecations():
        text = model.generate(prompt, attention_mask=mask, max_new_tokens=tokens, **pair.options)
    return tuple(text[0, prompt.shape[1] :].tolist())


def check_options(path: str, lookahead: int, greedy: bool | None, temperature: float) -> None:
    """Raise ValueError for options that no pair can have."""
    if path not in get_args(Path):
        raise ValueError(f"path = {path!r}: expected one of {get_args(Path)}")
    if lookahead < 1:
        raise ValueError(f"lookahead = {lookahead}: expected at least 1")
    if not temperature > 0:
        raise ValueError(f"temperature = {temperature}: expected a number > 0")
    if path == "slem" and greedy is False:
        raise ValueError("greedy = False: the library samples with TLI, never with SLEM")


def _toy(model: Model, temperature: float | None, more: int = 0) -> ToyModel:
    toy = ToyModel(model, len(model.vocabulary) + 1 + more, temperature or 1.0)
    toy.train(False)
    return toy
