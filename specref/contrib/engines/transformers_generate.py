"""Hugging Face Transformers: `generate` with an assistant, under the contract ``generate``.

`generate(target, drafter, context, tokens, rng)` runs the library's own loop, drafting and
verification on toy models; nothing of it is replaced or patched. Tokenizers read and write text
as a specref `Vocabulary` does.
"""

import re
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch
from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

from specref.adapters.needs import set_known
from specref.contracts.process_state import seeded
from specref.contrib.engines.calling_generate import Block, blocks, without_deprecations
from specref.contrib.engines.toys import ToyModel, eos_of
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, disallow-subclassing-any=False, warn-unused-ignores=False


Order: TypeAlias = Literal["shipped", "sorted", "reversed"]
"""How a tokenizer lists its vocabulary: as the library does, by id, or by descending id."""
Path: TypeAlias = Literal["ar", "sd", "tli", "slem", "pld"]
TRANSLATED = ("tli", "slem")
REMEMBERED_PAIRS = 32
PRIVATE = "\ue000"
TARGET_STRANGER, DRAFTER_STRANGER = PRIVATE + "\ue001", PRIVATE + "\ue002"


class ToyTokenizer(PreTrainedTokenizerFast):
    """A fast tokenizer that lists its vocabulary in a chosen order.

    Nothing about a vocabulary depends on it, so no code should.
    """

    order: Order = "shipped"

    def get_vocab(self) -> dict[str, int]:
        vocabulary: dict[str, int] = super().get_vocab()
        if self.order == "shipped":
            return vocabulary
        by_id = sorted(vocabulary.items(), key=lambda item: item[1])
        return dict(by_id if self.order == "sorted" else by_id[::-1])


def toy_tokenizer(
    vocabulary: Vocabulary, stranger: str = TARGET_STRANGER, order: Order = "shipped"
) -> ToyTokenizer:
    """A tokenizer with the greedy longest match of a vocabulary of str that does not normalise.

    `stranger` is the token for unknown text; its id is the first after those of the vocabulary.
    """
    tokens = [token for token in vocabulary.tokens if isinstance(token, str)]
    if len(tokens) < len(vocabulary) or vocabulary.normalise is not None:
        raise ValueError("vocabulary: expected one of str that does not normalise")
    ids = {token: index for index, token in enumerate((*tokens, stranger))}
    backend = Tokenizer(WordLevel(ids, unk_token=stranger))
    # The first alternative that matches wins: the longest.
    longest_first = sorted(tokens, key=len, reverse=True)
    backend.pre_tokenizer = Split(Regex("|".join(map(re.escape, longest_first))), "isolated")
    backend.decoder = Fuse()
    tokenizer = ToyTokenizer(tokenizer_object=backend)
    tokenizer.order = order
    return tokenizer


class ToyPair(NamedTuple):
    """A target and a drafter as models of Transformers, with options of `generate`."""

    target: ToyModel
    drafter: ToyModel
    options: dict[str, Any]

    def text(self, context: Tokens, tokens: int, rng: np.random.Generator) -> Tokens:
        """The text after a context, with all randomness of the library seeded."""
        model: Any = self.target
        prompt = torch.tensor([[model.known, *context]])
        asked = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": tokens}
        with seeded(rng), without_deprecations():
            text = model.generate(prompt, **asked, **self.options)
        return tuple(text[0, prompt.shape[1] :].tolist())


class Generate:
    """`generate` of Transformers by one of its paths, as a function of specref models.

    * `path`: Without an assistant (``ar``); with one of the same vocabulary (``sd``,
      `assistant_model`); with `assistant_tokenizer` and `do_sample` (``tli``: universal
      speculative decoding); with it and greedy decoding (``slem``: universal assisted generation);
      prompt lookup (``pld``).
    * `lookahead`: The number of tokens to draft, whatever the assistant's confidence.
    * `greedy`: Decode by argmax. SLEM is always greedy.
    * `temperature`: Passed to `generate`, with logits multiplied by it beforehand: after the
      library's warping, the target's law is that of the `Model`, and so is the drafter's if it is
      warped once.
    * `anew`: Make new models and tokenizers for every text, as in a process of its own. The order
      "shipped" is then drawn for every text.
    * `blocks`: Blocks of the last text without its last block, which may be cut. They are derived
      from the lengths of the target's forward passes.
    * `forwards`: Number of forward passes of target and drafter for the last text.

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
        """Generate `tokens` target tokens after `context`, or up to EOS."""
        if tokens < 1:
            raise ValueError(f"tokens = {tokens}: expected at least 1")
        target.vocabulary.check(context, "context")
        pair = self.pair(target, drafter)
        pair.target.forwards.clear()
        pair.drafter.forwards.clear()
        text = pair.text(context, tokens, rng)
        self.blocks = blocks(pair.target.forwards, len(context) + 1)
        self.forwards = len(pair.target.forwards), len(pair.drafter.forwards)
        return text

    def _pair(self, target: Model, drafter: Model) -> ToyPair:
        """Models that `generate` takes for the path; logits are multiplied by the temperature."""
        words, others = target.vocabulary, drafter.vocabulary
        if self.path == "sd" and words.tokens != others.tokens:
            raise ValueError("drafter has another vocabulary than target: use tli or slem")
        # Equal sizes are taken for equal vocabularies.
        extra = self.path in TRANSLATED and len(words) == len(others)
        assistant = self._toy(drafter, int(extra))
        drafting = {"num_assistant_tokens": self.lookahead, "assistant_confidence_threshold": 0.0}
        set_known(assistant.generation_config, **drafting)
        options: dict[str, Any] = {"do_sample": False, "pad_token_id": len(words)}
        if not self.greedy:
            options |= {"do_sample": True, "temperature": self.temperature, "top_k": 0}
        if words.eos is not None:
            options["eos_token_id"] = eos_of(target)
        if self.path == "pld":
            options["prompt_lookup_num_tokens"] = self.lookahead
        elif self.path != "ar":
            options["assistant_model"] = assistant
        if self.path in TRANSLATED:
            options["tokenizer"] = toy_tokenizer(words)
            options["assistant_tokenizer"] = toy_tokenizer(others, DRAFTER_STRANGER, self.order)
        pair = ToyPair(self._toy(target), assistant, options)
        # The library changes an assistant when it first sees its tokenizer, and draws numbers.
        pair.text((), 2, np.random.default_rng(0))
        return pair

    def _toy(self, model: Model, more: int = 0) -> ToyModel:
        heat = 1.0 if self.greedy else self.temperature
        toy = ToyModel(model, len(model.vocabulary) + 1 + more, heat)
        toy.train(False)
        return toy
