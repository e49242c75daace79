"""The vocabulary tables of Timor et al. 2025, reproduced as far as the vocabularies can be had."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from specref.contrib.vocabularies.files import VocabularyNotInstalledError
from specref.contrib.vocabularies.formats import load
from specref.contrib.vocabularies.overlap import Overlap, overlap
from specref.contrib.vocabularies.round_trips import RoundTrip, probing_texts, round_trip
from specref.contrib.vocabularies.sources import PUBLISHED
from specref.contrib.vocabularies.summaries import Decompositions, summarise
from specref.contrib.vocabularies.tokenisers import TOKENISERS
from specref.contrib.vocabularies.vocabulary import RealVocabulary
from specref.theory.counting import Spellings, spellings
from specref.vocabulary import Text, Vocabulary

SECTIONS = ("vocabularies", "overlap", "decompositions", "round-trips")
COUNTED, WORD = "qwen2", "hello"


@dataclass(frozen=True)
class NotRun:
    """The reason why a figure is missing."""

    reason: str


class Printed(NamedTuple):
    """|T ∩ D| as the paper prints it."""

    target: str
    drafter: str
    shared: int


PRINTED = (
    Printed("llama-3.1", "qwen2", 109_566),
    Printed("mixtral-8x22b", "vicuna", 24_184),
    Printed("mixtral-8x22b", "qwen2", 10_566),
    Printed("phi-3", "qwen2", 9_588),
    Printed("gemma-2", "vicuna", 30_489),
    Printed("codellama", "starcoder", 8_481),
)


@dataclass(frozen=True)
class Word:
    """The paper's example: a word, its spellings, and which of its pieces are no tokens."""

    spellings: Spellings
    missing: tuple[Text, ...]


@dataclass(frozen=True)
class Counted:
    """Decompositions over one vocabulary: of the example, and of every token."""

    word: Word
    tokens: Decompositions


@dataclass(frozen=True)
class Tables:
    """Everything that was measured; what was not asked for is empty or None.

    * `vocabularies`: By name, or why one could not be had.
    * `overlaps`: One for each of `PRINTED`.
    * `decompositions`: Over Qwen2 by string, the paper's vocabulary.
    * `round_trips`: By tokeniser.
    """

    vocabularies: Mapping[str, RealVocabulary | NotRun]
    overlaps: Sequence[Overlap | NotRun] = ()
    decompositions: Counted | NotRun | None = None
    round_trips: Mapping[str, RoundTrip | NotRun] | None = None


def measure(
    downloads: Sequence[str | Path] = (),
    sections: Collection[str] = SECTIONS,
    advance: Callable[[str], object] = lambda doing: None,
) -> Tables:
    """Measure the tables; what cannot be had is `NotRun`, with the reason.

    * `downloads`: As for `load`.
    * `sections`: Some of `SECTIONS`.
    * `advance`: Told the name of each section that is done.
    * raises `ChangedFileError`: A file is there, and is not the one that is pinned.
    """
    had = {name: _had(name, downloads) for name in PUBLISHED}
    advance("vocabularies")
    overlaps = [_overlap(had, row) for row in PRINTED] if "overlap" in sections else []
    advance("overlap")
    decompositions = _counted(had[COUNTED]) if "decompositions" in sections else None
    advance("decompositions")
    trips = {name: _round_trip(had, name) for name in TOKENISERS if "round-trips" in sections}
    advance("round-trips")
    return Tables(had, overlaps, decompositions, trips or None)


def word_in(vocabulary: Vocabulary, word: str = WORD) -> Word:
    """The spellings of a word, and which of its pieces are no tokens.

    * raises `UntokenisableError`: There are none.

    Examples
    --------
    >>> found = word_in(Vocabulary(["a", "b", "ab"]), "abb")
    >>> found.spellings.count, found.missing
    (2, ('abb', 'bb'))
    """
    found = spellings(word, vocabulary)
    found.check()
    cuts = ((i, j) for i in range(len(word)) for j in range(i + 1, len(word) + 1))
    pieces = sorted({word[i:j] for i, j in cuts} - vocabulary.ids.keys())
    return Word(found, tuple(pieces))


def _counted(vocabulary: RealVocabulary | NotRun) -> Counted | NotRun:
    if isinstance(vocabulary, NotRun):
        return vocabulary
    strings = vocabulary.by_string()
    return Counted(word_in(strings), summarise(strings))


def _had(name: str, downloads: Sequence[str | Path]) -> RealVocabulary | NotRun:
    try:
        return load(name, downloads)
    except VocabularyNotInstalledError as error:
        return NotRun(str(error))


def _overlap(had: Mapping[str, RealVocabulary | NotRun], row: Printed) -> Overlap | NotRun:
    unknown = [name for name in (row.target, row.drafter) if name not in had]
    if unknown:
        return NotRun(f"no package is known to specref that carries {' or '.join(unknown)}")
    target, drafter = had[row.target], had[row.drafter]
    if isinstance(target, NotRun):
        return target
    return drafter if isinstance(drafter, NotRun) else overlap(target, drafter)


def _round_trip(had: Mapping[str, RealVocabulary | NotRun], name: str) -> RoundTrip | NotRun:
    tokeniser = TOKENISERS[name]
    vocabulary = had[tokeniser.vocabulary]
    if isinstance(vocabulary, NotRun):
        return vocabulary
    try:
        return round_trip(*tokeniser.codec(vocabulary), probing_texts())
    except VocabularyNotInstalledError as error:
        return NotRun(str(error))
