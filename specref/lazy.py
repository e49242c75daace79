"""Packages whose public names are imported when they are asked for.

What is public is listed in ``__init__.pyi`` beside ``__init__.py``: names of modules, and by
relative imports (``from .text import slem``) modules of the package.
"""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def public_names(file: str, package: str = "") -> tuple[list[str], Callable[[str], Any]]:
    """The public names of a package, and its ``__getattr__``.

    * `file`: Its ``__init__.py``.
    * `package`: Its name, where it lists modules.
    """
    listed = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    public = {
        alias.asname or alias.name: (line.module or "", alias.name, line.level > 0)
        for line in ast.parse(listed).body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }

    def get(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {file!r} has no attribute {name!r}")
        module, own, is_module = public[name]
        if is_module:
            return import_module(".".join(part for part in (package, module, own) if part))
        return getattr(import_module(module), own)

    return list(public), get
