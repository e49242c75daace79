"""Transformers tokenizers that read and write text as a specref `Vocabulary` does."""

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False, disallow-subclassing-any=False, warn-unused-ignores=False

import re
from typing import Literal, TypeAlias

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

from specref.vocabulary import Vocabulary

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
