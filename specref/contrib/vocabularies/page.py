"""The page with the vocabulary tables."""

import textwrap
from collections.abc import Iterable, Sequence
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version

from specref.contrib.vocabularies.overlap import Overlap
from specref.contrib.vocabularies.page_text import (
    ARTEFACT,
    DECOMPOSITIONS,
    HEAD,
    OVERLAP,
    REST,
    ROUND_TRIPS,
    TIES,
    WORD,
)
from specref.contrib.vocabularies.round_trips import RoundTrip
from specref.contrib.vocabularies.sources import PUBLISHED
from specref.contrib.vocabularies.summaries import Decompositions
from specref.contrib.vocabularies.tables import PRINTED, Counted, NotRun, Tables
from specref.contrib.vocabularies.tokenisers import TOKENISERS
from specref.contrib.vocabularies.vocabulary import RealVocabulary

HUGE = 10**9


def vocabularies_markdown(tables: Tables, command: str) -> str:
    """A page with a section for each measurement."""
    head = _paragraph(HEAD, command=command)
    header = "vocabulary | tokens | special | same bytes as another | package | got by | sha256"
    rows = [_vocabulary_row(*item) for item in tables.vocabularies.items()]
    parts = ["# Real vocabularies", head, _table(header, rows)]
    if tables.overlaps:
        title = "## What target and drafter have in common"
        parts += [title, _paragraph(OVERLAP), _overlaps(tables.overlaps)]
        parts += _artefacts(tables.overlaps)
    if tables.decompositions is not None:
        parts += ["## Decompositions", _paragraph(DECOMPOSITIONS)]
        parts += _decompositions(tables.decompositions)
    if tables.round_trips is not None:
        title = "## Round trip and injectivity"
        header = "tokeniser | made by | texts | returned | confused | for example"
        rows = [_round_trip_row(*item) for item in tables.round_trips.items()]
        parts += [title, _paragraph(ROUND_TRIPS), _table(header, rows)]
    return "\n\n".join(parts)


def _paragraph(template: str, **figures: object) -> str:
    text = template.format(**figures)
    return textwrap.fill(text, 99, break_long_words=False, break_on_hyphens=False)


def _table(header: str, rows: Iterable[Sequence[object]]) -> str:
    columns = header.split(" | ")
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def _not_run(why: NotRun, columns: int) -> list[object]:
    return [f"not_run ({why.reason})", *[""] * (columns - 1)]


def _vocabulary_row(name: str, found: RealVocabulary | NotRun) -> list[object]:
    published = PUBLISHED[name]
    title = f"{name} ({published.models})"
    if isinstance(found, NotRun):
        return [title, *_not_run(found, 6)]
    spelled = found.spelled
    return [
        *(title, len(found), len(found) - len(spelled), len(spelled) - len(set(spelled))),
        " or ".join(f"`{source.distribution}`" for source in published.sources),
        f"`{published.sources[0].remedy}`",
        " or ".join(dict.fromkeys(f"{source.sha256[:12]}…" for source in published.sources)),
    ]


def _overlaps(overlaps: Sequence[Overlap | NotRun]) -> str:
    header = "target x drafter | printed | by string | share | mistaken | by bytes | share | named"
    rows: list[list[object]] = []
    for printed, found in zip(PRINTED, overlaps, strict=True):
        row: list[object] = [f"{printed.target} x {printed.drafter}", printed.shared]
        if isinstance(found, NotRun):
            row += _not_run(found, 6)
        else:
            row += [found.strings, _share(found.share_of_strings), found.mistaken]
            row += [found.spellings, _share(found.share_of_spellings), found.named]
        rows.append(row)
    return _table(header, rows)


def _artefacts(overlaps: Sequence[Overlap | NotRun]) -> list[str]:
    """A sentence for each pair that shares more tokens by bytes than by string."""
    return [
        _paragraph(
            ARTEFACT,
            target=found.target,
            drafter=found.drafter,
            strings=_share(found.share_of_strings),
            spellings=_share(found.share_of_spellings),
        )
        for found in overlaps
        if isinstance(found, Overlap) and found.share_of_spellings > 1.1 * found.share_of_strings
    ]


def _share(share: Fraction) -> str:
    return f"{float(share):.2f}"


def _decompositions(counted: Counted | NotRun) -> list[str]:
    if isinstance(counted, NotRun):
        return [f"not_run ({counted.reason})"]
    spelled, found = counted.word.spellings, counted.tokens
    word = _paragraph(
        WORD,
        word=spelled.text,
        count=spelled.count,
        bound=2 ** (len(spelled.text) - 1),
        missing=", ".join(f"`{piece!s}`" for piece in counted.word.missing),
        forwards=spelled.forwards,
        n_max=spelled.n_max,
    )
    least, most = map(float, found.means)
    ties = _paragraph(
        TIES,
        tied=found.tied,
        taken=found.taken,
        length=found.lengths.most,
        least=least,
        most=most,
        mean=found.counts.mean,
        deviation=found.counts.deviation,
        sequences=found.sequences,
    )
    limit = found.counts.most
    rest = _paragraph(
        REST,
        count=len(found.rest),
        least=found.rest[0],
        most=found.rest[-1],
        within=sum(count <= limit for count in found.rest),
        limit=limit,
        huge=sum(count > HUGE for count in found.rest),
        longest=found.longest_spellings,
        tokens=found.tokens,
        more=found.more_forwards,
    )
    return [word, _summaries(found), ties, rest]


def _summaries(found: Decompositions) -> str:
    header = f"of the {found.shortest:,} shortest | mean | sd | min | 25 % | 50 % | 75 % | max"
    rows: list[list[object]] = []
    for name, summary in (
        ("length", found.lengths),
        ("decompositions", found.counts),
        ("forwards", found.forwards),
    ):
        quartiles = [f"{value:g}" for value in summary.quartiles]
        moments = [f"{summary.mean:.2f}", f"{summary.deviation:.2f}"]
        rows.append([name, *moments, summary.least, *quartiles, summary.most])
    return _table(header, rows)


def _round_trip_row(name: str, found: RoundTrip | NotRun) -> list[object]:
    named = [name, _versioned(TOKENISERS[name].made_by)]
    if isinstance(found, NotRun):
        return [*named, *_not_run(found, 4)]
    pair = " and ".join(f"`{text!a}`" for text in found.example or ())
    return [*named, found.texts, found.returned, found.confused, pair]


def _versioned(made_by: str) -> str:
    """A class with the version of its package, where that is installed."""
    package, _, name = made_by.partition(".")
    try:
        return f"{package} {version(package)} {name}".strip()
    except PackageNotFoundError:
        return made_by
