"""Sampled mutation testing: which changes of the code do the tests not notice?

    python -m proofs_tests.mutation --areas theory chance --sample 40 --seed 1
    python -m proofs_tests.mutation --again
    pytest --deep --cov=specref --cov-context=test
    python -m proofs_tests.mutation --coverage .coverage

Each mutant is one small change of one file, made in a copy of the tree; the tests of its area run
there. Neither published tool does that here (September 2026). mutmut 3.8 mutates only functions
and methods without decorator, so no module constant, table or property; it chooses tests by a
recorded run of the whole suite, and draws no sample. cosmic-ray 8.7 writes its mutants into the
checkout, has one command for all modules, deletes no statement, and draws no sample.
"""

import argparse
import ast
import difflib
import itertools
import json
import math
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proofs_tests.covering import Covering
from specref.statistics.campaign.acceptance import binomial_interval

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "mutants.json"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "*.png")
GIB, LIMIT = 2**30, 900.0
FAILED, BROKEN = "failed: ", "cannot be collected: "
# Mutants that never stop adding to a list end at this limit; torch alone maps several GiB.
START = f"""import resource, sys, pytest

class Tell:
    def pytest_configure(self, config):
        config.option.deep = True

    def pytest_runtest_logreport(self, report):
        if report.failed:
            print("\\n{FAILED}" + report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            print("\\n{BROKEN}" + report.nodeid)

resource.setrlimit(resource.RLIMIT_DATA, ({12 * GIB}, {12 * GIB}))
sys.exit(pytest.main(sys.argv[1:], plugins=[Tell()]))"""


@dataclass(frozen=True)
class Area:
    """Code, the tests that are to notice its mutants, and the share that they should notice.

    Attributes
    ----------
    code : tuple of str
        Files and folders; a file belongs to the area that names it most closely.
    tests : tuple of str
        Patterns of the ends of paths. Those of them that import the module of a mutant run
        first, then those that write its name, then the others.
    further : tuple of str
        Patterns of tests that run if it survives these, too; and then `EVERYWHERE`.
    slow : tuple of str
        Patterns of those of `tests` that run only for the modules that they import.
    first : tuple of str
        Patterns of tests that run before others, if they run the line of a mutant: quick ones.
    """

    code: tuple[str, ...]
    tests: tuple[str, ...]
    target: float
    further: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


EVERYWHERE = ("/test_api.py", "/test_defaults.py")
KIT = ("adapters", "conformance", "contracts", "probing", "process", "vectors")
AREAS: dict[str, Area] = {
    "chance": Area(("specref/chance.py",), ("/test_chance.py", "/proofs/*"), 0.98),
    "distributions": Area(
        ("specref/distributions.py",),
        ("/test_distributions.py", "/test_models.py", "/proofs/*"),
        0.98,
    ),
    "algorithms": Area(
        ("specref/algorithms",),
        ("/algorithms/*", "/proofs/*"),
        0.98,
        ("/theory/*", "/claims/*", "/verification/test_verification.py"),
    ),
    "theory": Area(("specref/theory",), ("/theory/*", "/algorithms/*", "/speed/*"), 0.98),
    "proofs": Area(
        ("specref/proofs", "specref/laws.py", "specref/rules.py", "specref/verification"),
        (
            "/proofs/*",
            "/algorithms/*",
            "/theory/*",
            "/verification/*",
            "/test_laws.py",
            "/test_rules.py",
        ),
        0.98,
        slow=("/verification/test_kill_matrix.py", "/verification/test_trigger_matrix.py"),
        first=("*::test_proofs_take_what_is_on_record*",),
    ),
    "statistics": Area(
        ("specref/statistics",),
        ("/statistics/*", "/theory/test_acceptance.py"),
        0.95,
        ("/conformance/checks/test_checks.py", "/conformance/checks/test_rounded.py"),
    ),
    "kit": Area(
        tuple(f"specref/{area}" for area in KIT),
        ("/examples/*", *(f"/{area}/*" for area in KIT)),
        0.92,
        ("/verification/test_kill_matrix.py", "/cli/*", "/pytest_plugin/*"),
        first=("*/test_recorded.py::*",),
    ),
    "torch_backend": Area(
        ("specref/torch_backend",),
        ("/torch_backend/*",),
        0.95,
        ("/gpu_tests/test_*", "/real_vocabularies/*"),
    ),
}


class Mutant(NamedTuple):
    """One change: bytes `start` to `end` of a file become `text`."""

    path: str
    line: int
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


ARITHMETIC: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
    ast.Mod: ast.Mult(),
    ast.Pow: ast.Mult(),
    ast.BitAnd: ast.BitOr(),
    ast.BitOr: ast.BitAnd(),
    ast.MatMult: ast.Mult(),
}
OPERATORS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)
# What a message says, and what types say, is not what the code does.
SILENT = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)


def mutants(source: str, path: str) -> list[Mutant]:
    """All mutants of a file, in its order."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, text in _changes(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        found.append(Mutant(path, node.lineno, start, end, text))
    return sorted(set(found), key=lambda one: (one.start, one.end, one.text))


def _changes(node: ast.AST) -> Iterator[tuple[Any, str]]:
    """Each node that has mutants, with what is to stand in its place."""
    yield from _changes_of(node)
    if isinstance(node, SILENT):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child)


def _changes_of(node: ast.AST) -> Iterator[tuple[Any, str]]:
    match node:
        case ast.Compare(left, ops, comparators):
            for i, op in enumerate(ops):
                others = [*ops[:i], OPERATORS[type(op)], *ops[i + 1 :]]
                yield node, _text(ast.Compare(left, others, comparators))
        case ast.BoolOp(op, values):
            yield (
                node,
                _text(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)),
            )
        case ast.BinOp(left, op, right) if type(op) in ARITHMETIC and not _is_text(left, right):
            yield node, _text(ast.BinOp(left, ARITHMETIC[type(op)], right))
        case ast.AugAssign(target, op, value) if type(op) in ARITHMETIC:
            yield node, ast.unparse(ast.AugAssign(target, ARITHMETIC[type(op)], value))
            yield node, "pass"
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield node, _text(operand)
        case ast.Constant(bool() as value):
            yield node, str(not value)
        case ast.Constant(int() | float() as value):
            yield from ((node, repr(value + step)) for step in (1, -1))
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield test, f"(not {_text(test)})"
            if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], LEAVES):
                yield node, "pass"
        case ast.Return(value) if value is not None and not _is_none(value):
            yield node, "return None"
        case ast.Raise():
            yield node, "pass"
        case ast.Expr(value) if not isinstance(value, ast.Constant):
            yield node, "pass"


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(*nodes: ast.expr) -> bool:
    return any(
        isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for node in nodes
    )


@dataclass
class Result:
    """What became of the mutants of an area.

    Attributes
    ----------
    possible, sampled : int
        Mutants that there are, and those that were drawn; what has run of them is in `killed`,
        `timed_out`, `survivors` and `equivalent`.
    timed_out, survivors, equivalent : list
        {at, diff}, the last with the reason why no test can notice. One that timed out counts as
        noticed; it may be as right as the code, and slower. A survivor may have `since`: what
        became of it after the draw, which leaves the score as it was drawn. Only one that is
        found to be equivalent, with a reason, counts no more.
    quick : bool
        Not all tests were run: only those that import the file of a mutant, or write its name,
        or as many as there was time for. What survived these may be noticed by others, and the
        score is a lower bound.
    """

    target: float
    seed: int
    possible: int
    sampled: int
    killed: int = 0
    timed_out: list[dict[str, str]] = field(default_factory=list)
    survivors: list[dict[str, str]] = field(default_factory=list)
    equivalent: list[dict[str, str]] = field(default_factory=list)
    quick: bool = False

    @property
    def judged(self) -> int:
        """How many have run that a test could notice."""
        return self.killed + len(self.timed_out) + len(self.survivors)

    @property
    def score(self) -> float:
        """The share of those that was noticed; 1 of none."""
        return 1 - len(self.survivors) / self.judged if self.judged else 1.0


class Tree:
    """A copy of the tree, in which one mutant at a time is run."""

    def __init__(self, root: Path, copy: Path) -> None:
        self.copy = copy
        self.process: subprocess.Popen[bytes] | None = None
        shutil.copytree(root, copy, ignore=IGNORED)

    @contextmanager
    def with_mutant(self, mutant: Mutant) -> Iterator[None]:
        """Apply, and take back."""
        file = self.copy / mutant.path
        source = file.read_bytes()
        try:
            self._write(file, mutant.applied(source))
            yield
        finally:
            self._write(file, source)

    def run(self, tests: Sequence[str], limit: float) -> tuple[int | None, str]:
        """The exit code of pytest, None after `limit` seconds; and what it printed."""
        command = [sys.executable, "-c", START, "-x", "-q", "-p", "no:cacheprovider", *tests]
        with tempfile.TemporaryFile() as printed:
            self.process = subprocess.Popen(
                command,
                cwd=self.copy,
                env={**os.environ, "PYTHONPATH": str(self.copy)},
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code: int | None = self.process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            self.stop()
            printed.seek(0)
            return code, printed.read().decode(errors="replace")

    def stop(self) -> None:
        """End the tests that run, and what they started."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _write(self, file: Path, source: bytes) -> None:
        # A cached module is taken for current if second and size agree.
        for cached in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            cached.unlink()
        file.write_bytes(source)


def files_of(name: str, areas: Mapping[str, Area], root: Path) -> list[str]:
    """The files of an area that belong to no narrower one."""

    def owner(path: str) -> str:
        fitting = [
            (len(part), area)
            for area, one in areas.items()
            for part in one.code
            if path == part or path.startswith(f"{part}/")
        ]
        return max(fitting)[1]

    found = {
        file.relative_to(root).as_posix()
        for part in areas[name].code
        for file in ([root / part] if part.endswith(".py") else (root / part).rglob("*.py"))
    }
    return sorted(path for path in found if owner(path) == name)


def tests_of(area: Area, path: str, root: Path, quick: bool) -> list[list[str]]:
    """Rounds of tests: a mutant that survives one is put to the next.

    The doctests of its file and the tests of its area that import it, those of its name first;
    those that write its name in the folder that mirrors its package; with `quick` that is all.
    Then the others of its area, those of that folder first, and further ones.
    """
    known = sorted(root.rglob("test_*.py"))
    files, further, slow = (
        [one for one in known if any(fnmatch(one.as_posix(), f"*{end}") for end in patterns)]
        for patterns in (area.tests, (*area.further, *EVERYWHERE), area.slow)
    )
    module = path.removesuffix(".py").replace("/", ".")
    stem = module.rsplit(".", 1)[1]
    names = {stem, *_defined((root / path).read_text())}
    mine = [file for file in files if _imports(file.read_text(), module, names)]
    mine.sort(key=lambda file: file.name != f"test_{stem}.py")
    others = [file for file in files if file not in (*mine, *slow)]
    named = re.compile(rf"\b{re.escape(stem)}\b")
    folder = f"/{Path(path).parts[1]}/"
    near = [
        file for file in others if folder in file.as_posix() and named.search(file.read_text())
    ]
    others = [file for file in others if file not in near]
    others.sort(key=lambda file: folder not in file.as_posix())
    wide = [others, [file for file in further if file not in files]]
    rounds = [mine, near, *([] if quick else wide)]
    first, *rest = [[one.relative_to(root).as_posix() for one in round_] for round_ in rounds]
    return [[path, *first], *filter(None, rest)]


def _chosen(
    area: Area, mutant: Mutant, root: Path, covering: Covering | None, quick: bool = False
) -> list[list[str]]:
    if covering:
        return covering_tests(area, mutant, root, covering, quick=quick)
    return tests_of(area, mutant.path, root, quick)


def covering_tests(
    area: Area,
    mutant: Mutant,
    root: Path,
    covering: Covering,
    limit: int = 50,
    quick: bool = False,
) -> list[list[str]]:
    """Rounds of tests: the doctests of its file with `EVERYWHERE`, then those that run its line.

    Of these there are at most `limit` in a round, but for those of one file. Then, for what
    coverage does not see: the tests that import it or write its name in the folder that mirrors
    its package, and further ones, but with `quick`.
    """
    everywhere = [
        one.relative_to(root).as_posix()
        for one in sorted(root.rglob("test_*.py"))
        if one.as_posix().endswith(EVERYWHERE)
    ]
    rounds: list[list[str]] = [[mutant.path, *everywhere], []]
    tests = covering.tests(mutant.path, mutant.line)
    tests.sort(key=lambda test: not any(fnmatch(test, pattern) for pattern in area.first))
    for _, of_file in itertools.groupby(tests, lambda test: test.partition("::")[0]):
        several = list(of_file)
        if rounds[-1] and len(rounds[-1]) + len(several) > limit:
            rounds.append([])
        rounds[-1] += several
    (_, *mine), *near = tests_of(area, mutant.path, root, quick=True)
    further = (
        [] if quick else tests_of(replace(area, tests=()), mutant.path, root, quick=False)[1:]
    )
    return [*filter(None, [*rounds, mine]), *near, *further]


def _defined(source: str) -> Iterator[str]:
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                yield name


def _imports(test: str, module: str, names: set[str]) -> bool:
    """Whether a test imports a module, or from a package above it a name that is the module's."""
    for node in ast.walk(ast.parse(test)):
        match node:
            case ast.ImportFrom(module=str() as origin, names=given):
                inside = module.startswith(f"{origin}.")
                if origin == module or (inside and any(one.name in names for one in given)):
                    return True
            case ast.Import(names=given) if any(one.name == module for one in given):
                return True
    return False


def sampled(files: Sequence[str], root: Path, size: int, seed: str) -> tuple[int, list[Mutant]]:
    """How many mutants there are, and some of them."""
    found = [one for path in files for one in mutants((root / path).read_text(), path)]
    return len(found), random.Random(seed).sample(found, min(size, len(found)))


def described(mutant: Mutant, root: Path) -> dict[str, str]:
    """Where a mutant is, and what it changes."""
    source = (root / mutant.path).read_bytes()
    sides = [text.decode().splitlines() for text in (source, mutant.applied(source))]
    lines = list(difflib.unified_diff(sides[0], sides[1], lineterm="", n=0))[2:]
    diff = "\n".join(line for line in lines if not line.startswith("@@"))
    return {"at": f"{mutant.path}:{mutant.line}", "diff": diff}


def key(found: Mapping[str, str]) -> str:
    """The name of a mutant in the list of equivalent ones: without its line."""
    path = found["at"].rsplit(":", 1)[0]
    return f"{path}: " + " ".join(found["diff"].split())


def run(
    names: Sequence[str],
    size: int,
    seed: int,
    *,
    areas: Mapping[str, Area] = AREAS,
    root: Path = ROOT,
    output: Path = OUTPUT,
    equivalent: Mapping[str, str] | None = None,
    workers: int = 1,
    limit: float = LIMIT,
    enough: float = math.inf,
    quick: bool = False,
    covering: Covering | None = None,
    results: dict[str, Result] | None = None,
) -> dict[str, Result]:
    """Run a sample of the mutants of some areas; `output` is up to date after each of them.

    Parameters
    ----------
    names : sequence of str
        The areas. Others keep what `output` has of them.
    size : int
        Mutants of an area.
    equivalent : mapping, optional
        {key: reason}: mutants that are not run.
    limit : float
        Seconds for a round of the tests of a mutant.
    enough : float
        Seconds after which no more rounds are run against a mutant: it has survived. If given,
        tests that do not name its file, or are not known to run its line, are left out.
    quick : bool
        Run only the tests that import the file of a mutant, or write its name.
    covering : Covering, optional
        Run the tests that are known to run the line of a mutant.
    results : dict, optional
        Is filled and returned; after an interrupt it has what was found until then.

    Raises
    ------
    RuntimeError
        The test that a mutant fails fails without it, too, or its tests take longer than `limit`
        without it.
    """
    results = {} if results is None else results
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        root = Tree(root, Path(folder) / "root").copy  # the checkout may change meanwhile
        trees = [Tree(root, Path(folder) / str(index)) for index in range(workers)]
        runner = Runner(trees, limit, enough)
        few = quick or enough < math.inf
        try:
            for name in names:
                files = files_of(name, areas, root)
                possible, drawn = sampled(files, root, size, f"{seed}/{name}")
                result = Result(areas[name].target, seed, possible, len(drawn), quick=few)
                results[name] = result
                running = {}
                for one in drawn:
                    found = described(one, root)
                    if reason := (equivalent or {}).get(key(found)):
                        result.equivalent.append({**found, "reason": reason})
                    else:
                        tests = _chosen(areas[name], one, root, covering, few)
                        running[pool.submit(runner.code, one, tests)] = found
                for done in as_completed(running):
                    _count(result, done.result(), running[done])
                    _save(output, results)
        except BaseException:
            runner.stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            for tree in trees:
                tree.stop()
            raise
    return results


def again(
    names: Sequence[str],
    *,
    areas: Mapping[str, Area] = AREAS,
    root: Path = ROOT,
    output: Path = OUTPUT,
    equivalent: Mapping[str, str] | None = None,
    limit: float = LIMIT,
    covering: Covering | None = None,
) -> dict[str, Result]:
    """Put the survivors in `output` to the tests of today, and note `since` what came of each.

    Those that are listed by now as mutants that no test can notice count no more.
    """
    known, reasons = json.loads(output.read_text()), equivalent or {}
    results = {name: Result(**known[name]) for name in names if name in known}
    with tempfile.TemporaryDirectory() as folder:
        root = Tree(root, Path(folder) / "root").copy
        runner = Runner([Tree(root, Path(folder) / "0")], limit)
        for name, result in results.items():
            listed = [one for one in result.survivors if key(one) in reasons]
            result.equivalent += [
                {"at": one["at"], "diff": one["diff"], "reason": reasons[key(one)]}
                for one in listed
            ]
            result.survivors = [one for one in result.survivors if one not in listed]
            _save(output, results)
            for found in result.survivors:
                path = found["at"].rsplit(":", 1)[0]
                source = (root / path).read_text() if (root / path).exists() else ""
                same = [one for one in mutants(source, path) if alike(one, found, root)]
                if not same:
                    found["since"] = "the code has changed"
                else:
                    survives = any(
                        runner.code(one, _chosen(areas[name], one, root, covering)) == 0
                        for one in same
                    )
                    found["since"] = "survives" if survives else "noticed"
                _save(output, results)
    return results


def alike(mutant: Mutant, found: Mapping[str, str], root: Path) -> bool:
    """Whether a mutant is the one that was found, perhaps on another line."""
    return key(described(mutant, root)) == key(found)


class Runner:
    """Trees in which mutants are tried; what fails is tried again without the mutant."""

    def __init__(self, trees: Sequence[Tree], limit: float, enough: float = math.inf) -> None:
        self.limit, self.enough, self.stopped = limit, enough, False
        self._free: queue.SimpleQueue[Tree] = queue.SimpleQueue()
        self._clean: set[tuple[str, ...]] = set()
        for tree in trees:
            self._free.put(tree)

    def code(self, mutant: Mutant, rounds: Sequence[Sequence[str]]) -> int | None:
        """The exit code of the first tests that notice a mutant, None if they take too long."""
        tree = self._free.get()
        begun = time.monotonic()
        try:
            for tests in rounds:
                if time.monotonic() - begun > self.enough:
                    break
                with tree.with_mutant(mutant):
                    code, printed = tree.run(tests, self.limit)
                if self.stopped:
                    raise CancelledError
                if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                    self._check(tree, tuple(tests) if code is None else _failing(printed, tests))
                    return code
            return 0
        finally:
            self._free.put(tree)

    def _check(self, tree: Tree, tests: tuple[str, ...]) -> None:
        if tests not in self._clean:
            code, printed = tree.run(tests, self.limit)
            if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                why = f"end with {code}" if code else f"take longer than {self.limit:g} s"
                raise RuntimeError(
                    f"{' '.join(tests)}: {why} without a mutant\n{printed[-2_000:]}"
                )
            self._clean.add(tests)


def _failing(printed: str, tests: Sequence[str]) -> tuple[str, ...]:
    """What to run to see that a failure is not there without the mutant."""
    lines = printed.splitlines()
    failed = [line.removeprefix(FAILED) for line in lines if line.startswith(FAILED)]
    broken = [line.removeprefix(BROKEN) for line in lines if line.startswith(BROKEN)]
    return tuple(failed[:1]) or ("--collect-only", *(broken or tests))


def _count(result: Result, code: int | None, found: dict[str, str]) -> None:
    if code is None:
        result.timed_out.append(found)
    elif code == 0:
        result.survivors.append(found)
    else:
        result.killed += 1


def _save(output: Path, results: Mapping[str, Result]) -> None:
    known = json.loads(output.read_text()) if output.exists() else {}
    whole = {**known, **{name: asdict(result) for name, result in results.items()}}
    draft = output.with_suffix(".tmp")
    draft.write_text(json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    draft.replace(output)


def table(results: Mapping[str, Result]) -> str:
    """A line for each area; the interval is that of the binomial distribution, at 95 %."""
    lines = [f"{'area':<14} mutants  run  killed  timed out  survived  equivalent   score"]
    for name, one in results.items():
        noticed = one.killed + len(one.timed_out)
        low = binomial_interval(noticed, one.judged, 0.05)[0] if one.judged else 0.0
        met = "met" if one.score >= one.target else "missed"
        met = met if one.judged else "not run"
        lines.append(
            f"{name:<14} {one.possible:7,} {one.judged:4} {one.killed:7} {len(one.timed_out):10} "
            f"{len(one.survivors):9} {len(one.equivalent):11} {one.score:7.1%} "
            f"(at least {low:.0%}), target {one.target:.0%}: {met}{', quick' * one.quick}"
        )
    return "\n".join(lines)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--areas", nargs="+", choices=AREAS, default=list(AREAS))
    parser.add_argument("--sample", type=int, default=30, help="mutants of each area")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a round of tests")
    parser.add_argument(
        "--enough", type=float, default=math.inf, help="seconds of tests after which it survives"
    )
    parser.add_argument("--quick", action="store_true", help="only tests that name the file")
    parser.add_argument("--coverage", type=Path, help="the tests that ran a line, as recorded")
    parser.add_argument("--again", action="store_true", help="the survivors of the last draws")
    given = parser.parse_args()
    equivalent = json.loads(EQUIVALENT.read_text())
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        signal.signal(interrupt, signal.default_int_handler)
    covering = Covering(given.coverage, ROOT) if given.coverage else None
    results: dict[str, Result] = {}
    if given.again:
        options = {"equivalent": equivalent, "limit": given.limit, "covering": covering}
        for result in again(given.areas, **options).values():
            for found in result.survivors:
                print(f"{found['at']}: {found['since']}")
        return
    try:
        run(
            given.areas,
            given.sample,
            given.seed,
            equivalent=equivalent,
            workers=given.workers,
            limit=given.limit,
            enough=given.enough,
            quick=given.quick,
            covering=covering,
            results=results,
        )
    except KeyboardInterrupt:
        print("interrupted; what was found until then:")
    print(table(results))
    for result in results.values():
        for found in (*result.survivors, *result.timed_out):
            late = " timed out" * (found in result.timed_out)
            print(f"\n{found['at']}{late}\n{found['diff']}")


if __name__ == "__main__":
    main()
