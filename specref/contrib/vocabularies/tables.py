"""The vocabulary tables of Timor et al. 2025, reproduced as far as the vocabularies can be had."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

from specref.contrib.vocabularies.files import PUBLISHED, VocabularyNotInstalledError
from specref.contrib.vocabularies.formats import load
from specref.contrib.vocabularies.tokenisers import (
    TOKENISERS,
    RoundTrip,
    probing_texts,
    round_trip,
)
from specref.contrib.vocabularies.vocabulary import Overlap, RealVocabulary, overlap
from specref.theory.counting import Spellings, spellings
from specref.vocabulary import Text, Vocabulary

SHORTEST = 150_000


@dataclass(frozen=True)
class Summary:
    """The columns of the paper's table; `deviation` is that of a sample, with n - 1."""

    mean: float
    deviation: float
    least: int
    quartiles: tuple[float, float, float]
    most: int


@dataclass(frozen=True)
class Decompositions:
    """Figures of a whole vocabulary, and of its shortest tokens, in the order (length, id).

    * `shortest`: How many the summaries are of. The paper states no rule for which of several
      tokens of one length are in: what depends on it is bounded by `means`.
    * `lengths`, `counts`, `forwards`: Of the shortest tokens: characters of their strings,
      decompositions, and contexts at which the drafter's law is needed.
    * `sequences`: The decompositions of the shortest tokens together.
    * `tied`, `taken`: How many tokens are as long as the last that is in, and how many of them are
      in.
    * `means`: The least and the greatest mean of `counts` over all choices among those.
    * `rest`: The decompositions of every longer token, in ascending order.
    * `more_forwards`: For how many tokens forwards are more than decompositions.
    * `longest_spellings`: For how many tokens n_max is their length.
    """

    tokens: int
    shortest: int
    lengths: Summary
    counts: Summary
    forwards: Summary
    sequences: int
    tied: int
    taken: int
    means: tuple[Fraction, Fraction]
    rest: tuple[int, ...]
    more_forwards: int
    longest_spellings: int


def summarise(vocabulary: Vocabulary, shortest: int = SHORTEST) -> Decompositions:
    """Count the decompositions of every token.

    * raises `ValueError`: `shortest` is not between 2 and the number of tokens.
    """
    if not 2 <= shortest <= len(vocabulary):
        raise ValueError(f"shortest = {shortest}: expected 2 to {len(vocabulary)}, the tokens")
    order: list[Text] = sorted(vocabulary.tokens, key=len)
    found = (spellings(token, vocabulary) for token in order)
    figures = [(one.count, one.forwards, one.n_max) for one in found]
    counts, forwards, n_maxs = map(list, zip(*figures, strict=True))
    lengths = [len(token) for token in order]
    last = lengths[shortest - 1]
    tied = [count for count, length in zip(counts, lengths, strict=True) if length == last]
    taken = sum(length == last for length in lengths[:shortest])
    return Decompositions(
        tokens=len(order),
        shortest=shortest,
        lengths=_summary(lengths[:shortest]),
        counts=_summary(counts[:shortest]),
        forwards=_summary(forwards[:shortest]),
        sequences=sum(counts[:shortest]),
        tied=len(tied),
        taken=taken,
        means=_means(counts[: shortest - taken], sorted(tied), taken),
        rest=tuple(sorted(counts[shortest:])),
        more_forwards=sum(f > c for f, c in zip(forwards, counts, strict=True)),
        longest_spellings=sum(n == length for n, length in zip(n_maxs, lengths, strict=True)),
    )


def _means(shorter: list[int], tied: list[int], taken: int) -> tuple[Fraction, Fraction]:
    size = len(shorter) + taken
    least, most = (sum(shorter) + sum(some) for some in (tied[:taken], tied[-taken:]))
    return Fraction(least, size), Fraction(most, size)


def _summary(values: Sequence[int]) -> Summary:
    array = np.array(values, dtype=np.float64)
    low, median, high = np.percentile(array, [25, 50, 75]).tolist()
    deviation = float(array.std(ddof=1))
    return Summary(float(array.mean()), deviation, min(values), (low, median, high), max(values))


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
class Counted:
    """Decompositions over one vocabulary: of the paper's example, and of every token.

    * `missing`: The pieces of the example that are no tokens.
    """

    word: Spellings
    missing: tuple[Text, ...]
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


def word_in(vocabulary: Vocabulary, word: str = WORD) -> tuple[Spellings, tuple[Text, ...]]:
    """The spellings of a word, and which of its pieces are no tokens.

    * raises `UntokenisableError`: There are none.
    """
    found = spellings(word, vocabulary)
    found.check()
    cuts = ((i, j) for i in range(len(word)) for j in range(i + 1, len(word) + 1))
    pieces = sorted({word[i:j] for i, j in cuts} - vocabulary.ids.keys())
    return found, tuple(pieces)


def _counted(vocabulary: RealVocabulary | NotRun) -> Counted | NotRun:
    if isinstance(vocabulary, NotRun):
        return vocabulary
    strings = vocabulary.by_string()
    return Counted(*word_in(strings), summarise(strings))


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
