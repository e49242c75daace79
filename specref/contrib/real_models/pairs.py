"""Pairs of a target and a drafter, and which methods are run on them.

Drafters with a model's own vocabulary are made of its own weights in a few lines.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from specref.contrib.real_models.conversion import folder_of, is_converted
from specref.contrib.real_models.loading import Loaded, check_folder, digest, load
from specref.contrib.real_models.published import COMMAND
from specref.torch_backend.methods import Pair as MethodPair
from specref.torch_backend.models.configs import check_cache, vocabulary_size
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary, id_map

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BLOCK = 32
GEMMA, SMOLLM2 = "gemma-3-270m", "smollm2-135m"
ONE_VOCABULARY = ("autoregressive", "standard", "block")
TWO_VOCABULARIES = ("autoregressive", "union", "tli", "slem", "slrs")
BITS, KEPT_LAYERS = 3, 24


def rounded_weights(weights: Tensor, bits: int, block: int = BLOCK) -> Tensor:
    """Round to 2**bits levels, evenly from the least to the largest of each block of a row.

    * raises `ValueError`: `bits` is out of range, or the columns are no multiple of `block`.

    >>> rounded_weights(torch.tensor([0.0, 0.4, 0.9, 3.0]), bits=2, block=4)
    tensor([0., 0., 1., 3.])
    """
    if not 1 <= bits <= 8:
        raise ValueError(f"bits = {bits}: expected 1 to 8")
    if weights.shape[-1] % block:
        raise ValueError(f"block = {block}: expected a divisor of {weights.shape[-1]} columns")
    blocks = weights.float().reshape(*weights.shape[:-1], -1, block)
    least, most = blocks.amin(-1, keepdim=True), blocks.amax(-1, keepdim=True)
    step = (most - least) / (2**bits - 1)
    levels = ((blocks - least) / step.where(step > 0, 1)).round()
    nearest: Tensor = least + levels * step
    return nearest.reshape(weights.shape).to(weights.dtype)


@torch.no_grad()
def rounded(model: "PreTrainedModel", bits: int = 3, block: int = BLOCK) -> "PreTrainedModel":
    """A copy whose matrices are rounded, those with rows that split into blocks."""
    drafter = copy.deepcopy(model)
    for weights in drafter.parameters():
        if weights.ndim == 2 and not weights.shape[1] % block:
            weights.copy_(rounded_weights(weights, bits, block))
    return drafter


def first_layers(model: "PreTrainedModel", layers: int) -> "PreTrainedModel":
    """The first layers, not all, with the model's own final norm and head: early exit.

    The model has `model.model.layers`, as Llama and its relatives have.
    """
    config: Any = copy.deepcopy(model.config)
    if not 1 <= layers < config.num_hidden_layers:
        raise ValueError(f"layers = {layers}: expected 1 to {config.num_hidden_layers - 1}")
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    drafter: Any = type(model)(config)
    kept = drafter.state_dict().keys()
    drafter.load_state_dict(
        {name: one for name, one in model.state_dict().items() if name in kept}
    )
    drafter.generation_config = copy.deepcopy(model.generation_config)
    made: PreTrainedModel = drafter.to(model.device, model.dtype).eval()
    return made


@dataclass(frozen=True, eq=False)
class Pair:
    """A target and a drafter, loaded.

    * `methods`: Those of `generate`; "block" is "standard", verified by block.
    * `use_cache`: If False every text is read whole in every pass.
    * `digests`: Of the two folders' files, by role; none of published models.
    * `shared`: How many of the drafter's tokens the target has, apart from the end of a text.
    """

    name: str
    target: Loaded
    drafter: Loaded
    methods: tuple[str, ...]
    use_cache: bool = True
    digests: Mapping[str, str] = field(default_factory=dict)
    shared: int | None = None

    def for_methods(self, shape: Any) -> MethodPair:
        """The pair as the builders of drafters take it."""
        models, tokenizers = (
            (self.target.model, self.drafter.model),
            (self.target.tokenizer, self.drafter.tokenizer),
        )
        return MethodPair(*models, *tokenizers, shape, self.use_cache)


def paired(target: Loaded, drafter: Loaded, name: str = "") -> Pair:
    """Put two models together, if they go together, with the methods of their vocabularies."""
    if target.model.device != drafter.model.device:
        raise ValueError(
            f"draft model is on {drafter.model.device}, target on {target.model.device}: expected "
            "one device"
        )
    same = same_vocabulary(target, drafter)
    shared = ids_of(drafter) if same else shared_tokens(target, drafter)
    if not shared:
        raise ValueError(
            f"draft model {drafter.name} shares no token with target {target.name} but the end of "
            "a text: no draft could be accepted by union or tli; choose another draft model"
        )
    methods = ONE_VOCABULARY if same else TWO_VOCABULARIES
    return Pair(
        name or f"{target.name} <- {drafter.name}", target, drafter, methods, shared=shared
    )


def same_vocabulary(target: Loaded, drafter: Loaded) -> bool:
    """Whether both models have the same ids for the same strings, and equally many."""
    one, other = (loaded.tokenizer.get_vocab() for loaded in (target, drafter))
    return bool(one == other and ids_of(target) == ids_of(drafter))


def ids_of(loaded: Loaded) -> int:
    """How many ids a model has logits for."""
    return vocabulary_size(loaded.model.config)


def shared_tokens(target: Loaded, drafter: Loaded) -> int:
    """How many of the drafter's tokens the target has, apart from the end of a text."""
    read = TokenVocabulary.from_tokenizer
    one, other = (read(loaded.tokenizer, ids_of(loaded)) for loaded in (target, drafter))
    there = id_map(one, other) >= 0
    if other.eos is not None:
        there[other.eos] = False
    return int(there.sum())


class Published:
    """The published pairs on one device, each model loaded when it is first needed.

    * raises `ImportError`: The models are not converted.
    """

    def __init__(self, device: str = "cpu", dtype: str = "float32") -> None:
        stored = "float32" if dtype != "bfloat16" else dtype
        missing = [name for name in (GEMMA, SMOLLM2) if not is_converted(name, stored)]
        if missing:
            folder = folder_of(missing[0], stored)
            raise ImportError(f"{folder} is not there: {COMMAND}")
        self._load = cache(lambda name: load(folder_of(name, stored), name, device, dtype, name))

    def pair(self, name: str) -> Pair:
        """One of `PAIRS`."""
        return PAIRS[name](self._load)


def folders_pair(
    target: str | Path, drafter: str | Path, device: str, dtype: str, use_cache: bool = True
) -> Pair:
    """A pair from two local folders, both of which are looked at before one is loaded."""
    named = {"target": target, "drafter": drafter}
    for name, folder in named.items():
        check_folder(folder, name)
    one, other = (load(folder, name, device, dtype) for name, folder in named.items())
    pair = replace(
        paired(one, other), digests={name: digest(folder) for name, folder in named.items()}
    )
    if not use_cache:
        return replace(pair, name=f"{pair.name}, no cache", use_cache=False)
    for (name, folder), loaded in zip(named.items(), (one, other), strict=True):
        check_cache(f"{name} = {folder}", loaded.model)
    return pair


Builder = Callable[[Callable[[str], Loaded]], Pair]


def _two(target: str, drafter: str) -> Builder:
    return lambda load: Pair(
        f"{target} <- {drafter}", load(target), load(drafter), TWO_VOCABULARIES
    )


def _own(name: str, label: str, make: Callable[[Any], Any]) -> Builder:
    def build(load: Callable[[str], Loaded]) -> Pair:
        target = load(name)
        drafter = Loaded(label, make(target.model), target.tokenizer)
        return Pair(f"{name} <- {label}", target, drafter, ONE_VOCABULARY[1:])

    return build


PAIRS: Mapping[str, Builder] = MappingProxyType(
    {
        "gemma<-smollm2": _two(GEMMA, SMOLLM2),
        "smollm2<-gemma": _two(SMOLLM2, GEMMA),
        "smollm2<-3 bits": _own(SMOLLM2, f"its weights in {BITS} bits", rounded),
        "smollm2<-early exit": _own(
            SMOLLM2,
            f"its first {KEPT_LAYERS} of 30 layers",
            lambda m: first_layers(m, KEPT_LAYERS),
        ),
    }
)
