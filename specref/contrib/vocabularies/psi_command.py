"""``specref psi``: the decompositions of a text, counted and drawn."""

from pathlib import Path
from typing import NoReturn

import click

from specref.cli.group import HOLDS, leave, show
from specref.cli.options import downloads_option, json_option
from specref.contrib.vocabularies import PUBLISHED, RealVocabulary, load, load_file
from specref.contrib.vocabularies.psi_report import Spelled, psi_record, psi_report
from specref.report.machine import as_json, write_json
from specref.theory.counting import spellings
from specref.vocabulary import Vocabulary

MOST_NODES = 500


@click.command("psi")
@click.argument("text")
@click.option(
    "--vocabulary",
    "named",
    metavar="NAME|PATH",
    help=f"{', '.join(PUBLISHED)}; or a tokenizer.json, SentencePiece model or tiktoken file.",
)
@click.option("--tokens", metavar="A,B,…", help="A toy vocabulary instead.")
@click.option("--bytes", "by_bytes", is_flag=True, help="Compare what tokens write, in UTF-8.")
@click.option("--tree/--no-tree", default=True, help="Draw the decompositions.")
@click.option(
    "--nodes",
    default=60,
    show_default=True,
    type=click.IntRange(1, MOST_NODES),
    help="How many nodes are drawn, or decompositions listed; the others are counted.",
)
@downloads_option
@json_option
def psi_command(
    text: str,
    named: str | None,
    tokens: str | None,
    by_bytes: bool,
    tree: bool,
    nodes: int,
    downloads: tuple[str, ...],
    json_file: str | None,
) -> NoReturn:
    """Count the token sequences that spell TEXT, and the forwards that psi takes.

    By default TEXT is as the vocabulary's file writes it (Ġhello); with --bytes it is ordinary
    text. Nothing is enumerated: any number of decompositions is counted at once. Takes a second
    or two.

    \b
    Examples:
      specref psi hello --vocabulary qwen2 --tree
      specref psi " hello" --vocabulary mixtral-8x22b --bytes
      specref psi abb --tokens a,b,ab,bb --json -
    """
    if not text:
        raise ValueError("TEXT is empty: expected at least one character")
    vocabulary, title = _vocabulary(named, tokens, by_bytes, downloads)
    found = spellings(text.encode() if by_bytes else text, vocabulary)
    try:
        found.check()
    except ValueError as error:
        hint = "" if by_bytes or tokens else " (by string; --bytes compares what tokens write)"
        raise ValueError(f"{error}{hint}") from None
    spelled = Spelled(found, title, "bytes" if by_bytes else "string")
    show(psi_report(spelled, nodes * tree), json_file)
    if json_file:
        write_json(json_file, as_json(psi_record(spelled, nodes)))
    leave(HOLDS)


def _vocabulary(
    named: str | None, tokens: str | None, by_bytes: bool, downloads: tuple[str, ...]
) -> tuple[Vocabulary, str]:
    if tokens is not None and named is None:
        toy = Vocabulary(tokens.split(","))
        return toy.in_bytes() if by_bytes else toy, f"{len(toy)} tokens"
    if named is None or tokens is not None:
        raise ValueError("expected one of --vocabulary and --tokens")
    if named in PUBLISHED:
        real = load(named, downloads)
    elif Path(named).is_file():
        real = load_file(named)
    else:
        raise ValueError(
            f"--vocabulary {named}: expected one of {', '.join(PUBLISHED)}, or a file"
        )
    vocabulary = real.by_bytes(merge=True) if by_bytes else real.by_string()
    return vocabulary, _title(real, vocabulary)


def _title(real: RealVocabulary, vocabulary: Vocabulary) -> str:
    """The name, the number of tokens, and how many of them are left out or merged."""
    special, merged = len(real) - len(real.spelled), len(real.spelled) - len(vocabulary)
    if len(real) == len(vocabulary):
        return f"{real.name} ({len(real):,} tokens)"
    without = f"without {special:,} special ones"
    same = f", {merged:,} merged with others that write the same" if merged else ""
    return f"{real.name} ({len(real):,} tokens {without}{same})"
