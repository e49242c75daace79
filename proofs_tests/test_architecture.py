"""Rules of the architecture that a program can check: floors, no hidden randomness."""

import ast
import re
import statistics
from collections.abc import Mapping, Set
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import specref
import specref.theory

PACKAGE = Path(specref.__file__).parent
LAYERS = {
    "foundations: chance, tokens, models and laws, and what every file may need": (
        "arrays chance coins distributions laws lazy models optional pairs spoiled strategies "
        "suggestions supervised tracebacks validation vocabulary wings"
    ),
    "rules: every rule as its paper prints it, what is known of it, and the table of all": (
        "algorithms batched rule rules theory"
    ),
    "proof: exact laws, tests on samples, and wrong samplers to try them on": (
        "proofs statistics tables zoo"
    ),
    "judging: how somebody's sampler is called, and the questions that are put to it": (
        "adapters conformance contracts probing process"
    ),
    "answers: verdicts on all rules, published vectors, and what is shown": (
        "report vectors verification"
    ),
    "faces: the command line, pytest's plugin, the public names": (
        "__init__ __main__ cli pytest_plugin"
    ),
}
WINGS = "contrib"
"""What the core does without, and knows by the names of `specref.wings` alone."""
ASIDE = {"torch_backend", "examples"}
"""Nothing of the rest is imported there: their independence is their value."""
LEVELS = {one: level for level, rooms in enumerate(LAYERS.values()) for one in rooms.split()}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms_imported(path: Path) -> set[str]:
    parts = [name.split(".") for name in program(path).imports if name.startswith("specref.")]
    return {name[1] for name in parts if is_room(name[1])}


def is_room(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


class Program:
    """What rules ask of the source of a file, found in one walk."""

    def __init__(self, source: str) -> None:
        self.bodies: list[tuple[str, int]] = []
        """Functions, with the lines of their bodies."""
        self.bound: set[str] = set()
        """The names that it gives to something: functions, classes, variables, attributes."""
        self.taken: dict[str, str] = {}
        """{name here: name there} of what it imports from the package."""
        self.attributes: list[tuple[str, str]] = []
        """The attributes that it names, each with the name that it is one of, if it is one's."""
        self.statements: list[ast.Import | ast.ImportFrom] = []
        self.for_type_checkers: set[ast.AST] = set()
        for node in ast.walk(ast.parse(source)):
            self.take(node)

    def take(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.ClassDef(name=name) | ast.arg(arg=name):
                self.bound.add(name)
            case ast.Attribute(attr=name):
                self.attributes.append((name, getattr(node.value, "id", "")))
                if isinstance(node.ctx, ast.Store):
                    self.bound.add(name)
            case ast.FunctionDef(name=name):
                self.bound.add(name)
                body = node.body[ast.get_docstring(node) is not None :]
                lines = int(body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                self.bodies.append((name, lines))
            case ast.Import() | ast.ImportFrom():
                self.statements.append(node)
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("specref"):
                    self.taken |= {alias.asname or alias.name: alias.name for alias in node.names}
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                self.for_type_checkers.update(ast.walk(node))

    @cached_property
    def imports(self) -> set[str]:
        """The modules that it names, and what it takes from them, with their dotted names."""
        return {name for statement in self.statements for name in named_by(statement)}

    def imported(self, modules: Set[str]) -> set[str]:
        """Those of the modules that it imports when it runs, at its start or later."""
        found: set[str] = set()
        for statement in self.statements:
            names = named_by(statement)
            if statement in self.for_type_checkers:
                continue
            if isinstance(statement, ast.ImportFrom):
                module, *inner = names or [""]
                names = [name if name in modules else module for name in inner]
            found.update(names)
        return found & modules


def named_by(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """Modules, or a module and what is taken from it; none if it is a relative one."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    module = statement.module
    return [module, *(f"{module}.{one.name}" for one in statement.names)] if module else []


@cache
def program(path: Path) -> Program:
    return Program(path.read_text())


ALL_FILES = sorted(PACKAGE.rglob("*.py"))
ALGORITHM_FILES = sorted((PACKAGE / "algorithms").rglob("*.py"))


def too_high(path: Path) -> set[str]:
    """The rooms that a file imports from a layer above its own; the core imports no wing."""
    own = room(path)
    if own == WINGS:
        return set()
    level = LEVELS.get(own, 0)
    return {
        one for one in rooms_imported(path) - {own, *ASIDE} if one == WINGS or LEVELS[one] > level
    }


def test_every_room_is_of_one_layer() -> None:
    rooms = [one for names in LAYERS.values() for one in names.split()]
    assert sorted([*rooms, WINGS, *ASIDE]) == sorted(set(map(room, ALL_FILES)))


def test_imports_go_downward() -> None:
    """No file imports from a layer above its own, or a wing."""
    assert {
        str(path.relative_to(PACKAGE)): found for path in ALL_FILES if (found := too_high(path))
    } == {}


def test_an_upward_import_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofs_tests.test_architecture.room", lambda path: path.parent.name)
    for own, text, found in (
        ("zoo", "def late():\n    from specref.contracts import table", {"contracts"}),
        ("cli", "from specref.contrib.real_models import published", {"contrib"}),
        ("zoo", "from specref.statistics import Campaign", set()),
        ("contrib", "from specref.cli import group", set()),
    ):
        planted = tmp_path / own / f"planted_{len(text)}.py"
        planted.parent.mkdir(exist_ok=True)
        planted.write_text(text)
        assert too_high(planted) == found


TWIN = sorted((PACKAGE / "torch_backend").rglob("*.py"))


def test_the_twin_imports_nothing_of_the_package() -> None:
    for path in TWIN:
        assert rooms_imported(path) <= {"torch_backend"}, path
        assert "specref" not in program(path).imports, path


def test_algorithm_files_take_their_randomness() -> None:
    for path in ALGORITHM_FILES:
        assert not program(path).imports & {"random", "secrets", "torch", "numpy.random"}, path
        assert "np.random" not in path.read_text(), path


def test_median_function_is_short() -> None:
    sizes = [lines for path in ALGORITHM_FILES for _, lines in program(path).bodies]
    assert statistics.median(sizes) <= 10


def test_functions_outside_algorithms_stay_readable() -> None:
    long = [(p.name, name) for p in ALL_FILES for name, lines in program(p).bodies if lines > 60]
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


OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in OF_NAMED_TUPLES


def private_names(path: Path, known: Set[str]) -> list[str]:
    """Names with an underscore, of those known, that a file takes from another of the package.

    An attribute is another file's if this one binds no such name, even if it is inherited; or if
    what has it was imported from the package.
    """
    one = program(path)
    attributes = [
        name
        for name, of in one.attributes
        if name in known and (name not in one.bound or of in one.taken)
    ]
    return [name for name in (*one.taken.values(), *attributes) if is_private(name)]


PLANTED = """
from specref import __version__
from specref.chance import Exact, _compare
from specref.chance import Step as Decision

class Mine(Exact):
    _mine = 1

    def _unlike(self):
        return self._mine, self._unexplored, type(self)._mine, super()._unlike()

Mine()._mine, Exact._unlike, Decision._replace, sys._getframe()
"""


def test_no_file_takes_private_names_of_another(tmp_path: Path) -> None:
    known = set[str]().union(*(program(path).bound for path in ALL_FILES))
    found = {path.name: names for path in ALL_FILES if (names := private_names(path, known))}
    assert found == {}
    planted = tmp_path / "planted.py"
    planted.write_text(PLANTED)
    known = {"_mine", "_unlike", "_unexplored", "_replace"}
    assert sorted(private_names(planted, known)) == ["_compare", "_unexplored", "_unlike"]


def module_name(path: Path) -> str:
    parts = ("specref", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def cycle(programs: Mapping[str, Program]) -> list[str]:
    """Modules that import each other in a circle, if any do."""
    graph = {name: one.imported(programs.keys()) for name, one in programs.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def planted_cycle(**programs: str) -> set[str]:
    return set(cycle({f"p.{name}": Program(text) for name, text in programs.items()}))


def test_no_files_import_each_other() -> None:
    assert cycle({module_name(path): program(path) for path in ALL_FILES}) == []
    typed = "if TYPE_CHECKING:\n    from p.b import y"
    assert not planted_cycle(a=typed, b="def f():\n    from p import a")
    late = "def f():\n    from p.c import x"
    assert planted_cycle(a="import p.b", b=late, c="from p import a") == {"p.a", "p.b", "p.c"}


# Test files of several modules of their folder, or of what is no module: docs, claims, benchmarks.
CROSSING = {
    "statistics/campaign": "lags",
    ".": (
        "architecture defaults docs formulas hooks package pages pictures playground walks without"
    ),
    "algorithms": "edges limits multi_draft_floats multi_draft_input",
    "claims": "explainer ledger ngrammys pins records speculative tables timor verification",
    "cli": "process",
    "conformance": "block outcomes recorded",
    "conformance/checks": "check_edges trees",
    "conformance/diagnosis": "open_set",
    "conformance/strata": "serving",
    "contracts": "inputs",
    "probing": "interception",
    "process": "life",
    "proofs/everywhere": "other_laws planted",
    "contrib/compare": "real_servers",
    "contrib/engines": "changed_engines samplers trained_batches upstream_reports",
    "contrib/vocabularies": "model_pairs real_vocabularies",
    "statistics": "drivers limits",
    "torch_backend/fused": "interpreted production",
    "torch_backend": "block_texts costs decoder generate_law kit lazy_bounds pretend "
    "pretend_generate published",
    "torch_backend/verification": "batches tree_laws",
}


def without_twin(test: Path) -> bool:
    """Whether neither a module nor a package is at the place of a test file of `proofs_tests`.

    The tests of a package as a whole lie beside its folder, or in it.
    """
    name, twin = test.stem.removeprefix("test_"), PACKAGE / test.parent
    places = [twin / f"{name}.py", twin / name / "__init__.py"]
    return not any(place.exists() for place in places) and not (
        twin.name == name and (twin / "__init__.py").exists()
    )


def test_tests_mirror_the_package() -> None:
    root = PACKAGE.parent / "proofs_tests"
    tests = [path.relative_to(root) for path in root.rglob("test_*.py")]
    assert len(tests) > 200
    listed = {
        Path(at, f"test_{name}.py") for at, names in CROSSING.items() for name in names.split()
    }
    assert {test for test in tests if without_twin(test)} == listed
    beside, inside = Path("algorithms/test_trees.py"), Path("algorithms/trees/test_trees.py")
    planted = [Path("algorithms/test_topdown.py"), Path("trees/test_trees.py")]
    assert [test for test in (beside, inside, *planted) if without_twin(test)] == planted


def imported_tests(path: Path) -> list[str]:
    """Test modules, or tests, that a file imports as if they were a library."""
    source = path.read_text()
    if not re.search(r"^\s*(from|import) (\S+ import \([^)]*|.*)\btest_", source, flags=re.M):
        return []
    return sorted(name for name in Program(source).imports if ".test_" in name)


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
