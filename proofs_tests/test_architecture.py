"""The house rules that a program can read: floors, file sizes, no hidden randomness."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

import specref
import specref.theory

HOUSE = Path(specref.__file__).parent
FLOORS = [
    "tracebacks",
    "distributions",
    "chance",
    "vocabulary",
    "models",
    "theory",
    "real_vocabularies",
    "algorithms",
    "rules",
    "pairs",
    "zoo",
    "losslessness",
    "simulate",
    "torch_backend",
    "conformance",
    "verification",
    "report",
    "cli",
]
OUTSIDE = {
    "strategies": "models",
    "pytest_plugin": "conformance",
    "examples": "distributions",
    "__init__": "cli",
    "__main__": "cli",
}


def room(path: Path) -> str:
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def rooms_imported(path: Path) -> set[str]:
    parts = [name.split(".") for name in imports(path) if name.startswith("specref.")]
    return {name[1] for name in parts if (HOUSE / name[1]).exists() or name[1] in FLOORS}


def bodies(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            docstring = ast.get_docstring(node) is not None
            body = node.body[1:] if docstring else node.body
            yield node.name, body[-1].end_lineno - body[0].lineno + 1 if body else 0


ALL_FILES = sorted(HOUSE.rglob("*.py"))
ALGORITHM_FILES = sorted((HOUSE / "algorithms").glob("*.py"))


@pytest.mark.parametrize("path", ALL_FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_imports_go_downward(path: Path) -> None:
    own = OUTSIDE.get(room(path), room(path))
    above = FLOORS[: FLOORS.index(own) + 1]
    known = {*above, room(path)}
    assert rooms_imported(path) <= known, f"{path.name} imports from a floor below it"


TWIN = sorted((HOUSE / "torch_backend").glob("*.py"))


@pytest.mark.parametrize("path", TWIN, ids=lambda path: path.stem)
def test_the_twin_knows_nothing_of_the_house(path: Path) -> None:
    assert rooms_imported(path) <= {"torch_backend"}
    assert not {name for name in imports(path) if name == "specref"}


def test_floor_check_notices_an_upward_import(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("from specref.cli import main")
    assert rooms_imported(planted) == {"cli"}


@pytest.mark.parametrize("path", ALGORITHM_FILES, ids=lambda path: path.stem)
def test_algorithm_files_are_short_and_take_their_randomness(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 150
    assert max((lines for _, lines in bodies(path)), default=0) <= 25
    names = set(imports(path))
    assert not names & {"random", "secrets", "torch", "numpy.random"}
    assert "np.random" not in path.read_text()


def test_median_function_is_short() -> None:
    sizes = [lines for path in ALGORITHM_FILES for _, lines in bodies(path)]
    assert statistics.median(sizes) <= 10


def test_functions_outside_algorithms_stay_readable() -> None:
    long = [(p.name, name) for p in ALL_FILES for name, lines in bodies(p) if lines > 60]
    assert long == []


def test_no_name_of_the_theory_hides_a_module() -> None:
    """`from specref.theory import psi` is a function, and so is no module of that name."""
    modules = {path.stem for path in (HOUSE / "theory").glob("*.py")}
    assert not modules & set(specref.theory.__all__)
    assert callable(specref.theory.psi)


def test_package_exports_the_oracle_and_little_else() -> None:
    assert len(specref.__all__) <= 20
    assert all(hasattr(specref, name) for name in specref.__all__)
