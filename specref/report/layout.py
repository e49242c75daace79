"""Tables and paragraphs that fold at spaces, so that they fit the width of the terminal.

A table that is too wide for its terminal puts what can be folded below its rows, or is broken
into several tables with the same first columns, or becomes a list of records.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

LEAST = 24
INDENT = "  "
NUMBER = re.compile(r"\d+\. ")
BAR = r"(?<!\\)\|"


@dataclass(frozen=True)
class Column:
    """A column of a `Table`.

    * `right`: Aligned to the right, as numbers are.
    * `folds`: Its cells may take several lines.
    * `opens`: A table that is too wide is rather broken before this column than elsewhere.
    """

    title: str
    right: bool = False
    folds: bool = False
    opens: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under columns, for a terminal of any width.

    * `rows`: A cell has one style.
    * `keys`: How many columns are repeated where the table is broken.
    * `dashed_after`: A dashed line comes after so many rows.

    Examples
    --------
    >>> columns = [Column("id"), Column("seen", folds=True)]
    >>> table = Table(columns, [("a/b", "far too much to tell")])
    >>> Console(width=30).print(table)
    id  seen
    ────────────────────────
    a/b far too much to tell
    >>> Console(width=20).print(table)
    id
    ───
    a/b
      far too much to
      tell
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text | str]]
    keys: int = 1
    dashed_after: int | None = None

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        for line in self.lines(options.max_width):
            line.no_wrap, line.overflow = True, "ignore"
            yield line

    def lines(self, width: int) -> list[Text]:
        """The lines of the table, at most `width` columns wide."""
        every = range(len(self.columns))
        natural = [max(map(cell_len, [self.columns[i].title, *self._plain(i)])) for i in every]
        folding = [i for i in every if self.columns[i].folds]
        if widths := self._in_one_piece(natural, folding, width):
            return self._grid(list(every), widths)
        fixed = [i for i in every if i not in folding]
        pieces = self._pieces(fixed, natural, width)
        if not pieces or (folding and (len(pieces) > 1 or len(folding) > 1)):
            return self._records(width)
        return [
            line
            for place, piece in enumerate(pieces)
            for line in [*([Text()] * (place > 0)), *self._grid(piece, natural, folding, width)]
        ]

    def _plain(self, column: int) -> list[str]:
        return [line for row in self.rows for line in str(row[column]).splitlines()]

    def _in_one_piece(self, natural: list[int], folding: list[int], width: int) -> list[int]:
        """The widths of all columns, if those that fold have room beside the others."""
        widths = list(natural)
        for i in folding:
            words = (word for text in self._plain(i) for word in text.split())
            least = max(map(cell_len, [*words, self.columns[i].title]))
            widths[i] = max(least, min(natural[i], LEAST))
        spare = width - sum(widths) - len(widths) + 1
        for i in folding:
            more = max(0, min(spare, natural[i] - widths[i]))
            widths[i], spare = widths[i] + more, spare - more
        return widths if spare >= 0 else []

    def _pieces(self, columns: list[int], widths: list[int], width: int) -> list[list[int]]:
        """The columns of each of the tables that this one is broken into; none if none fits."""
        keys, rest = columns[: self.keys], columns[self.keys :]
        room = width - sum(widths[i] + 1 for i in keys) + 1
        blocks: list[list[int]] = []
        for i in rest:
            if self.columns[i].opens or not blocks:
                blocks.append([])
            blocks[-1].append(i)
        pieces: list[list[int]] = [[]]
        for block in blocks:
            whole = sum(widths[i] + 1 for i in block) <= room
            for part in [block] if whole else [[i] for i in block]:
                needed = sum(widths[i] + 1 for i in [*pieces[-1], *part])
                pieces = [*pieces, part] if needed > room else [*pieces[:-1], pieces[-1] + part]
        pieces = [piece for piece in pieces if piece] or [[]]
        fits = all(sum(widths[i] + 1 for i in piece) <= room for piece in pieces) and room > 0
        return [keys + piece for piece in pieces] if fits else []

    def _grid(
        self, columns: list[int], widths: list[int], below: Sequence[int] = (), width: int = 0
    ) -> list[Text]:
        """Rows under a line; cells of the columns `below` under each row."""
        total = sum(widths[i] + 1 for i in columns) - 1
        head = [Text(self.columns[i].title) for i in columns]
        lines = [*self._row(head, columns, widths), Text("─" * total)]
        for place, row in enumerate(self.rows, start=1):
            lines += self._row([row[i] for i in columns], columns, widths)
            for i in below:
                lines += folded(row[i], width, INDENT)
            if place == self.dashed_after:
                lines.append(Text("╌" * total))
        return lines

    def _row(
        self, cells: Sequence[Text | str], columns: list[int], widths: list[int]
    ) -> Iterator[Text]:
        parts = [folded(cell, widths[i]) for cell, i in zip(cells, columns, strict=True)]
        for number in range(max(map(len, parts))):
            line = Text()
            for part, i in zip(parts, columns, strict=True):
                text = part[number] if number < len(part) else Text()
                gap = " " * (widths[i] - text.cell_len)
                line += Text.assemble(
                    *((gap, text) if self.columns[i].right else (text, gap)), " "
                )
            line.rstrip()
            yield line

    def _records(self, width: int) -> list[Text]:
        """The rows one below the other, each cell with its title."""
        lines: list[Text] = []
        for row in self.rows:
            lines += folded(row[0], width)
            for column, cell in zip(self.columns[1:], row[1:], strict=True):
                if str(cell):
                    style = cell.style if isinstance(cell, Text) else ""
                    lines += folded(Text(f"{column.title}: {cell}", style), width, INDENT)
        return lines


@dataclass(frozen=True)
class Prose:
    """Lines of text, folded at spaces; continuation lines keep the indentation."""

    text: str
    style: str = ""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        for line in folded(Text(self.text, self.style), options.max_width):
            line.no_wrap, line.overflow = True, "ignore"
            yield line


def folded(cell: Text | str, width: int, indent: str = "") -> list[Text]:
    """Fold a cell at spaces into lines of at most `width`, and longer words after a slash."""
    style = cell.style if isinstance(cell, Text) else ""
    lines = []
    for line in str(cell).splitlines():
        own = " " * min(len(line) - len(line.lstrip()), width // 2)
        number = NUMBER.match(line.strip())
        below = own + " " * (number.end() if number else 0)
        first, *rest = _parts(line.strip(), max(1, width - len(indent + below)))
        lines += [Text(indent + own + first, style)]
        lines += [Text(indent + below + part, style) for part in rest]
    return lines


def _parts(line: str, room: int) -> list[str]:
    parts = [""]
    for space, word in re.findall(r"(\s*)(\S+)", line):
        for piece in _pieces(word, room):
            longer = parts[-1] + space * bool(parts[-1]) + piece
            if cell_len(longer) <= room or not parts[-1]:
                parts[-1] = longer
            else:
                parts.append(piece)
            space = ""
    return parts


def _pieces(word: str, room: int) -> list[str]:
    """A word that has room, or its parts: up to each slash, and no longer than the room."""
    if cell_len(word) <= room:
        return [word]
    return re.findall(rf"[^/]{{0,{room - 1}}}/|[^/]{{1,{room}}}", word)


def page(markdown: str) -> RenderableType:
    """A page of Markdown for a terminal: its tables as a `Table`, the rest rendered."""
    # Imported here: it takes as long as NumPy, and few commands show a page.
    from rich.markdown import Markdown

    parts: list[RenderableType] = []
    for block in markdown.split("\n\n"):
        parts += [_table(block), ""] if block.startswith("|") else [Markdown(block), ""]
    return Group(*parts)


def _table(markdown: str) -> Table:
    lines = [line.strip("| ") for line in markdown.replace("`", "").splitlines()]
    titles, _, *rows = (
        [cell.strip().replace("\\|", "|") for cell in re.split(BAR, line)] for line in lines
    )
    filled = [[*row, *[""] * (len(titles) - len(row))] for row in rows]
    return Table([Column(title, folds=True) for title in titles], filled)
