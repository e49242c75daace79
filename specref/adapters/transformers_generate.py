"""Hugging Face Transformers: `generate` with an assistant, under the contract ``generate``.

`generate(target, drafter, context, tokens, rng)` runs the library's own loop, drafting and
verification on toy models; nothing of it is replaced or patched.
"""

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, warn-unused-ignores=False

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch
from transformers.utils import logging as transformers_logging

from specref.adapters.forwards import Block, blocks
from specref.adapters.toy_tokenizers import (
    DRAFTER_STRANGER,
    Order,
    ToyTokenizer,
    toy_tokenizer,
)
from specref.adapters.toy_transformers import ToyModel
from specref.contracts.torch_state import seeded
from specref.models import Model
from specref.vocabulary import Tokens

Path: TypeAlias = Literal["ar", "sd", "tli", "slem", "pld"]
REMEMBERED_PAIRS = 32
LOGGER = "transformers.generation.utils"
CONFIDENCE = "assistant_confidence_threshold"


class ToyPair(NamedTuple):
    """A target and a drafter as models of Transformers, with options of `generate`."""

    target: ToyModel
    drafter: ToyModel
    options: dict[str, Any]


class Generate:
    """`generate` of Transformers by one of its paths, as a function of specref models.

    Parameters
    ----------
    path : {"ar", "sd", "tli", "slem", "pld"}
        Without an assistant; with one of the same vocabulary (`assistant_model`); with
        `assistant_tokenizer` and `do_sample` (universal speculative decoding, TLI); with it
        and greedy decoding (universal assisted generation, SLEM); prompt lookup.
    lookahead : int
        The number of tokens to draft; the assistant drafts no fewer, whatever its confidence.
    greedy : bool, optional
        Decode by argmax. SLEM is always greedy.
    temperature : float
        Passed to `generate`, with logits multiplied by it beforehand: after the library's
        warping, the target's law is that of the `Model`, and so is the drafter's if it is
        warped once.
    order : {"shipped", "sorted", "reversed"}
        How the assistant's tokenizer lists its vocabulary.
    anew : bool
        Make new models and tokenizers for every text, as in a process of its own. The
        order "shipped" is then drawn for every text.

    Attributes
    ----------
    blocks : tuple of Block
        Blocks of the last text without its last block, which may be cut. They are derived
        from the lengths of the target's forward passes.
    forwards : tuple of (int, int)
        Number of forward passes of target and drafter for the last text.

    Raises
    ------
    ValueError
        An unknown path, a lookahead < 1, a temperature <= 0, or SLEM that is not greedy.

    Examples
    --------
    >>> from specref.models import markov_model
    >>> from specref.vocabulary import Vocabulary
    >>> ab = Vocabulary("ab")
    >>> turns = markov_model(ab, [1, 0], [[0, 1], [1, 0]])
    >>> generate = Generate("sd", lookahead=2)
    >>> generate(turns, turns, (), 7, np.random.default_rng(1))
    (0, 1, 0, 1, 0, 1, 0)
    >>> generate.blocks[0]
    Block(start=0, drafted=2, accepted=2)
    """

    def __init__(
        self,
        path: Path,
        *,
        lookahead: int = 4,
        greedy: bool | None = None,
        temperature: float = 1.0,
        order: Order = "shipped",
        anew: bool = False,
    ) -> None:
        if path not in get_args(Path):
            raise ValueError(f"path = {path!r}: expected one of {get_args(Path)}")
        if lookahead < 1:
            raise ValueError(f"lookahead = {lookahead}: expected at least 1")
        if not temperature > 0:
            raise ValueError(f"temperature = {temperature}: expected a number > 0")
        if path == "slem" and greedy is False:
            raise ValueError("greedy = False: the library samples with TLI, never with SLEM")
        self.path, self.lookahead, self.order = path, lookahead, order
        self.greedy = path == "slem" if greedy is None else greedy
        self.temperature = temperature
        self.blocks: tuple[Block, ...] = ()
        self.forwards = (0, 0)
        self.pair = self._pair if anew else lru_cache(REMEMBERED_PAIRS)(self._pair)

    def __call__(
        self,
        target: Model,
        drafter: Model,
        context: Tokens,
        tokens: int,
        rng: np.random.Generator,
    ) -> Tokens:
        """Generate `tokens` target tokens after `context`, or up to EOS.

        Raises
        ------
        ValueError
            `tokens` < 1, a bad context, or vocabularies that the path does not take.
        """
        if tokens < 1:
            raise ValueError(f"tokens = {tokens}: expected at least 1")
        target.vocabulary.check(context, "context")
        pair = self.pair(target, drafter)
        pair.target.forwards.clear()
        pair.drafter.forwards.clear()
        text = self._text(pair, context, tokens, rng)
        self.blocks = blocks(pair.target.forwards, len(context) + 1)
        self.forwards = len(pair.target.forwards), len(pair.drafter.forwards)
        return text

    def _text(
        self, pair: ToyPair, context: Tokens, tokens: int, rng: np.random.Generator
    ) -> Tokens:
        model: Any = pair.target
        prompt = torch.tensor([[pair.target.known, *context]])
        mask = torch.ones_like(prompt)
        with seeded(rng), without_deprecations():
            text = model.generate(
                prompt, attention_mask=mask, max_new_tokens=tokens, **pair.options
            )
        return tuple(text[0, prompt.shape[1] :].tolist())

    def _pair(self, target: Model, drafter: Model) -> ToyPair:
        same = target.vocabulary.tokens == drafter.vocabulary.tokens
        if self.path == "sd" and not same:
            raise ValueError("drafter has another vocabulary than target: use tli or slem")
        # Equal sizes are taken for equal vocabularies.
        extra = self.path in ("tli", "slem") and len(target.vocabulary) == len(drafter.vocabulary)
        assistant = self._model(drafter, int(extra))
        for name, value in (("num_assistant_tokens", self.lookahead), (CONFIDENCE, 0.0)):
            setattr(assistant.generation_config, name, value)
        options = self._options(target, drafter, assistant)
        pair = ToyPair(self._model(target), assistant, options)
        # The library changes an assistant when it first sees its tokenizer, and draws numbers.
        self._text(pair, (), 2, np.random.default_rng(0))
        return pair

    def _model(self, model: Model, more: int = 0) -> ToyModel:
        temperature = 1.0 if self.greedy else self.temperature
        toy = ToyModel(model, len(model.vocabulary) + 1 + more, temperature)
        toy.train(False)
        return toy

    def _options(self, target: Model, drafter: Model, assistant: ToyModel) -> dict[str, Any]:
        options: dict[str, Any] = {"do_sample": False, "pad_token_id": len(target.vocabulary)}
        if not self.greedy:
            options |= {"do_sample": True, "temperature": self.temperature, "top_k": 0}
        if target.vocabulary.eos is not None:
            options["eos_token_id"] = target.vocabulary.ids[target.vocabulary.eos]
        if self.path == "pld":
            options["prompt_lookup_num_tokens"] = self.lookahead
        elif self.path != "ar":
            options["assistant_model"] = assistant
        if self.path in ("tli", "slem"):
            options["tokenizer"] = toy_tokenizer(target.vocabulary)
            options["assistant_tokenizer"] = self.assistant_tokenizer(drafter)
        return options

    def assistant_tokenizer(self, drafter: Model) -> ToyTokenizer:
        """The drafter's tokenizer, listing its vocabulary in the chosen order."""
        return toy_tokenizer(drafter.vocabulary, DRAFTER_STRANGER, self.order)


@contextmanager
def without_progress() -> Iterator[None]:
    """Load models without a progress bar."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


@contextmanager
def without_deprecations() -> Iterator[None]:
    """Suppress deprecation warnings about the library's own calls, in this thread.

    With an assistant, `generate` calls `generate` in a deprecated way; its caller cannot change
    that.
    """
    logger, thread = logging.getLogger(LOGGER), threading.get_ident()

    def others(record: logging.LogRecord) -> bool:
        return record.thread != thread or "is deprecated" not in record.getMessage()

    logger.addFilter(others)
    try:
        yield
    finally:
        logger.removeFilter(others)
