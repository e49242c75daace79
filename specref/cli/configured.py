"""Defaults of options from ``[tool.specref]`` in pyproject.toml."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from specref.suggestions import did_you_mean

FILE, TABLE = "pyproject.toml", "tool.specref"


class Configured(click.Command):
    """A command whose options have defaults in pyproject.toml, here or in a folder above.

    Keys are the long names of options and arguments, and former names. What is on the command
    line comes first. Files that it names are those of the current folder.
    """

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        extra.setdefault("default_map", configured(self.params, Path.cwd()))
        return super().make_context(info_name, args, parent, **extra)


def configured(parameters: list[click.Parameter], folder: Path) -> Mapping[str, Any]:
    """{parameter: default} from the nearest pyproject.toml that has the table.

    * raises `ValueError`: The file cannot be read, or has a key that is no option.
    """
    for place in (folder, *folder.parents):
        file = place / FILE
        if not file.is_file():
            continue
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{file}: {error}") from None
        table = found.get("tool", {}).get("specref")
        if table is not None:
            return _defaults(table, parameters, f"{file} [{TABLE}]")
    return {}


def _defaults(table: Any, parameters: list[click.Parameter], where: str) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise ValueError(f"{where}: expected a table")
    known = {_word(name): one for one in parameters for name in (*one.opts, str(one.name))}
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        one = known.get(_word(key))
        if one is None:
            hint = did_you_mean(key, known) or "; expected a long option of specref check"
            raise ValueError(f"{where}: unknown key {key!r}{hint}")
        defaults[str(one.name)] = _values(value) if one.multiple else value
    return defaults


def _values(value: Any) -> list[Any]:
    """The values of an option that may be repeated; a table is NAME=VALUE of each."""
    if isinstance(value, dict):
        return [
            f"{name}={str(one).lower() if isinstance(one, bool) else one}"
            for name, one in value.items()
        ]
    return value if isinstance(value, list) else [value]


def _word(name: str) -> str:
    return name.lstrip("-").replace("_", "-")
