"""The pictures of pages: every figure in them is computed where they are drawn."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from proofs_tests.pages.console_blocks import ROOT
from proofs_tests.pages.pictures.accepted import accepted
from proofs_tests.pages.pictures.choice import choice
from proofs_tests.pages.pictures.iteration import iteration
from proofs_tests.pages.pictures.kills import kills
from proofs_tests.pages.pictures.of_rule import of_rule
from proofs_tests.pages.pictures.svg import THEMES, Drawing
from proofs_tests.pages.pictures.vocabularies import vocabularies
from specref.rules import RULES

FOLDER = ROOT / "docs" / "pictures"
PICTURES: Mapping[str, Callable[[], Drawing]] = {
    "accepted": accepted,
    "iteration": iteration,
    "vocabularies": vocabularies,
    "choice": choice,
    "kills": kills,
    **{name: partial(of_rule, rule) for name, rule in RULES.items()},
}


def files() -> dict[str, str]:
    """{name of a file: its text}."""
    drawn = {name: draw() for name, draw in PICTURES.items()}
    return {
        f"{name}-{theme}.svg": drawing.svg(colours)
        for name, drawing in drawn.items()
        for theme, colours in THEMES.items()
    }


def write(folder: Path = FOLDER) -> None:
    """Write the files; touch none that is as it was."""
    folder.mkdir(exist_ok=True)
    for name, text in files().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
