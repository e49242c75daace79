"""``specref psi``: the decompositions of a text, counted and drawn.

They are shown as a tree that says what it leaves out, and as a record.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NoReturn

import click
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text as Line
from rich.tree import Tree

from specref.cli.group import HOLDS, leave, show
from specref.cli.options import downloads_option, json_option
from specref.contrib.vocabularies import PUBLISHED, RealVocabulary, load, load_file
from specref.report.forms import IDS, TEXT, WHOLE, Reports, listed, one_of, record, said
from specref.report.layout import Prose
from specref.report.machine import as_json, write_json
from specref.theory.counting import Spellings, spellings
from specref.vocabulary import Text, Vocabulary

GUIDE, WIDTH = 4, 80


def psi_report(found: Spellings, vocabulary: str, identity: str, nodes: int) -> RenderableType:
    """The figures, and the tree with up to `nodes` nodes; no tree if that is 0."""
    unit = "characters" if identity == "string" else "bytes"
    figures = [
        f"{found.text!r} over {vocabulary}, by {identity}",
        f"decompositions  {found.count:,} of {2 ** (len(found.text) - 1):,} cuts of "
        f"{len(found.text)} {unit}",
        f"n_max           {found.n_max:,}: the most tokens of one",
        f"forwards        {found.forwards:,} contexts of the draft model, all known beforehand",
        "The sum of their masses is not psi, the distribution of the first target token: see "
        "specref.theory.psi.",
    ]
    lines = Prose("\n".join(figures))
    return Group(Drawn(found, nodes), lines) if nodes else lines


@dataclass(frozen=True)
class Drawn:
    """The tree of decompositions, as deep as the width of the terminal allows."""

    found: Spellings
    nodes: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Tree]:
        yield spelling_tree(self.found, self.nodes, options.max_width)


def psi_record(found: Spellings, vocabulary: str, identity: str, most: int) -> dict[str, object]:
    """A record with up to `most` decompositions, the longest tokens first."""
    listed = list(islice(listing(found), most))
    return {
        "text": _shown(found.text),
        "identity": identity,
        "vocabulary": vocabulary,
        "decompositions": found.count,
        "possible": 2 ** (len(found.text) - 1),
        "n_max": found.n_max,
        "forwards": found.forwards,
        "listed": [[_shown(piece) for piece in pieces] for pieces in listed],
        "left_out": found.count - len(listed),
    }


def listing(found: Spellings) -> Iterator[tuple[Text, ...]]:
    """The decompositions as pieces, the longest tokens first, one at a time."""
    stack: list[tuple[int, tuple[Text, ...]]] = [(0, ())]
    while stack:
        start, pieces = stack.pop()
        if start == len(found.text):
            yield pieces
            continue
        stack += [(end, (*pieces, found.text[start:end])) for end in _next(found, start)]


def spelling_tree(found: Spellings, nodes: int, width: int = WIDTH) -> Tree:
    """The tree of decompositions, the longest tokens first, with up to `nodes` nodes.

    What is left out below a node is counted, not listed; so is what needs more than `width`
    columns.
    """
    tree = Tree(Line(repr(found.text)))
    _grow(tree, found, 0, nodes, width - GUIDE)
    return tree


def _grow(branch: Tree, found: Spellings, start: int, nodes: int, room: int) -> int:
    """Add what follows `start`, in `room` columns; return how many nodes may still be added."""
    ends = _next(found, start)
    for place, end in enumerate(reversed(ends)):
        label, left = repr(found.text[start:end]), _more(found, ends[: len(ends) - place])
        below = _next(found, end)
        deep = bool(below) and GUIDE + len(_more(found, below)) > room
        if not nodes or deep or cell_len(label) > room:
            branch.add(Line(left, "dim"))
            break
        nodes = _grow(branch.add(Line(label)), found, end, nodes - 1, room - GUIDE)
    return nodes


def _more(found: Spellings, ends: list[int]) -> str:
    return f"… {sum(found.after[end] for end in ends):,} more"


def _next(found: Spellings, start: int) -> list[int]:
    """The ends of the tokens at `start` from which a spelling can be completed."""
    ends = () if start == len(found.text) else found.ends[start]
    return [end for end in ends if found.after[end]]


def _shown(piece: Text) -> str:
    return piece.decode("utf-8", "backslashreplace") if isinstance(piece, bytes) else piece


PSI = record(
    text=TEXT,
    identity=said("What of a token is compared.", one_of("string", "bytes")),
    vocabulary=said("Its name, and how large it is.", TEXT),
    decompositions=said("How many token sequences spell the text.", WHOLE),
    possible=said("How many ways there are to cut the text.", WHOLE),
    n_max=said("The most tokens that one of them has.", WHOLE),
    forwards=said("Contexts at which all their masses need the draft model.", WHOLE),
    listed=said("Decompositions, those of long tokens first.", listed(IDS)),
    left_out=said("Decompositions that are not listed.", WHOLE),
)
REPORTS: Reports = {"psi": ("specref psi TEXT", PSI)}


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
    told = found, title, "bytes" if by_bytes else "string"
    show(psi_report(*told, nodes * tree), json_file)
    if json_file:
        write_json(json_file, as_json(psi_record(*told, nodes)))
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
