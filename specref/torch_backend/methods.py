"""The methods of `generate`, how to build the drafter of each, and checks of its arguments.

Arguments are checked before anything runs; errors name the value.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Drafter, Shape, StandardDrafter
from specref.torch_backend.drafters.mapped import TliDrafter, UnionDrafter
from specref.torch_backend.drafters.slem import SlemDrafter
from specref.torch_backend.drafters.slrs import SlrsDrafter
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.models.configs import (
    MIXING,
    check_cache,
    longest_text,
    text_config,
    vocabulary_size,
)
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.vocabularies.spelling import needed_ids
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Pair:
    """A target and a drafter, their tokenizers if a method needs them, and the shape of laws."""

    target: "PreTrainedModel"
    drafter: "PreTrainedModel"
    tokenizer: Any
    drafter_tokenizer: Any
    shape: Shape
    use_cache: bool

    @property
    def model(self) -> CachedModel:
        """The drafter with a cache of its own."""
        return CachedModel(self.drafter, self.use_cache)

    @property
    def tree_model(self) -> TreeModel:
        """The drafter, to read trees of continuations."""
        return TreeModel(self.drafter, self.use_cache)

    @property
    def vocabularies(self) -> tuple[TokenVocabulary, TokenVocabulary]:
        """The vocabularies of target and drafter, with the sizes of the models' logits."""
        read = TokenVocabulary.from_tokenizer
        return (
            read(self.tokenizer, vocabulary_size(self.target.config)),
            read(self.drafter_tokenizer, vocabulary_size(self.drafter.config)),
        )


Builder: TypeAlias = Callable[[Pair], Drafter]


def _over_two(drafter: Callable[..., Drafter]) -> Builder:
    return lambda pair: drafter(pair.model, *pair.vocabularies, pair.shape)


def _by_trees(drafter: Callable[..., Drafter]) -> Builder:
    return lambda pair: drafter(pair.tree_model, *pair.vocabularies, pair.shape)


AUTOREGRESSIVE = "autoregressive"
DRAFTERS: Mapping[str, Builder] = MappingProxyType(
    {
        "standard": lambda pair: StandardDrafter(pair.model, pair.shape),
        "union": _over_two(UnionDrafter),
        "tli": _over_two(TliDrafter),
        "slem": _over_two(SlemDrafter),
        "slrs": _by_trees(SlrsDrafter),
    }
)
METHODS = (*DRAFTERS, AUTOREGRESSIVE)
# Names that methods had before; they are taken, and not listed.
FORMER: Mapping[str, str] = MappingProxyType({"lazy-slrs": "slrs"})
BLOCK = "block"
VERIFICATIONS = ("token", BLOCK)
READING_TREES = ("slrs",)
DECLARING = ("standard", "union", "tli")


SEEDS = range(-(2**63), 2**63)


def check_method(method: str, verification: str) -> None:
    """Raise `ValueError` unless both are known, and go together."""
    if method not in METHODS:
        raise ValueError(f"method = {method!r}: expected one of {', '.join(METHODS)}")
    if verification not in VERIFICATIONS:
        expected = " or ".join(VERIFICATIONS)
        raise ValueError(f"verification = {verification!r}: expected {expected}")
    if verification == BLOCK and method not in DECLARING:
        raise ValueError(
            f"verification = {verification!r}: expected 'token' with method {method!r}; the "
            f"distributions of drafts are declared with {', '.join(DECLARING)}"
        )


def check_numbers(lookahead: int, max_new_tokens: int) -> None:
    """Raise `TypeError` or `ValueError` unless both are integers in range."""
    for name, value, least in (("lookahead", lookahead, 0), ("max_new_tokens", max_new_tokens, 1)):
        if not _is_integer(value):
            raise TypeError(f"{name} = {value!r}: expected an integer")
        if value < least:
            raise ValueError(f"{name} = {value}: expected an integer >= {least}")


def check_models(**models: Any) -> None:
    """Raise `TypeError` unless each is a model with a configuration, or None.

    Raise `ValueError` for architectures whose rows cannot be read together.
    """
    for name, model in models.items():
        config = text_config(getattr(model, "config", None))
        if model is not None and not hasattr(config, "vocab_size"):
            raise TypeError(
                f"{name} = {model!r}: expected a causal language model of Transformers"
            )
        if getattr(config, "model_type", "") in MIXING:
            raise ValueError(
                f"{name}: rows of a batch change each other's logits in {type(model).__name__}: "
                "expected another architecture"
            )


def check_pair(
    method: str,
    target: "PreTrainedModel",
    drafter: "PreTrainedModel | None",
    tokenizer: Any,
    drafter_tokenizer: Any,
) -> None:
    """Raise `ValueError` unless a method has the drafter and the vocabularies it needs."""
    if method == AUTOREGRESSIVE:
        return
    if drafter is None:
        raise ValueError(f"drafter is None: method {method!r} expects a model")
    if method == "standard":
        _check_one_vocabulary(target, drafter, tokenizer, drafter_tokenizer)
        return
    given = {"tokenizer": tokenizer, "drafter_tokenizer": drafter_tokenizer}
    for name, value in given.items():
        if value is None:
            raise ValueError(f"{name} is None: method {method!r} expects both tokenizers")
    for name, model in (("tokenizer", target), ("drafter_tokenizer", drafter)):
        needed, size = needed_ids(given[name]), vocabulary_size(model.config)
        if needed > size:
            raise ValueError(f"{name} has {needed} tokens: expected at most its model's {size}")


def check_caches(
    method: str, target: "PreTrainedModel", drafter: "PreTrainedModel | None"
) -> None:
    """Raise `ValueError` unless the caches of both models can be cropped."""
    check_cache("target", target)
    if method != AUTOREGRESSIVE and drafter is not None:
        check_cache("drafter", drafter, trees=method in READING_TREES)


def _check_one_vocabulary(
    target: "PreTrainedModel",
    drafter: "PreTrainedModel",
    tokenizer: Any,
    drafter_tokenizer: Any,
) -> None:
    sizes = vocabulary_size(target.config), vocabulary_size(drafter.config)
    other = "method 'standard' expects one vocabulary (or use 'tli', 'slem' or 'slrs')"
    if sizes[0] != sizes[1]:
        raise ValueError(f"drafter has {sizes[1]} tokens and the target {sizes[0]}: {other}")
    if tokenizer is None or drafter_tokenizer is None or tokenizer is drafter_tokenizer:
        return
    if tokenizer.get_vocab() != drafter_tokenizer.get_vocab():
        raise ValueError(f"drafter_tokenizer has other tokens than tokenizer: {other}")


def as_prompts(
    prompts: Sequence[str | Sequence[int]], tokenizer: Any, size: int
) -> list[list[int]]:
    """Prompts as token ids; text is encoded with the special tokens that its tokenizer adds.

    * raises `TypeError`: `prompts` is text, or a prompt is neither text nor token ids.
    * raises `ValueError`: There is no prompt, one is empty, or is text without a tokenizer; or an
      id is out of range.
    """
    if isinstance(prompts, str):
        raise TypeError(f"prompts = {prompts!r}: expected a list of prompts")
    if not len(prompts):
        raise ValueError("prompts is empty: expected at least one prompt")
    rows = [_as_ids(index, prompt, tokenizer) for index, prompt in enumerate(prompts)]
    for index, row in enumerate(rows):
        if not row:
            raise ValueError(f"prompts[{index}] is empty: expected at least one token")
        check_ids(f"prompts[{index}]", row, size)
    return [[int(token) for token in row] for row in rows]


def _as_ids(index: int, prompt: str | Sequence[int], tokenizer: Any) -> list[int]:
    if not isinstance(prompt, str):
        return prompt.tolist() if isinstance(prompt, Tensor) else list(prompt)
    if tokenizer is None:
        raise ValueError(f"prompts[{index}] = {prompt!r}: expected token ids, or a tokenizer")
    if not hasattr(tokenizer, "get_vocab"):
        raise TypeError(f"tokenizer = {tokenizer!r}: expected a tokenizer of Transformers")
    ids: list[int] = tokenizer.encode(prompt)
    return ids


def check_ids(name: str, ids: Iterable[int], size: int) -> None:
    """Raise unless these are integers from 0 to `size` - 1."""
    for place, token in enumerate(ids):
        if not _is_integer(token):
            raise TypeError(f"{name}[{place}] = {token!r}: expected a token id")
        if not 0 <= token < size:
            raise ValueError(f"{name}[{place}] = {token}: expected a token id below {size}")


def check_room(rows: Sequence[Sequence[int]], max_new_tokens: int, **models: Any) -> None:
    """Raise `ValueError` unless each model can read every prompt with its new tokens."""
    for name, model in models.items():
        most = longest_text(model.config)
        for index, row in enumerate(rows):
            if len(row) + max_new_tokens > most:
                raise ValueError(
                    f"prompts[{index}] has {len(row)} tokens, and max_new_tokens = "
                    f"{max_new_tokens}: expected at most {most} together, the positions of the "
                    f"{name}"
                )


def as_eos(eos: int | Collection[int] | None, size: int) -> frozenset[int]:
    """The ids that end a text.

    * raises `TypeError`, `ValueError`: One is no token id.
    """
    several: list[Any] = list(eos) if isinstance(eos, Collection) else [eos]
    ids = [] if eos is None else several
    check_ids("eos", ids, size)
    return frozenset(map(int, ids))


def as_seeds(seeds: Sequence[int] | Tensor, rows: int, device: torch.device) -> Tensor:
    """One seed for each row, on the device.

    * raises `TypeError`: A seed is no integer.
    * raises `ValueError`: There are more or fewer seeds than rows, or one does not fit 64 bits.
    """
    if not isinstance(seeds, Tensor | Sequence) or isinstance(seeds, str):
        raise TypeError(f"seeds = {seeds!r}: expected one integer for each prompt, in a list")
    values = seeds.tolist() if isinstance(seeds, Tensor) else list(seeds)
    if len(values) != rows:
        raise ValueError(f"seeds has {len(values)} entries: expected {rows}, one for each prompt")
    for index, seed in enumerate(values):
        if not _is_integer(seed):
            raise TypeError(f"seeds[{index}] = {seed!r}: expected an integer")
        if int(seed) not in SEEDS:  # of other types `range` would compare one by one
            raise ValueError(f"seeds[{index}] = {seed}: expected an integer of 64 bits, signed")
    return torch.tensor([int(seed) for seed in values], dtype=torch.int64).to(device)


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
