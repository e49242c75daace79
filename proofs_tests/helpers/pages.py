"""HTML pages as a browser reads and shows them: matched tags, contrast, headless Chromium."""

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """From 1, for equal colours, to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


HEADLESS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--dump-dom",
)
PROBE, LIMIT = 20, 120


@cache
def missing() -> str:
    """Why there is no Chromium to ask; empty if it shows an empty page within 20 seconds."""
    if _found() is None:
        return "not_run (Chromium is not installed)"
    with TemporaryDirectory() as folder:
        try:
            done = _run(Path(folder), ["about:blank"], PROBE)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"not_run (Chromium does not start: {type(error).__name__})"
    if done.returncode or "<html" not in done.stdout:
        return f"not_run (Chromium does not start: exit code {done.returncode})"
    return ""


def dumped(folder: Path, *words: str) -> str:
    """The DOM of a page after its scripts; skips the test where there is no Chromium."""
    if why := missing():
        pytest.skip(why)
    done = _run(folder, words, LIMIT)
    assert done.returncode == 0, done.stderr
    assert "<html" in done.stdout, done.stderr
    return done.stdout


def _found() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


def _run(folder: Path, words: Sequence[str], limit: float) -> "subprocess.CompletedProcess[str]":
    command = [str(_found()), *HEADLESS, f"--user-data-dir={folder / 'profile'}", *words]
    home = {**os.environ, "HOME": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, env=home)


VOID = {"meta", "br", "img", "link", "input", "hr"}
# In a test alone: the pages themselves have no scripts.
MEASURE = """<script>addEventListener("load", () => {
  const all = [...document.querySelectorAll("body *")];
  const inside = (one) => one.closest(".scroll") !== null && !one.matches(".scroll");
  const texts = [...document.querySelectorAll("svg text")].map((one) => one.getBBox());
  top.document.title = JSON.stringify({
    window: innerWidth,
    width: document.documentElement.scrollWidth,
    right: Math.max(...all.filter((x) => !inside(x)).map((x) => x.getBoundingClientRect().right)),
    background: getComputedStyle(document.body).backgroundColor,
    svg: Math.max(0, ...texts.map((box) => box.x + box.width)),
    left: Math.min(0, ...texts.map((box) => box.x)),
    overlaps: [...document.querySelectorAll("svg")].flatMap((svg) => {
      const boxes = [...svg.querySelectorAll("text")].map((one) => one.getBBox());
      return boxes.filter((a, i) => boxes.some((b, j) => j > i && a.x < b.x + b.width
        && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height));
    }).length,
  });
});</script>"""


class Page(HTMLParser):
    """A page that was read: its elements and text, and what is not well-formed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.problems: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        last = self.open.pop() if self.open else "nothing"
        if last != tag:
            self.problems.append(f"</{tag}> ends <{last}>")

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def loaded(self) -> list[str]:
        """What a browser would fetch or run."""
        tags = ("script", "iframe", "img", "link", "object", "embed", "base")
        return [
            *(tag for tag, _ in self.elements if tag in tags),
            *(name for _, attrs in self.elements for name in attrs if name in ("src", "onload")),
        ]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a name."""
        return [attributes for name, attributes in self.elements if name == tag]


def measured(page: str, folder: Path, width: int, *, dark: bool = False) -> dict[str, Any]:
    """How wide a page is in headless Chromium, and its background.

    It is in a frame of this width: a window cannot be as narrow as a phone. Skips the test
    where there is no Chromium.
    """
    inner = html.escape(page.replace("</body>", f"{MEASURE}</body>"))
    frame = f'<iframe style="width:{width}px; height:900px; border:0" srcdoc="{inner}"></iframe>'
    file = folder / "page.html"
    file.write_text(f"<!doctype html><title>none</title>{frame}", encoding="utf-8")
    shade = ["--blink-settings=preferredColorScheme=0"] if dark else []
    dom = dumped(folder, *shade, "--window-size=1400,900", file.as_uri())
    found = re.search(r"<title>(\{.*?\})</title>", dom)
    assert found is not None, dom[:500]
    return dict(json.loads(html.unescape(found[1])))
