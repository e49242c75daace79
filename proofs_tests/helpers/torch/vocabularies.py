"""Vocabularies of toy tokenizers, by kind."""

from collections.abc import Callable
from typing import Any

from proofs_tests.helpers.torch.tokenizers import (
    byte_level,
    unigram,
    word_piece,
)
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

KINDS: dict[str, Callable[[], Any]] = {
    "byte-level": byte_level,
    "bytes": lambda: byte_level(merges=False),
    "unigram": unigram,
    "sentencepiece": lambda: unigram(space_first=True, fallback=True),
    "wordpiece": word_piece,
}


EXACT = ["byte-level", "bytes", "unigram", "sentencepiece"]


def vocabulary(kind: str) -> TokenVocabulary:
    return TokenVocabulary.from_tokenizer(KINDS[kind]())
