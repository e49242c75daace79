"""The executable specification of lossless speculative decoding.

What is public is listed in `__init__.pyi`, and imported when it is asked for: the algorithms need
NumPy alone, verdicts SciPy.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    alias.asname or alias.name: (str(line.module), alias.name)
    for line in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(line, ast.ImportFrom)
    for alias in line.names
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'specref' has no attribute {name!r}")
    module, own = _PUBLIC[name]
    return getattr(import_module(module), own)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
