"""A result, told once: a verdict and parts, which a terminal, an HTML page and Markdown show.

A document prints itself in a terminal; `page_of` makes a page of it, and `markdown` Markdown.
What stands in `Document.more` is for pages alone: its texts may have `code` and [links](address).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from specref.report.layout import Prose, Table
from specref.report.page import (
    Markup,
    again,
    bars,
    element,
    html_page,
    joined,
    legend,
    section,
    table,
    verdict_box,
)

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
    return [Prose("\n".join(f"* {line}" for line in lines))] if lines else []


KINDS = {
    **{"green": "good", "bold green": "good", "red": "bad", "bold red": "bad"},
    **{"yellow": "open", "bold yellow": "open"},
}
"""{style of a terminal: class of the page}."""
INLINE = re.compile(r"`([^`]+)`|\[([^\]]+)\]\((https://[^\s)]+|[^\s)]+\.md)\)")
"""Code; or a link, its text and its address: to pages of docs there are none here."""


def page_of(told: Document, command: str = "", *given: tuple[str, str]) -> str:
    """A whole page.

    * `given` (str, str): What it was given besides, as the seed: names and values.
    """
    parts = [*told.parts, *told.more]
    starts = [0, *(i for i, part in enumerate(parts) if isinstance(part, Heading)), len(parts)]
    return html_page(
        told.title,
        element("h1", told.title),
        verdict_box(told.kind, told.verdict),
        *(element("section", *map(shown, parts[a:b])) for a, b in pairwise(starts)),
        section("Run it again", *again(command, *given)),
    )


def shown(part: Part) -> Markup:
    match part:
        case Heading(text):
            return element("h2", text)
        case Bars(caption, entries, keys):
            label = "; ".join(f"{name}: {told}" for name, told, _ in entries)
            said = joined((f"{caption}: ", legend(*keys))) if keys else caption
            drawn = bars(entries, f"{caption}: {label}", said)
            return element("div", drawn, class_="pictures")
        case Table(columns, rows):
            classes = ["number" if one.right else "wide" * one.folds for one in columns]
            cells = ([_cell(cell) for cell in row] for row in rows)
            return table([column.title for column in columns], cells, classes)
        case Prose(text, style) if text.startswith("* "):
            items = (element("li", inline(line[2:])) for line in text.splitlines())
            return element("ul", *items, class_=_class(style))
        case Prose(text, style) if "\n" in text:
            return element("pre", text, class_=_class(style))
        case Prose(text, style):
            return element("p", inline(text), class_=_class(style))
    return Markup()


def _class(style: str) -> str | None:
    return "soft" if style == "dim" else f"said {KINDS[style]}" if style in KINDS else None


def _cell(cell: Text | str) -> Markup:
    if isinstance(cell, Text) and str(cell.style) in KINDS:
        return element("span", str(cell), class_=f"status {KINDS[str(cell.style)]}")
    return inline(str(cell))


def inline(text: str) -> Markup:
    """Code and links of Markdown as elements, the rest escaped.

    Examples
    --------
    >>> inline("see [a#1](https://a.b/1)")
    'see <a href="https://a.b/1">a#1</a>'
    >>> inline("[docs/a.md](../a.md) says")
    'docs/a.md says'
    """
    return joined(_inline(text))


def _inline(text: str) -> Iterator[str]:
    end = 0
    for found in INLINE.finditer(text):
        yield text[end : found.start()]
        code, name, address = found.groups()
        if code:
            yield element("code", code)
        else:
            yield name if address.endswith(".md") else element("a", name, href=address)
        end = found.end()
    yield text[end:]
