"""Vocabularies of published models, from packages that carry them; what they have in common."""

from specref.real_vocabularies.files import ChangedFileError, VocabularyNotInstalledError
from specref.real_vocabularies.formats import VocabularyFileError
from specref.real_vocabularies.loading import load, load_file
from specref.real_vocabularies.overlap import Overlap, overlap
from specref.real_vocabularies.sources import PUBLISHED
from specref.real_vocabularies.vocabulary import DuplicateBytesError, RealVocabulary, Token

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
