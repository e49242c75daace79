"""``specref vocabularies``: the printed tables on real vocabularies, counted again."""

import shlex
from typing import NoReturn

import click

from specref.cli.group import HOLDS, leave, progress, show
from specref.cli.options import downloads_option
from specref.contrib.vocabularies.page import vocabularies_markdown
from specref.contrib.vocabularies.tables import SECTIONS, measure
from specref.report.layout import page
from specref.report.machine import check_destination, write_json


@click.command("vocabularies")
@click.option("--markdown", metavar="FILE", help="Write the page for docs, or - for stdout.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(SECTIONS),
    help="Measure only these sections.",
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
