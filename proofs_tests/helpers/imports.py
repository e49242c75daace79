"""What a file imports, wherever in it."""

import ast
from collections.abc import Iterator
from pathlib import Path


def imports(path: Path) -> Iterator[str]:
    """The modules that a file names, and what it takes from them, with their dotted names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
