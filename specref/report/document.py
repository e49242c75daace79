"""A result, told once: a verdict and parts, which a terminal, an HTML page and Markdown show.

A document prints itself in a terminal; `html.page_of` makes a page of it, and `markdown` Markdown.
What stands in `Document.more` is for pages alone: its texts may have `code` and [links](address).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType

from specref.report.layout import Prose, Table

Kind: TypeAlias = Literal["good", "bad", "open", "known"]
Lengths: TypeAlias = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Heading:
    """The title of what follows; a terminal shows none."""

    text: str


@dataclass(frozen=True)
class Bars:
    """A picture of what the text says in numbers; a terminal shows none.

    * `entries` (sequence of (str, str, lengths)): A name, what is written beside it, and its bars:
      "expected", "observed" or "open", and how long each is.
    * `keys` (str, str), optional: What expected and observed bars stand for.
    """

    caption: str
    entries: Sequence[tuple[str, str, Lengths]]
    keys: tuple[str, str] | None = None


Part: TypeAlias = Prose | Table | Heading | Bars | Literal[""]


@dataclass(frozen=True)
class Document:
    """What was asked, the verdict, and what it rests on.

    * `kind` ({"good", "bad", "open", "known"}): The colour of the verdict.
    * `verdict`: In a few words, above the parts of a page.
    * `parts`: In order; "" is an empty line in a terminal.
    * `more`: For pages alone.
    """

    title: str
    kind: Kind
    verdict: str
    parts: Sequence[Part]
    more: Sequence[Part] = ()

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        yield from (part for part in self.parts if not isinstance(part, Heading | Bars))


def markdown(told: Document) -> str:
    """The document in Markdown; bars as a list of what is written beside them."""
    parts = [f"# {told.title}", f"**{told.verdict}**" * bool(told.verdict)]
    parts += [_in_markdown(part) for part in (*told.parts, *told.more)]
    return "\n\n".join(filter(None, parts))


def _in_markdown(part: Part) -> str:
    match part:
        case Heading(text):
            return f"## {text}"
        case Bars(caption, entries):
            return "\n".join([f"{caption}:", "", *(f"* {x}: {y}" for x, y, _ in entries)])
        case Table(columns, rows):
            lines = [[column.title for column in columns], *rows]
            cells = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
            cells.insert(1, ["--:" if column.right else "---" for column in columns])
            return "\n".join(f"| {' | '.join(line)} |" for line in cells)
        case Prose(text) if "\n" in text and not text.startswith("* "):
            return f"```text\n{text}\n```"
        case Prose(text):
            return text
    return ""


def bullets(lines: Sequence[str]) -> list[Part]:
    """A list, for pages."""
    return [Prose("\n".join(f"* {line}" for line in lines))] if lines else []
