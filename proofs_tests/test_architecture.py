"""Rules of the architecture that a program can check: floors, no hidden randomness."""

import ast
import re
import statistics
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import specref
import specref.theory
from proofs_tests.helpers.imports import imports

PACKAGE = Path(specref.__file__).parent
FLOORS = [
    "lazy",
    "optional",
    "tracebacks",
    "distributions",
    "arrays",
    "chance",
    "vocabulary",
    "validation",
    "models",
    "laws",
    "checkpoints",
    "algorithms",
    "theory",
    "machines",
    "real_vocabularies",
    "rules",
    "pairs",
    "simulate",
    "speed",
    "zoo",
    "proofs",
    "statistics",
    "torch_backend",
    "contracts",
    "probing",
    "process",
    "adapters",
    "conformance",
    "vectors",
    "verification",
    "report",
    "pytest_plugin",
    "cli",
]
OUTSIDE = {
    "strategies": "models",
    "examples": "distributions",
    "__init__": "cli",
    "__main__": "cli",
}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms_imported(path: Path) -> set[str]:
    parts = [name.split(".") for name in imports(path) if name.startswith("specref.")]
    return {name[1] for name in parts if (PACKAGE / name[1]).exists() or name[1] in FLOORS}


def bodies(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            docstring = ast.get_docstring(node) is not None
            body = node.body[1:] if docstring else node.body
            yield node.name, body[-1].end_lineno - body[0].lineno + 1 if body else 0


ALL_FILES = sorted(PACKAGE.rglob("*.py"))
ALGORITHM_FILES = sorted((PACKAGE / "algorithms").rglob("*.py"))


@pytest.mark.parametrize("path", ALL_FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downward(path: Path) -> None:
    own = OUTSIDE.get(room(path), room(path))
    above = FLOORS[: FLOORS.index(own) + 1]
    known = {*above, room(path)}
    assert rooms_imported(path) <= known, f"{path.name} imports from a floor below it"


TWIN = sorted((PACKAGE / "torch_backend").glob("*.py"))


@pytest.mark.parametrize("path", TWIN, ids=lambda path: path.stem)
def test_the_twin_imports_nothing_of_the_package(path: Path) -> None:
    assert rooms_imported(path) <= {"torch_backend"}
    assert not {name for name in imports(path) if name == "specref"}


def test_floor_check_notices_an_upward_import(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("from specref.cli import main")
    assert rooms_imported(planted) == {"cli"}


@pytest.mark.parametrize("path", ALGORITHM_FILES, ids=lambda path: path.stem)
def test_algorithm_files_take_their_randomness(path: Path) -> None:
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
    modules = {path.stem for path in (PACKAGE / "theory").glob("*.py")}
    assert not modules & set(specref.theory.__all__)
    assert callable(specref.theory.psi)


@pytest.mark.parametrize("name", ["statistics", "adapters", "verification"])
def test_no_public_name_of_a_package_hides_a_module(name: str) -> None:
    """Names are looked up when they are asked for: a module of that name would come first."""
    package = import_module(f"specref.{name}")
    assert not {path.stem for path in (PACKAGE / name).iterdir()} & set(package.__all__)
    assert all(hasattr(package, one) for one in package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        package.no_such_name  # noqa: B018


def test_package_exports_the_oracle_and_little_else() -> None:
    assert len(specref.__all__) <= 27
    assert all(hasattr(specref, name) for name in specref.__all__)
    assert set(specref.__all__) <= set(dir(specref))
    assert specref.prove is specref.verification.prove


def private_names(path: Path) -> list[str]:
    """Names with an underscore that a file takes from another one of the package."""
    return [
        alias.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("specref")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.endswith("__")
    ]


def test_no_file_takes_private_names_of_another(tmp_path: Path) -> None:
    assert {path.name: found for path in ALL_FILES if (found := private_names(path))} == {}
    planted = tmp_path / "planted.py"
    planted.write_text(
        "from specref.chance import Exact, _compare\nfrom specref import __version__"
    )
    assert private_names(planted) == ["_compare"]


def test_architecture_page_lists_the_floors_in_order() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (`[^|]+`) \|", page, flags=re.MULTILINE)
    names = [name.strip("`/ ") for row in rows for name in row.split(",")]
    assert [name for name in names if name in FLOORS] == FLOORS


def imported_tests(path: Path) -> list[str]:
    """Test modules, or tests, that a file imports as if they were a library."""
    return [name for name in imports(path) if ".test_" in name]


def test_no_test_module_is_a_library(tmp_path: Path) -> None:
    rooms = [PACKAGE.parent / room for room in ("proofs_tests", "gpu_tests")]
    files = [path for room in rooms for path in sorted(room.rglob("*.py"))]
    assert len(files) > 100
    assert {str(path): found for path in files if (found := imported_tests(path))} == {}
    planted = tmp_path / "planted.py"
    planted.write_text("from proofs_tests.claims.test_pins import PINS\nimport specref.tracebacks")
    assert imported_tests(planted) == [
        "proofs_tests.claims.test_pins",
        "proofs_tests.claims.test_pins.PINS",
    ]
