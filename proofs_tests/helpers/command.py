"""The command line, called in this process, and its records against their schemas."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from specref.cli import main
from specref.report.schema import read_schema


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def problems(kind: str, record: Any) -> list[str]:
    """What of a record its schema refuses: where it is, and why."""
    jsonschema = pytest.importorskip(
        "jsonschema", reason="not_run (jsonschema is not installed: pip install '.[test]')"
    )
    found = jsonschema.Draft202012Validator(read_schema(kind)).iter_errors(record)
    return [f"{error.json_path}: {error.message}" for error in map(deepest, found)]


def deepest(error: Any) -> Any:
    """Of an error about several forms, the one of the form that comes closest."""
    while error.context:
        error = max(error.context, key=lambda one: len(one.absolute_path))
    return error


def assert_fits(kind: str, text: str) -> None:
    """The JSON that a command wrote has the form that its schema says."""
    assert problems(kind, json.loads(text)) == []


def without_seconds(record: Any) -> Any:
    """The record without its durations, at whatever depth they are."""
    if isinstance(record, dict):
        return {name: without_seconds(one) for name, one in record.items() if name != "seconds"}
    return [*map(without_seconds, record)] if isinstance(record, list) else record
