"""Hugging Face Transformers: `generate` with an assistant, under the contract ``generate``.

`generate(target, drafter, context, tokens, rng)` runs the library's own loop, drafting and
verification on toy models; nothing of it is replaced or patched.

Toy models are a pair with the options of each way to speculate; tokenizers read and write text as
a specref `Vocabulary` does.
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
from specref.contrib.engines.toys import ToyModel
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, disallow-subclassing-any=False, warn-unused-ignores=False


Order: TypeAlias = Literal["shipped", "sorted", "reversed"]
PRIVATE = "\ue000"
TARGET_STRANGER, DRAFTER_STRANGER = PRIVATE + "\ue001", PRIVATE + "\ue002"


class ToyTokenizer(PreTrainedTokenizerFast):
    """A fast tokenizer that lists its vocabulary in a chosen order.

    * `order` ({"shipped", "sorted", "reversed"}): Order of `get_vocab()`: that of the library, by
      id, or by descending id. Nothing about a vocabulary depends on it, so no code should.
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
    """A tokenizer with the greedy longest match of a vocabulary.

    * `vocabulary`: A vocabulary of str without `normalise`.
    * `stranger`: The token for unknown text; its id is the first after those of the vocabulary.
    * `order` ({"shipped", "sorted", "reversed"}): Order of `get_vocab()`.
    * raises `ValueError`: The vocabulary is of bytes, or it normalises.
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


# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, warn-unused-ignores=False


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


REMEMBERED_PAIRS = 32


class Generate:
    """`generate` of Transformers by one of its paths, as a function of specref models.

    * `path` ({"ar", "sd", "tli", "slem", "pld"}): Without an assistant; with one of the same
      vocabulary (`assistant_model`); with `assistant_tokenizer` and `do_sample` (universal
      speculative decoding, TLI); with it and greedy decoding (universal assisted generation,
      SLEM); prompt lookup.
    * `lookahead`: The number of tokens to draft; the assistant drafts no fewer, whatever its
      confidence.
    * `greedy`: Decode by argmax. SLEM is always greedy.
    * `temperature`: Passed to `generate`, with logits multiplied by it beforehand: after the
      library's warping, the target's law is that of the `Model`, and so is the drafter's if it is
      warped once.
    * `order` ({"shipped", "sorted", "reversed"}): How the assistant's tokenizer lists its
      vocabulary.
    * `anew`: Make new models and tokenizers for every text, as in a process of its own. The order
      "shipped" is then drawn for every text.
    * `blocks`: Blocks of the last text without its last block, which may be cut. They are derived
      from the lengths of the target's forward passes.
    * `forwards` (tuple of (int, int)): Number of forward passes of target and drafter for the last
      text.
    * raises `ValueError`: An unknown path, a lookahead < 1, a temperature <= 0, or SLEM that is
      not greedy.

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
        check_options(path, lookahead, greedy, temperature)
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

        * raises `ValueError`: `tokens` < 1, a bad context, or vocabularies that the path does not
          take.
        """
        if tokens < 1:
            raise ValueError(f"tokens = {tokens}: expected at least 1")
        target.vocabulary.check(context, "context")
        pair = self.pair(target, drafter)
        pair.target.forwards.clear()
        pair.drafter.forwards.clear()
        text = generated(pair, context, tokens, rng)
        self.blocks = blocks(pair.target.forwards, len(context) + 1)
        self.forwards = len(pair.target.forwards), len(pair.drafter.forwards)
        return text

    def _pair(self, target: Model, drafter: Model) -> ToyPair:
        heat = None if self.greedy else self.temperature
        return toy_pair(
            self.path,
            target,
            drafter,
            lookahead=self.lookahead,
            temperature=heat,
            order=self.order,
        )
