"""Reports as JSON: exact numbers as strings "a/b", floats as numbers (infinity as "inf")."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

STDOUT = "-"


def as_json(report: Any, **extra: Any) -> str:
    """A dataclass as indented JSON, with properties or other fields passed by name.

    Examples
    --------
    >>> print(as_json({"total_variation": Fraction(3, 8)}))
    {
      "total_variation": "3/8"
    }
    """
    return json.dumps(_plain(report) | _plain(extra), indent=2)


def write_json(destination: str, text: str) -> None:
    """Write to a file, all or nothing, or to standard output for ``-``."""
    if destination == STDOUT:
        click.echo(text)
        return
    path = Path(destination).resolve()
    if is_special(Path(destination)):
        Path(destination).write_text(text + "\n", encoding="utf-8")
        return
    unfinished = _unfinished(path)
    try:
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def check_destination(destination: str) -> None:
    """Raise `ValueError` now if `write_json` could not write there later."""
    if destination == STDOUT:
        return
    path = Path(destination).resolve()
    if path.is_dir():
        raise ValueError(f"cannot write {destination}: it is a directory")
    if is_special(Path(destination)):
        return
    try:
        _unfinished(path).touch()
        _unfinished(path).unlink()
    except OSError as error:
        raise ValueError(f"cannot write {destination}: {error.strerror}") from None
    if path.exists() and not os.access(path, os.W_OK):
        raise ValueError(f"cannot write {destination}: it is not writable")


def check_folder(folder: str) -> None:
    """Raise `ValueError` now if files could not be written into a folder, made if need be."""
    path = Path(folder).resolve()
    there = next(one for one in (path, *path.parents) if one.exists())
    if not there.is_dir():
        raise ValueError(f"cannot write into {folder}: expected a folder, and {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"cannot write into {folder}: {there} is not writable")


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def is_special(path: Path) -> bool:
    """Whether it is a pipe or a device, such as /dev/stdout, which a file must not replace."""
    return path.exists() and not path.is_file()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Fraction) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
