"""One palette: plots take their colours from it, and type none in."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from proofs_tests.pages.console_blocks import ROOT
from specref.report.palette import GREY, GRID, OKABE_ITO, PALE

PLOTS = [
    path
    for folder in ("specref", "gpu_tests", "proofs_tests/benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if re.search(r"load_matplotlib|matplotlib\.figure", path.read_text(encoding="utf-8"))
]


def typed_in(code: str) -> list[str]:
    """Colours that a file names itself, but for white, which numbers on dark cells have."""
    named = r"(?:color|mfc|colour)\s*=\s*(\"(?!white|none)\w+\")"
    return re.findall(r"\"#[0-9A-Fa-f]{6}\"", code) + re.findall(named, code)


@pytest.mark.parametrize("path", PLOTS, ids=lambda path: path.stem)
def test_plots_take_their_colours_from_the_palette(path: Path) -> None:
    assert typed_in(path.read_text(encoding="utf-8")) == []


def test_colours_are_eight_and_differ() -> None:
    assert len(set(OKABE_ITO)) == 8
    assert all(re.fullmatch(r"#[0-9A-F]{6}", one) for one in (*OKABE_ITO, GREY, PALE, GRID))
    channels = [[int(one[i : i + 2], 16) for i in (1, 3, 5)] for one in OKABE_ITO]
    apart = [
        sum(abs(a - b) for a, b in zip(*two, strict=True)) for two in combinations(channels, 2)
    ]
    assert min(apart) > 60
