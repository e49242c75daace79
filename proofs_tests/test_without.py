"""The package is there without pytest, and tests can be collected without torch."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
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


ROOT = Path(__file__).parents[1]
IMPORT = re.compile(r"^(?:from [\w.]+ import (?:\([^)]*\)|[\w ,]+)|import [\w ,.]+)", flags=re.M)
"""Statements that stand alone: to parse whole files takes a hundred times as long."""
HEAVY = {"torch", "transformers", "tokenizers", "triton", "safetensors"}


def imported(statement: ast.stmt) -> Iterator[str]:
    """The modules that a statement may import, with their dotted names."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        yield str(statement.module)
        yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


@cache
def modules_of(file: Path) -> frozenset[str]:
    """What a file imports as it is imported itself, until it skips if something is missing."""
    source = file.read_text(encoding="utf-8")
    begins = re.split(r"^(?:\w+ = )?pytest\.importorskip\(", source, flags=re.M)[0]
    without_texts = re.sub('""".*?"""', "", begins, flags=re.S)
    statements = ast.parse("\n".join(IMPORT.findall(without_texts))).body
    return frozenset(name for one in statements for name in imported(one))


@cache
def files_of(module: str) -> tuple[Path, ...]:
    """The files that are run when a module of this project is imported."""
    first, *rest = module.split(".")
    folders = [ROOT.joinpath(first, *rest[:i]) for i in range(len(rest) + 1)]
    files = [folder / "__init__.py" for folder in folders] + [folders[-1].with_suffix(".py")]
    return tuple(file for file in files if file.exists())


def imports_heavy(file: Path, light: set[Path]) -> bool:
    """Whether torch is imported, by whatever way, as a file is imported.

    Those that are known to do without it are not looked at again; if it does, it joins them with
    all that it imports.
    """
    pending, seen = [file], {file}
    for one in pending:
        for module in modules_of(one):
            if module.split(".")[0] in HEAVY:
                return True
            fresh = {*files_of(module)} - light - seen
            seen |= fresh
            pending += fresh
    light |= seen
    return False


def test_what_needs_torch_is_skipped_before_it_is_imported() -> None:
    files = [*ROOT.glob("proofs_tests/**/test_*.py"), *ROOT.glob("gpu_tests/test_*.py")]
    light: set[Path] = set()
    assert len(files) > 200
    assert [str(file.relative_to(ROOT)) for file in files if imports_heavy(file, light)] == []


def test_an_import_too_early_is_noticed(tmp_path: Path) -> None:
    skip = 'pytest.importorskip("torch")\n'
    for number, (text, heavy) in enumerate(
        {
            "import torch\n": True,
            "from proofs_tests.helpers.chains import TARGET\n": True,
            "from specref.torch_backend import verify\n" + skip: True,
            skip + "import torch\n": False,
            "from specref.contrib.engines.registry import ADAPTERS\n": False,
            "def f():\n    import torch\n": False,
        }.items()
    ):
        file = tmp_path / f"test_{number}.py"
        file.write_text(text)
        assert imports_heavy(file, set()) == heavy, text
