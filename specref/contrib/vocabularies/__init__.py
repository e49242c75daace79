"""Vocabularies of published models, from packages that carry them; what they have in common."""

from specref.contrib.vocabularies.files import (
    PUBLISHED,
    ChangedFileError,
    VocabularyNotInstalledError,
)
from specref.contrib.vocabularies.formats import VocabularyFileError, load, load_file
from specref.contrib.vocabularies.vocabulary import (
    DuplicateBytesError,
    Overlap,
    RealVocabulary,
    Token,
    overlap,
)

__all__ = [
    "PUBLISHED",
    "ChangedFileError",
    "DuplicateBytesError",
    "Overlap",
    "RealVocabulary",
    "Token",
    "VocabularyFileError",
    "VocabularyNotInstalledError",
    "load",
    "load_file",
    "overlap",
]
