"""Links, pictures and tables of pages that are written, as they stand on the site."""

import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from proofs_tests.pages import claims
from proofs_tests.pages.console_blocks import ROOT
from specref.report.listing import listing_of
from specref.rules import RULES

FENCED = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^][|]*)\]\(([^)\s:]+)\)")
PARAGRAPH = "\n\n"
PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*'
    r'<img ([^>]*?)src="([^"]+)"([^>]*)>\s*</picture>'
)
"""Of the reader's system; the theme of the site has a button of its own."""
IMAGE = re.compile(r"\b(src|srcset)=\"([^\":]+)\"")
RULE_PAGES = {
    Path(inspect.getsourcefile(listing_of(rule)) or "").relative_to(ROOT): name
    for name, rule in reversed(RULES.items())
}
"""{file of a listing: its rule}; of several, the first."""
PAGES_ELSEWHERE = {
    "ARCHITECTURE.md": "overview", "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog", "README.md": "../index",
    "docs/playground.html": "playground", "specref/zoo": "records/zoo",
    "docs/records/everywhere_zoo.json": "records/everywhere_zoo",
    "docs/records/dominance.json": "records/dominance",
}  # fmt: skip


def relinked(text: str, folder: str, page_folder: str) -> str:
    """Markdown whose links, written in one folder of the repository, work on a page in another.

    The file of a rule becomes the page of the rule, and what has a page of its own becomes that.
    Another folder becomes plain text; another file stays one, which the site offers for download.
    A page that is named by its file is named by its title instead. A row of the ledger of claims
    is on the page of its source.

    >>> relinked("[a](../specref/algorithms/tli.py), [faq.md](faq.md#x)", "docs", "docs")
    '[a](generated/rules/tli.md), [](faq.md#x)'
    >>> relinked("[known bugs](../specref/zoo)", "docs", "docs")
    '[known bugs](generated/records/zoo.md)'
    >>> relinked("[row H5.2](claims.md#claim-h5-2)", "docs", "docs")
    '[row H5.2](generated/papers/timor.md#claim-h5-2)'
    >>> relinked("[vectors](specref/vectors/v1)", "", "docs/generated")
    'vectors'
    """

    def link(found: re.Match[str]) -> str:
        text, (target, hash_, anchor) = found[1], found[2].partition("#")
        path = Path(os.path.normpath(Path(folder, target)))
        outside = path.suffix == ".md" and str(path.parent) not in (".", "docs", "docs/records")
        if not target:
            return found[0]
        moved = PAGES_ELSEWHERE.get(str(path))
        if not moved and (Path(ROOT, path).is_dir() or outside):
            return text
        if path in RULE_PAGES:
            path = Path("docs/generated/rules", f"{RULE_PAGES[path]}.md")
        elif str(path) == "docs/claims.md" and anchor in sources_of_rows():
            path = Path("docs/generated/papers", f"{sources_of_rows()[anchor]}.md")
        elif moved:
            path = Path("docs/generated", f"{moved}.md")
        shown_text = "" if text.endswith(".md") else text
        return f"[{shown_text}]({os.path.relpath(path, page_folder)}{hash_}{anchor})"

    def image(found: re.Match[str]) -> str:
        path = os.path.normpath(Path(folder, found[2]))
        return f'{found[1]}="{os.path.relpath(path, page_folder)}"'

    parts = FENCED.split(text)
    for i in range(0, len(parts), 2):  # what is between fences
        parts[i] = LINK.sub(link, parts[i])
        parts[i] = IMAGE.sub(image, PICTURE.sub(by_theme, parts[i]))
    return "".join(parts)


@cache
def sources_of_rows() -> Mapping[str, str]:
    """{anchor of a row of the ledger: its source}."""
    return {claims.anchor(row["id"]): source for source, row in claims.rows(claims.ledger())}


def by_theme(found: re.Match[str]) -> str:
    """A picture of two, as the theme's button says."""
    dark, before, light, after = found.groups()
    return "\n".join(
        f'<img class="only-{name}" {before}src="{path}"{after}>'
        for name, path in (("light", light), ("dark", dark))
    )


def rows_of(title: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A table."""
    lines = [title, ["---"] * len(title), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)
