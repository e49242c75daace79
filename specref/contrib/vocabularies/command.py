"""``specref vocabularies``: the printed tables on real vocabularies, counted again, as a page."""

import shlex
import textwrap
from collections.abc import Iterable, Sequence
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

import click

from specref.cli.group import HOLDS, leave, progress, show
from specref.cli.options import downloads_option
from specref.contrib.vocabularies.files import PUBLISHED
from specref.contrib.vocabularies.tables import (
    PRINTED,
    SECTIONS,
    Counted,
    Decompositions,
    NotRun,
    Tables,
    measure,
)
from specref.contrib.vocabularies.tokenisers import TOKENISERS, RoundTrip
from specref.contrib.vocabularies.vocabulary import Overlap, RealVocabulary
from specref.report.layout import page
from specref.report.machine import check_destination, write_json

HEAD = """\
What Timor et al. 2025 print about vocabularies, counted again. The vocabularies are read from
packages that carry them, and nothing of them is kept here: the figures hold for files with these
digests. `not_run` says what could not be had, and why. *Special* tokens write no text.
SentencePiece has both `A` and the byte `<0x41>`, which write the same bytes."""

OVERLAP = """\
By string, tokens are the same if the vocabulary files write the same; by bytes, if they write the
same bytes into a text. The printed counts are those by string, special tokens among them, to the
token. They compare how files are encoded as much as vocabularies: byte-level files write a space
as `Ġ` and SentencePiece as `▁`, so that no token with a space is shared. Strings can also be the
same where bytes are not (`¡` stands for two bytes in one file, for the byte A1 in the other): the
*mistaken* ones. *Named* is by bytes where a special token is taken to write its name: `<s>` is
special to one vocabulary and an ordinary text in another. Shares are of the target's tokens."""

ARTEFACT = """\
For {target} x {drafter}, {strings} is an artefact of the encoding: by bytes the
share is {spellings}."""

DECOMPOSITIONS = """\
The token sequences that spell a token of Qwen2, by string (of which a character stands for a
byte), special tokens among them. *Forwards* are the contexts at which the draft model's
distribution is needed for the masses of all: the inner nodes of the tree of decompositions, its
root among them. They are known beforehand, so that one forward with tree attention reads them
together."""

WORD = """\
`{word}` has {count} decompositions of at most {bound} ({missing} is no token),
{forwards} forwards and n_max {n_max}. The paper has the same 14 and 16; it counts
one more than the nodes that are no leaves, which is right if the root is not taken for a node."""

TIES = """\
The paper prints these lengths, the quartiles 7, 15 and 56 and the maximum of
decompositions, and for their mean and standard deviation 144.31 and 880.98. Those depend on which
of the {tied} tokens of length {length} are among the {taken} that are taken, and no rule is
printed. By (length, id), as here, there are {sequences:,} decompositions together; other choices
have means from {least:.2f} to {most:.2f}. So mean and deviation test nothing before the rule is
known."""

REST = """\
The other {count:,} tokens, whose decompositions the authors report not to have counted in hours,
have {least:,} to {most:,} decompositions: {within:,} of them at most {limit:,}, and {huge}
more than 10^9. Counting takes length x longest token steps, however many there are. For
{longest:,} of all {tokens:,} tokens n_max is the length, and for {more:,} there are more forwards
than decompositions."""

ROUND_TRIPS = """\
Texts that differ in spaces, composition and case. *Returned*: decode(encode(s)) is s. *Confused*:
the ids are those of another text, so the tokeniser is not injective. A round trip of all texts
implies that none is confused, and not conversely: BOS spoils every round trip and confuses no
texts. What does confuse some is Qwen2's NFC, the space that LlamaTokenizer puts before a text, and
the `▁` that stands for a space. The classes are built from the tokens, with their own flags and
`add_bos_token`; special tokens are not skipped in decoding."""


HUGE = 10**9


def vocabularies_markdown(tables: Tables, command: str) -> str:
    """A page with a section for each measurement."""
    head = _paragraph(HEAD)
    header = "vocabulary | tokens | special | same bytes as another | package | got by | sha256"
    rows = [_vocabulary_row(*item) for item in tables.vocabularies.items()]
    parts = ["# Real vocabularies", head, _table(header, rows)]
    if tables.overlaps:
        title = "## What target and draft model have in common"
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
    return "\n\n".join([*parts, f"*Written by `{command}`.*"])


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
    header = (
        "target x draft model | printed | by string | share | mistaken | by bytes | share | named"
    )
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
    spelled, found = counted.word, counted.tokens
    word = _paragraph(
        WORD,
        word=spelled.text,
        count=spelled.count,
        bound=2 ** (len(spelled.text) - 1),
        missing=", ".join(f"`{piece!s}`" for piece in counted.missing),
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


@click.command("vocabularies")
@click.option("--markdown", metavar="FILE", help="Write the page for docs, or - for stdout.")
@click.option(
    "--only", multiple=True, type=click.Choice(SECTIONS), help="Measure only these sections."
)
@downloads_option
def vocabularies_command(
    markdown: str | None, only: tuple[str, ...], downloads: tuple[str, ...]
) -> NoReturn:
    """Count the vocabulary tables of Timor et al. 2025 again.

    What T and D share, by string and by bytes; the decompositions of all tokens; round trip and
    injectivity. Vocabularies come from packages (specref doctor says which), others by --from.
    What cannot be had is not_run, and says how to get it. Exit code 2 if a package's file is not
    the one that is pinned. Takes 10 seconds or more, by how many vocabularies there are.

    \b
    Examples:
      specref vocabularies
      specref vocabularies --only overlap --from downloads
      specref vocabularies --markdown docs/records/vocabularies.md
    """
    if markdown:
        check_destination(markdown)
    sections = only or SECTIONS
    with progress(len(SECTIONS), "sections") as advance:
        tables = measure(downloads, sections, lambda done: advance(1, done))
    options = [("--markdown", markdown)] if markdown else []
    options += [("--only", section) for section in only]
    options += [("--from", path) for path in downloads]
    words = ["specref", "vocabularies", *(word for option in options for word in option)]
    text = vocabularies_markdown(tables, shlex.join(words))
    show(page(text), markdown)
    if markdown:
        write_json(markdown, text)
    leave(HOLDS)
