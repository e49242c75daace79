"""The package can be looked through where pytest is not installed."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from specref.cli import main

BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pytest", "_pytest"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
USES = (
    "from specref import *; assert callable(parametrize), parametrize",
    "import inspect, specref; assert dict(inspect.getmembers(specref))['parametrize']",
    "import pydoc, specref; assert 'parametrize' in pydoc.render_doc(specref)",
)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("use", USES)
def test_names_of_the_package_need_no_pytest(use: str) -> None:
    command = [sys.executable, "-c", BLOCKED + use]
    subprocess.run(command, check=True, timeout=300)
    missing = subprocess.run(
        [sys.executable, "-c", BLOCKED + "import pytest"], check=False, capture_output=True
    )
    assert b"No module named 'pytest'" in missing.stderr


def test_a_file_finds_modules_of_its_folder_and_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "engine_of_mine.py").write_text("from specref.examples.correct import verify")
    folder = tmp_path / "conformance"
    folder.mkdir()
    (folder / "beside_it.py").write_text("")
    text = "import beside_it\nfrom engine_of_mine import verify as sampler"
    (folder / "adapter.py").write_text(text)
    only = ("--only", "smoke/answers")
    found = CliRunner().invoke(main, ["check", "conformance/adapter.py:sampler", *only])
    assert found.exit_code == 0, found.output
