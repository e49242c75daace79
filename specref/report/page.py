"""The frame of the HTML pages: one file without scripts that loads nothing; light, dark, phone.

Pictures are SVG in the page: two laws side by side, intervals, curves.
"""

import html
import platform
from collections.abc import Iterable, Sequence

import numpy as np

from specref import __version__
from specref.report.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION

WIDTH = 360
"""Of a picture."""
LINE = 48
"""So many characters have room in a line of it."""
NICE = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
HEIGHT, LEFT, APART = 130, 56, 14
"""Of the axes of a curve; the room left of them; how far apart two lines of text are."""
VOID = ("meta",)
# In the dark, lighter colours of the same hue where the palette's are too dim.
STYLE = (
    f"""
:root {{ color-scheme: light dark; --text: #1b1f24; --soft: #57606a; --page: #ffffff;
  --panel: #f4f6f8; --line: #d0d7de; --link: #0060a0; --expected: {BLUE}; --observed: {VERMILLION};
  --good: {GREEN}; --bad: {VERMILLION}; --open: {PURPLE}; --known: {ORANGE}; --none: #8c959f; }}
@media (prefers-color-scheme: dark) {{ :root {{ --text: #e6edf3; --soft: #9ea7b3; --page: #0d1117;
  --panel: #161b22; --line: #30363d; --link: #79c0ff; --expected: {SKY}; --observed: {VERMILLION};
  --good: #2fc79a; --bad: #f0803c; --open: #e39cc4; --known: #f0c14d; --none: #7d8590; }} }}
"""
    """* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main, footer { max-width: 1080px; margin: 0 auto; padding: 1.25rem 1rem; }
footer { color: var(--soft); font-size: .875rem; border-top: 1px solid var(--line); }
h1 { font-size: 1.35rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; overflow-wrap: anywhere; }
p, ul, ol { margin: .4rem 0; max-width: 75ch; overflow-wrap: anywhere; }
a { color: var(--link); }
code, pre, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  font-size: .875em; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
article + article { margin-top: 3rem; border-top: 3px solid var(--line); padding-top: 1.5rem; }
.soft { color: var(--soft); }
.verdict { border: 1px solid var(--line); border-left: 8px solid var(--none);
  border-radius: 6px; background: var(--panel); padding: .9rem 1.1rem; }
.verdict strong { display: block; font-size: 1.5rem; line-height: 1.25;
  overflow-wrap: anywhere; }
.good { border-left-color: var(--good); } .bad { border-left-color: var(--bad); }
.open { border-left-color: var(--open); } .known { border-left-color: var(--known); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr));
  gap: .6rem; margin: .8rem 0; padding: 0; list-style: none; max-width: none; }
.cards > * { border: 1px solid var(--line); border-left: 5px solid var(--none);
  border-radius: 6px; padding: .45rem .7rem; margin: 0; }
.cards .good { border-left-color: var(--good); } .cards .bad { border-left-color: var(--bad); }
.cards .open { border-left-color: var(--open); }
.cards .known { border-left-color: var(--known); }
.cards b { display: block; } .cards span { color: var(--soft); font-size: .875rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr));
  gap: 1rem 2rem; }
figure { margin: .5rem 0; min-width: 0; }
figcaption { color: var(--soft); font-size: .875rem; margin-bottom: .3rem; }
svg { display: block; width: 100%; max-width: 540px; height: auto; overflow: visible; }
svg text { fill: var(--text); font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; }
svg .soft { fill: var(--soft); } svg .axis { stroke: var(--line); }
svg .mark, svg .decides { stroke: var(--soft); stroke-dasharray: 4 3; }
svg .expected { fill: var(--expected); } svg .observed { fill: var(--observed); }
svg .open { fill: var(--open); }
svg line.observed { stroke: var(--observed); stroke-width: 3; }
svg polyline.observed { fill: none; stroke: var(--observed); stroke-width: 2; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px;
  margin: 0 .3em 0 0; } .key.expected { background: var(--expected); }
.key.observed { background: var(--observed); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { min-width: 14rem; overflow-wrap: anywhere; } .name { white-space: nowrap; }
.status { white-space: nowrap; }
.status::before { content: "●"; color: var(--none); margin-right: .35em; }
.status.good::before { content: "✓"; color: var(--good); font-weight: 700; }
.status.bad::before { content: "✗"; color: var(--bad); font-weight: 700; }
.status.open::before { content: "?"; color: var(--open); font-weight: 700; }
.status.known::before { content: "!"; color: var(--known); font-weight: 700; }
details { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem;
  margin: .5rem 0; }
summary { cursor: pointer; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
p.said { margin: .4rem 0; overflow-wrap: anywhere; } p.more { margin-left: 1.2rem; }
.aligned pre { white-space: pre; overflow-x: auto; overflow-wrap: normal; }
.command span { display: inline-block; max-width: 100%; }
@media (max-width: 520px) { .aligned pre { font-size: .66rem; padding: .5rem; } }
@media (max-width: 520px) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
  details .name { min-width: 6.75rem; white-space: normal; overflow-wrap: anywhere; }
  .wide { min-width: 7.5rem; } }
"""
)


class Markup(str):
    """Text that is HTML already; other text is escaped."""


def element(tag: str, /, *children: str, **attributes: object) -> Markup:
    """An element; children that are no `Markup` are escaped, and so are attributes.

    An underscore at the end of an attribute's name is dropped, others are hyphens.

    Examples
    --------
    >>> element("p", "a < b", element("b", "c"), class_="soft", aria_label='"d"')
    '<p class="soft" aria-label="&quot;d&quot;">a &lt; b<b>c</b></p>'
    """
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if tag in VOID:
        return Markup(f"<{tag}{named}>")
    return Markup(f"<{tag}{named}>{joined(children)}</{tag}>")


def joined(parts: Iterable[str]) -> Markup:
    """Several parts as one; those that are no `Markup` are escaped."""
    return Markup("".join(x if isinstance(x, Markup) else html.escape(x) for x in parts))


def html_page(title: str, *parts: str) -> str:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    footer = element("footer", f"Written by specref {__version__}. This page loads nothing.")
    body = element("body", element("main", *parts), footer)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}"


def section(title: str, *parts: str) -> Markup:
    """A titled part of a page; empty without parts."""
    return element("section", element("h2", title), *parts) if any(parts) else Markup()


def table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], classes: Sequence[str] = ()
) -> Markup:
    """Rows under titles, which scroll sideways where they are too wide for the screen.

    * `classes`: A class for each column, such as "number".
    """
    kinds = [*classes, *[""] * (len(titles) - len(classes))]

    def line(tag: str, cells: Sequence[str], **attributes: object) -> Markup:
        pairs = zip(cells, kinds, strict=True)
        return element("tr", *(element(tag, x, class_=k or None, **attributes) for x, k in pairs))

    head = element("thead", line("th", titles, scope="col"))
    body = element("tbody", *(line("td", row) for row in rows))
    return element("div", element("table", head, body), class_="scroll")


def again(command: str, *told: tuple[str, str], python: str = "") -> list[str]:
    """The command that repeats a run, what was given, and the machine; empty without one."""
    if not command:
        return []
    environment = (
        ("specref", __version__),
        ("Python, NumPy", f"{python or platform.python_version()}, {np.__version__}"),
        ("machine", f"{platform.system()} {platform.machine()}"),
    )
    # Each word by itself: options are not cut at their hyphens.
    words = (part for word in command.split(" ") for part in (" ", element("span", word)))
    return [element("pre", *list(words)[1:], class_="command"), facts([*told, *environment])]


def link_of(cite: str) -> Markup:
    """A place in public, linked: a repository, one of its issues, or a preprint."""
    return element("a", cite, href=address(cite))


def verdict_box(kind: str, headline: str, *parts: str) -> Markup:
    """What was found, in words: kind is "good", "bad", "open" or "known"."""
    return element("div", element("strong", headline), *parts, class_=f"verdict {kind}")


def cards(entries: Iterable[tuple[str, str, str]]) -> Markup:
    """Figures in a grid: (kind, figure, what it is)."""
    listed = (
        element("li", element("b", figure), element("span", what), class_=kind or None)
        for kind, figure, what in entries
    )
    return element("ul", *listed, class_="cards")


def facts(entries: Iterable[tuple[str, str]]) -> Markup:
    """Names and what they stand for."""
    return element(
        "dl",
        *(part for name, told in entries for part in (element("dt", name), element("dd", told))),
    )


def address(cite: str) -> str:
    """Where on the web a place of `Entry.cites` is.

    Examples
    --------
    >>> address("vllm-project/vllm#40269"), address("arXiv:2211.17192")
    ('https://github.com/vllm-project/vllm/issues/40269', 'https://arxiv.org/abs/2211.17192')
    >>> address("FasterDecoding/REST")
    'https://github.com/FasterDecoding/REST'
    """
    if cite.startswith("arXiv:"):
        return f"https://arxiv.org/abs/{cite.removeprefix('arXiv:')}"
    return f"https://github.com/{cite.replace('#', '/issues/')}"


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
