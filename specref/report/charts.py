"""Pictures of the HTML pages, as SVG in the page: two laws side by side, intervals, curves."""

from collections.abc import Sequence

from specref.report.page import Markup, element, joined

WIDTH = 360
LINE = 48
"""So many characters have room in a line."""
NICE = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def bars(
    entries: Sequence[tuple[str, str, Sequence[tuple[str, float]]]],
    label: str,
    caption: Markup | str,
) -> Markup:
    """Bars from 0 on, under a name and a text for each entry.

    * `entries` (sequence of (str, str, bars)): A name, what is written at the right, and the
      (class, length) of each bar, one below the other. All lengths have the same scale.
    * `label`: The picture in a sentence, for those who do not see it.
    """
    most = max((length for *_, lengths in entries for _, length in lengths), default=0.0)
    parts: list[str] = []
    y = 0
    for name, told, lengths in entries:
        parts.append(element("text", name, x=0, y=y + 12))
        y += 16 * (len(name) + len(told) > LINE)
        parts.append(element("text", told, x=WIDTH, y=y + 12, text_anchor="end", class_="soft"))
        y += 18
        for kind, length in lengths:
            width = f"{WIDTH * length / most if most else 0:.1f}"
            parts.append(element("rect", x=0, y=y, width=width, height=7, class_=kind))
            y += 8
        parts.append(element("line", x1=0, x2=0, y1=y - 8 * len(lengths), y2=y, class_="axis"))
        y += 8
    return figure(parts, y, label, caption)


def intervals(
    entries: Sequence[tuple[str, float, float, float]],
    mark: float | None,
    label: str,
    caption: str,
) -> Markup:
    """An interval and an estimate in each line, over a common axis from 0 on.

    * `entries` (sequence of (str, float, float, float)): A name, the estimate, and the ends of the
      interval.
    """
    largest = max([mark or 0.0, *(upper for *_, upper in entries)])
    end = next((x for x in NICE if x >= largest), 1.0)

    def across(x: float) -> str:
        return f"{(WIDTH - 12) * min(x, end) / end + 6:.1f}"

    parts: list[str] = []
    y = 0
    for name, estimate, lower, upper in entries:
        told = f"{estimate:.3f} in [{lower:.3f}, {upper:.3f}]"
        parts.append(element("text", name, x=0, y=y + 12))
        parts.append(element("text", told, x=WIDTH, y=y + 12, text_anchor="end", class_="soft"))
        middle = {"y1": y + 24, "y2": y + 24}
        if mark:
            place = across(mark)
            ends = {"y1": y + 16, "y2": y + 33}
            parts.append(element("line", x1=place, x2=place, **ends, class_="mark"))
        parts.append(
            element("line", x1=across(lower), x2=across(upper), **middle, class_="observed")
        )
        parts.append(element("circle", cx=across(estimate), cy=y + 24, r=5, class_="observed"))
        y += 38
    parts.append(element("line", x1=6, x2=WIDTH - 6, y1=y, y2=y, class_="axis"))
    for x, anchor in ((0.0, "start"), (end / 2, "middle"), (end, "end")):
        tick = element("text", f"{x:g}", x=across(x), y=y + 14, text_anchor=anchor, class_="soft")
        parts.append(tick)
    return figure(parts, y + 20, label, caption)


HEIGHT, LEFT, APART = 130, 56, 14
"""Of the axes of a curve; the room left of them; how far apart two lines of text are."""


def curve(points: Sequence[tuple[int, float]], mark: float, label: str, caption: str) -> Markup:
    """Powers of 10 over trials, from 10^0 before the first, with a dashed line at the mark."""
    points = [(0, 0.0), *points]
    exponents = [mark, *(y for _, y in points)]
    low, high, last = min(exponents), max(exponents), points[-1][0]

    def across(x: float) -> float:
        return LEFT + (WIDTH - LEFT - 8) * x / last

    def down(y: float) -> float:
        return 16 + HEIGHT * (high - y) / (high - low)

    ends = {"x1": LEFT, "x2": WIDTH}
    dashed = {"y1": f"{down(mark):.1f}", "y2": f"{down(mark):.1f}"}
    zero = {"y1": f"{down(0):.1f}", "y2": f"{down(0):.1f}"}
    parts = [
        element("line", **ends, **zero, class_="axis"),
        element("line", x1=LEFT, x2=LEFT, y1=16, y2=16 + HEIGHT, class_="axis"),
        element("line", **ends, **dashed, class_="decides"),
    ]
    written: list[float] = []
    for y, name in ((mark, f"10^{mark:.1f}"), (0.0, "10^0"), (high, ""), (low, "")):
        if all(abs(down(y) - other) >= APART for other in written):
            written.append(down(y))
            name = name or f"10^{y:z.1f}"
            place = {"x": LEFT - 4, "y": f"{down(y) + 4:.1f}"}
            parts.append(element("text", name, **place, text_anchor="end", class_="soft"))
    places = [(f"{across(x):.1f}", f"{down(y):.1f}") for x, y in points]
    joined_up = " ".join(f"{x},{y}" for x, y in places)
    parts.append(element("polyline", points=joined_up, class_="observed"))
    parts += [element("circle", cx=x, cy=y, r=3, class_="observed") for x, y in places]
    y = HEIGHT + 36
    for x, name, anchor in ((LEFT, "0", "middle"), (WIDTH, f"{last:,} trials", "end")):
        parts.append(element("text", name, x=x, y=y, text_anchor=anchor, class_="soft"))
    return figure(parts, y + 6, label, caption)


def figure(parts: Sequence[str], height: int, label: str, caption: Markup | str) -> Markup:
    drawn = element(
        "svg",
        element("title", label),
        *parts,
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label=label,
        xmlns="http://www.w3.org/2000/svg",
    )
    return element("figure", element("figcaption", caption), drawn)


def legend(expected: str = "expected", observed: str = "observed") -> Markup:
    """What the two bars of an entry stand for, by colour and by place."""
    keys = (("expected", f"{expected}, upper bar; "), ("observed", f"{observed}, lower bar"))
    return joined(
        element("span", element("span", class_=f"key {kind}"), words) for kind, words in keys
    )
