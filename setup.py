"""What pyproject.toml cannot say: the text of the package's page, which is README.md.

A page of a package index has no files beside it. So links to files become links to the address of
the project, `Repository` in `[project.urls]` of pyproject.toml, at the tag of the version; while
there is no address, they become text.
"""

import re
import tomllib
from pathlib import Path

FENCED = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^<!--.*?-->\n", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^][]*)\]\((?![a-z]+:)([^)\s]+)\)")
PICTURE = re.compile(r"<picture>.*?</picture>", flags=re.DOTALL)
IMAGE = re.compile(r'\b(src|srcset)="(?![a-z]+:)([^"]+)"')


def description(readme: str, address: str | None) -> str:
    """README.md as the page of a package.

    Parameters
    ----------
    readme : str
    address : str or None
        Of the project's files, such as https://github.com/OWNER/specref/blob/v0.1.0. None: links
        become their text, and a picture what it shows in words.
    """

    def link(found: re.Match[str]) -> str:
        text, target = found.groups()
        file = f"README.md{target}" if target.startswith("#") else target
        return f"[{text}]({address}/{file})" if address else text

    def picture(found: re.Match[str]) -> str:
        if address is None:
            return re.search(r'alt="([^"]*)"', found[0])[1]
        raw = address.replace("/blob/", "/raw/")
        return IMAGE.sub(lambda one: f'{one[1]}="{raw}/{one[2]}"', found[0])

    parts = FENCED.split(readme)  # code is every second one
    for i in range(0, len(parts), 2):
        parts[i] = LINK.sub(link, PICTURE.sub(picture, COMMENT.sub("", parts[i])))
    return "".join(parts)


def address_of(project: dict[str, object], version: str) -> str | None:
    """The address of the files of a version, from `[project]` of pyproject.toml."""
    repository = project.get("urls", {}).get("Repository")
    return f"{repository.rstrip('/')}/blob/v{version}" if repository else None


if __name__ == "__main__":
    from setuptools import setup

    root = Path(__file__).parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = (root / "specref" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "(.*)"$', package, flags=re.MULTILINE)[1]
    setup(
        long_description=description(
            (root / "README.md").read_text(encoding="utf-8"), address_of(project, version)
        ),
        long_description_content_type="text/markdown",
    )
