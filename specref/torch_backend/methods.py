"""The methods, and how to build the drafter of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from specref.torch_backend.drafters.drafts import Drafter, Shape, StandardDrafter
from specref.torch_backend.drafters.mapped import TliDrafter, UnionDrafter
from specref.torch_backend.drafters.slem import SlemDrafter
from specref.torch_backend.drafters.slrs import SlrsDrafter
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.models.configs import vocabulary_size
from specref.torch_backend.models.trees import TreeModel
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
