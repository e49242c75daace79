"""A drawing as SVG, in colours for a light and for a dark page.

Colours are named by what they are for, and looked up when the drawing is written: so the two
variants of a drawing differ in their colours alone.
"""

from collections.abc import Mapping
from types import MappingProxyType
from xml.sax.saxutils import escape, quoteattr

from specref.report.palette import BLUE, ORANGE, PALE, SKY

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
COLOURS = ("fill", "stroke")
FILLS = {"both": SKY, "over-p": ORANGE, "on-fill": "#10161C"}
LIGHT: Mapping[str, str] = MappingProxyType(
    FILLS
    | {
        "page": "#FFFFFF",
        "panel": "#F4F5F7",
        "ink": "#1B1F24",
        "muted": "#545B66",
        "line": "#D3D7DD",
        "over-q": PALE,
        "first": BLUE,
    }
)
DARK: Mapping[str, str] = MappingProxyType(
    FILLS
    | {
        "page": "#131416",
        "panel": "#1D2024",
        "ink": "#E9EBEE",
        "muted": "#A9B0BA",
        "line": "#3A4048",
        "over-q": "#7D838C",
        "first": ORANGE,
    }
)
THEMES: Mapping[str, Mapping[str, str]] = MappingProxyType({"light": LIGHT, "dark": DARK})


class Drawing:
    """What is drawn, in order; `title` is read out in its place.

    Lengths are in pixels of a picture as wide as a page, 640; a phone shows it at half the size.
    """

    def __init__(self, title: str, height: float, width: float = 640) -> None:
        self.title, self.width, self.height = title, width, height
        self.parts: list[tuple[str, dict[str, object], str]] = []

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, stroke: str = ""
    ) -> None:
        """A rectangle; nothing if it is empty."""
        if width > 0 and height > 0:
            size = {"x": x, "y": y, "width": width, "height": height, "fill": fill}
            self.parts.append(("rect", size | ({"stroke": stroke} if stroke else {}), ""))

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = "line") -> None:
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        self.parts.append(("line", ends | {"stroke": stroke, "stroke-width": 1.5}, ""))

    def mark(self, x: float, top: float, bottom: float) -> None:
        """A point on a bar: a line across it with a head above."""
        self.rect(x - 1.5, top, 3, bottom - top, "ink")
        points = f"{number(x - 6)},{number(top - 7)} {number(x + 6)},{number(top - 7)}"
        head = {"points": f"{points} {number(x)},{number(top + 2)}", "fill": "ink"}
        self.parts.append(("polygon", head, ""))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        fill: str = "ink",
        *,
        size: float = 16,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """A line of text; `y` is its baseline."""
        looks = {"x": x, "y": y, "fill": fill, "font-size": size, "text-anchor": anchor}
        self.parts.append(("text", looks | ({"font-weight": 600} if bold else {}), text))

    def key(self, x: float, y: float, fill: str, text: str) -> None:
        """An entry of a legend."""
        self.rect(x, y - 13, 15, 15, fill)
        self.text(x + 23, y, text)

    def svg(self, theme: Mapping[str, str]) -> str:
        """The file."""
        size = f'viewBox="0 0 {number(self.width)} {number(self.height)}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} width="{number(self.width)}" '
            f'height="{number(self.height)}" role="img" font-family="{FONTS}">',
            f"<title>{escape(self.title)}</title>",
            f'<rect width="100%" height="100%" fill="{theme["page"]}"/>',
        ]
        for tag, attributes, text in self.parts:
            named = {
                name: theme[str(value)] if name in COLOURS else value
                for name, value in attributes.items()
            }
            written = "".join(f" {name}={quoteattr(number(v))}" for name, v in named.items())
            lines.append(
                f"<{tag}{written}>{escape(text)}</{tag}>" if text else f"<{tag}{written}/>"
            )
        return "\n".join([*lines, "</svg>", ""])


def number(value: object) -> str:
    """A length to a hundredth of a pixel; words as they are.

    >>> number(1 / 3), number(2.0), number("ink")
    ('0.33', '2', 'ink')
    """
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:.2f}".rstrip("0").rstrip(".")
