"""The texts for upstream: each has its parts, and what a script is said to print it prints.

Exact: scripts draw nothing, or by a fixed seed.
"""

import re
from importlib.util import find_spec

import pytest

from proofs_tests.pages import console_blocks

PAGE = console_blocks.ROOT / "docs" / "records" / "upstream-reports.md"
START, *SECTIONS = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
RUN = {
    "mlx-lm: penalties": ("mlx.core", "mlx_lm"),
    "Transformers: edges": ("torch", "transformers"),
    "Transformers: a model stays changed": ("torch", "transformers"),
}


def fenced(section: str, language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.parametrize("start", RUN)
def test_scripts_print_what_is_said(start: str, capsys: pytest.CaptureFixture[str]) -> None:
    missing = [one for one in RUN[start] if find_spec(one.split(".")[0]) is None]
    if missing:
        pytest.skip(f"not_run ({', '.join(missing)} not installed)")
    (section,) = [one for one in SECTIONS if one.startswith(start)]
    exec(fenced(section, "python"), {})
    assert capsys.readouterr().out == fenced(section, "text")
