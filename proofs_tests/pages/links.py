"""The links of the built site: those within it, their anchors too, and whether the web answers.

Run from the root of a checkout, as `make linkcheck` does before it asks for each link to the web:

    python -m proofs_tests.pages.links build/site

Exit codes: 0 links within the site lead somewhere, and the web answers; 1 one leads to nothing; 2
no host answers, so that links to the web are not_run.
"""

import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:|//")
KNOWN = ("https:", "http:", "mailto:", "data:")
HOSTS = 5
SECONDS = 10.0


class Page(HTMLParser):
    """The ids of a page, and where it links to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if name in ("href", "src", "srcset") and value and tag != "base":
                self.links.add(value)


def read(folder: Path) -> dict[Path, Page]:
    """{file: page} of a site."""
    return {path.resolve(): Page(path) for path in folder.rglob("*.html")}


def targets(path: Path, page: Page) -> list[tuple[str, Path, str]]:
    """(link, file, anchor) of the links of a page within the site."""
    local = [link for link in page.links if not ELSEWHERE.match(link)]
    split = [(link, *re.sub(r"\?[^#]*", "", link).partition("#")) for link in sorted(local)]
    return [
        (link, (path.parent / file).resolve() if file else path, anchor)
        for link, file, _, anchor in split
    ]


def broken(site: dict[Path, Page]) -> list[str]:
    """Links to no file or anchor of the site, or to what no browser opens."""
    nowhere = [
        f"{path.name}: {link}"
        for path, page in site.items()
        for link, file, anchor in targets(path, page)
        if not file.exists() or (file in site and anchor and anchor not in site[file].ids)
    ]
    return nowhere + [
        f"{path.name}: {link}"
        for path, page in site.items()
        for link in sorted(page.links)
        if ELSEWHERE.match(link) and not link.startswith((*KNOWN, "//"))
    ]


def hosts(site: Iterable[Page]) -> list[str]:
    """The hosts that the site links to."""
    links = {link for page in site for link in page.links if link.startswith("https:")}
    return sorted({urlsplit(link).netloc for link in links})


def answers(host: str) -> bool:
    """Whether a host says anything."""
    try:
        with urllib.request.urlopen(f"https://{host}/", timeout=SECONDS):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def main(folder: str) -> int:
    """Say what was found, and return the exit code."""
    site = read(Path(folder))
    if not site:
        print(f"no pages in {folder}: `make docs` builds them", file=sys.stderr)
        return 2
    wrong = broken(site)
    count = sum(len(targets(*one)) for one in site.items())
    print(f"{len(site)} pages, {count} links within them, {len(wrong)} lead to nothing")
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    if wrong:
        return 1
    asked = hosts(site.values())[:HOSTS]
    if not any(map(answers, asked)):
        print(f"links to the web: not_run (none of {', '.join(asked)} answers)")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
