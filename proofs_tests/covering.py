"""Which tests run a line, as `pytest --deep --cov=specref --cov-context=test` recorded it.

A line in the body of a function is covered by the tests that ran it. What runs on import (a
constant, a table, a default, a function that makes a table) is covered by the tests of the
functions that use it: by name, and through other constants. What a test runs in a process of its
own is not recorded.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from coverage import CoverageData

PHASE = re.compile(r"\|(?:run|setup|teardown)$")
# A header or a statement without others in it; a body is asked line by line.
PARTS = ("body", "orelse", "finalbody", "handlers", "cases")


class Covering:
    """The tests that run lines of a tree.

    Parameters
    ----------
    recorded : Path
        What coverage wrote; the paths in it are those of `root`.

    Raises
    ------
    ValueError
        It has no file of `root`, or one that has changed since.
    """

    def __init__(self, recorded: Path, root: Path) -> None:
        self.root = root
        self._data = CoverageData(str(recorded))
        self._data.read()
        if not any(Path(one).is_relative_to(root) for one in self._data.measured_files()):
            raise ValueError(f"recorded = {recorded}: it has no line of a file in {root}")
        written = recorded.stat().st_mtime
        self._lines: dict[str, dict[int, list[str]]] = {}
        self._uses: dict[str, set[tuple[str, int]]] = defaultdict(set)
        for file in sorted((root / "specref").rglob("*.py")):
            path = file.relative_to(root).as_posix()
            if file.stat().st_mtime > written:
                raise ValueError(f"recorded = {recorded}: {path} has changed since; record again")
            for name, line in _uses(ast.parse(file.read_text())):
                self._uses[name].add((path, line))

    def tests(self, path: str, line: int) -> list[str]:
        """Those named after the file first, then those of its folder, then others."""
        found = self._of(path, line, set())
        stem, folder = Path(path).stem, f"/{Path(path).parts[1]}/"

        def near(test: str) -> tuple[bool, bool, str]:
            file = test.partition("::")[0]
            return Path(file).stem != f"test_{stem}", folder not in file, test

        return sorted(found, key=near)

    def _of(self, path: str, line: int, seen: set[str]) -> set[str]:
        tree = ast.parse((self.root / path).read_text())
        inner, names = _around(tree, line)
        found = {test for one in inner for test in self._ran(path, one)}
        if found or (inner and not self._imported(path, inner)):
            return found
        for name in names - seen:
            seen.add(name)
            for where in self._uses[name]:
                found |= self._of(*where, seen)
        return found

    def _ran(self, path: str, line: int) -> set[str]:
        contexts = self._contexts(path).get(line, ())
        return {name for context in contexts if (name := PHASE.sub("", context))}

    def _imported(self, path: str, lines: set[int]) -> bool:
        return any("" in self._contexts(path).get(line, ()) for line in lines)

    def _contexts(self, path: str) -> dict[int, list[str]]:
        if path not in self._lines:
            self._lines[path] = self._data.contexts_by_lineno(str(self.root / path))
        return self._lines[path]


def _around(tree: ast.Module, line: int) -> tuple[set[int], set[str]]:
    """In a function: the lines that run when this one does, and its name. Else: what it names."""
    holders = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and node.end_lineno is not None
        and node.lineno <= line <= node.end_lineno
    ]
    functions = [one for one in holders if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    if functions:
        function = functions[-1]
        body = {one for part in function.body for one in _lines(part)}
        if line < function.body[0].lineno:  # a default: any line of the body depends on it
            return body, {function.name}
        statement = max(holders, key=lambda node: node.lineno)
        return set(_header(statement)), {function.name}
    names: set[str] = set()
    for node in holders:
        match node:
            case ast.ClassDef(name) if line < node.body[0].lineno:
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {name for target in targets for name in _names(target)}
            case ast.AnnAssign(target=ast.Name(name)) | ast.AugAssign(target=ast.Name(name)):
                names.add(name)
    return set(), names


def _names(target: ast.expr) -> Iterator[str]:
    return (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _header(statement: ast.stmt) -> range:
    bodies = [getattr(statement, part) for part in PARTS if getattr(statement, part, None)]
    assert statement.end_lineno is not None
    if not bodies:
        return range(statement.lineno, statement.end_lineno + 1)
    first = bodies[0][0]
    first_line = first.pattern.lineno if isinstance(first, ast.match_case) else first.lineno
    return range(statement.lineno, max(statement.lineno + 1, first_line))


def _lines(node: ast.stmt) -> range:
    assert node.end_lineno is not None
    return range(node.lineno, node.end_lineno + 1)


def _uses(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                yield name, node.lineno
