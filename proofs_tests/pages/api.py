"""The names that are public, with the first line of their docstrings, for docs/api.md."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import specref
from proofs_tests.pages.console_blocks import BLOCK, PAGES

MODULES = (
    "specref.algorithms",
    "specref.chance",
    "specref.models",
    "specref.contrib.checkpoints",
    "specref.strategies",
    "specref.theory",
    "specref.probing",
    "specref.proofs",
    "specref.statistics",
    "specref.tables",
    "specref.zoo",
    "specref.process",
    "specref.torch_backend",
)


def imports(page: Path) -> Iterator[tuple[str, str]]:
    """What the Python blocks of a page import from specref: (module, name)."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["language"] == "python":
            for node in ast.walk(ast.parse(block["text"])):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("specref"):
                    yield from ((str(node.module), one.name) for one in node.names)


def own_names(module: ModuleType) -> list[str]:
    """The names of a module's `__all__`, or the public functions and classes it defines."""
    listed: list[str] | None = getattr(module, "__all__", None)
    return sorted(listed or (
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ))  # fmt: skip


def line(name: str, value: Any) -> str:
    """A row of a table."""
    if inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value):
        said = (inspect.getdoc(value) or "").partition("\n\n")[0]
        if defaults := ", ".join(_defaults(value)):
            said += f" Defaults: `{defaults}`."
    else:
        said = told(value)
    said = re.sub(r"\s+", " ", said).replace("|", "\\|")
    return f"| `{name}` | {said} |"


def told(value: Any) -> str:
    """What is said of a constant: the first keys or entries of a table, or its value.

    Not how many there are: a page that says so changes with each rule and mutant that is added.
    """
    if isinstance(value, Mapping | tuple):
        return ", ".join([f"`{one}`" for one in list(value)[:5]] + ["…"] * (len(value) > 5))
    return f"`{value}`"


def _defaults(value: Any) -> Iterator[str]:
    """The parameters of a function or class that have a default of a plain type."""
    if inspect.isclass(value) and issubclass(value, Enum):
        return
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):  # a module, an exception, a protocol
        return
    for name, parameter in parameters.items():
        if isinstance(parameter.default, bool | int | float | str | tuple | None):
            yield f"{name}={parameter.default!r}"


def table(title: str, names: dict[str, Any]) -> str:
    """A section."""
    rows = "\n".join(line(name, value) for name, value in sorted(names.items()))
    return f"## {title}\n\n| name | what it is |\n|---|---|\n{rows}\n"


def tables() -> str:
    """A table for each public module."""
    top = {name: getattr(specref, name) for name in specref.__all__}
    sections = [table("`specref`", top)]
    listed = {("specref", name) for name in top}
    for path in MODULES:
        module = import_module(path)
        names = {name: getattr(module, name) for name in own_names(module) if name not in top}
        listed |= {(path, name) for name in names}
        sections.append(table(f"`{path}`", names))
    used = {one for source in PAGES for one in imports(source)} - listed
    others = {
        f"{path}.{name}": getattr(import_module(path), name)
        for path, name in used
        if name not in top
    }
    sections.append(table("Used by other pages", others))
    return "\n".join(sections)
