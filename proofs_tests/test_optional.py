"""Versions and remedies of optional parts."""

import sys

import pytest
from click.testing import CliRunner

from specref.cli import main
from specref.optional import Package, numbers


@pytest.mark.parametrize(
    ("older", "newer"),
    [("8.1.7", "8.2"), ("9.9", "10"), ("2.13.0+cpu", "2.13.1"), ("8.2", "8.2.0")],
)
def test_versions_are_compared_by_number(older, newer):
    assert numbers(older) < numbers(newer)


def test_a_version_that_is_none_is_too_old(monkeypatch):
    monkeypatch.setattr("specref.optional.version", lambda name: "unknown")
    assert Package("numpy", "1").state == "too old"


def test_a_command_that_lacks_a_package_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    for name in ("spec.jsonl", "plain.jsonl"):
        (tmp_path / name).write_text('{"text": "a"}\n')
    files = [str(tmp_path / name) for name in ("spec.jsonl", "plain.jsonl")]
    told = CliRunner().invoke(main, ["compare", *files, "--tokenizer", str(tmp_path)])
    assert told.exit_code == 2
    assert "transformers" in told.output
    assert told.output.endswith(": pip install torch transformers\n")
