"""Which pages of docs have a part that `make docs` makes, and what makes it.

In the repository such a page says what it is about, and which command prints it. A picture that is
not committed stands in a comment `<!-- on the site: … -->`, which only the site shows.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from proofs_tests.pages import api, cross_checked, json_reports, pictures, strata
from specref.report.schema import write_schemas

APPENDED: Mapping[str, Callable[[], str]] = {
    "api": api.tables,
    "checks": strata.tables,
    "formats": json_reports.tables,
    "two-models": cross_checked.tables,
}
NAMES = tuple(APPENDED)
ON_THE_SITE = re.compile(r"<!-- on the site:\n(.*?)\n-->", flags=re.DOTALL)


def page(name: str, text: str) -> str:
    """A page as the site has it, of its text in the repository; where it is from comes last.

    >>> page("install", "# Install")
    '# Install'
    >>> page("install", "<!-- on the site:\\n<picture>\\n-->")
    '<picture>'
    """
    text = ON_THE_SITE.sub(r"\1", text)
    if name not in APPENDED:
        return text
    above, _, last = text.rstrip().rpartition("\n\n")
    if last.startswith("*") and last.endswith("*"):
        return f"{above}\n\n{APPENDED[name]()}\n\n{last}\n"
    return f"{text}\n{APPENDED[name]()}"


def write_files(docs: Path) -> None:
    """Write the pictures and schemas that pages show or offer."""
    pictures.write(docs / "pictures")
    write_schemas(docs / "generated" / "schemas")
