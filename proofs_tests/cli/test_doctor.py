"""The command `specref doctor`: what is missing is said, with the command that installs it."""

import json
from importlib.metadata import PackageNotFoundError, version

import pytest

from proofs_tests.helpers.command import assert_fits, run


@pytest.fixture
def without(monkeypatch):
    """Pretend that packages are not installed, or have another version."""

    def pretend(**found):
        def told(name):
            if found.get(name, "") is None:
                raise PackageNotFoundError(name)
            return found.get(name) or version(name)

        monkeypatch.setattr("specref.optional.version", told)

    return pretend


def doctor(*arguments):
    return run("doctor", *arguments)


def test_what_it_needs_is_installed_here():
    ran = doctor("--json", "-")
    assert_fits("doctor", ran.stdout)
    found = json.loads(ran.stdout)
    assert ran.exit_code == 0
    assert found["complete"]
    assert {one["name"] for one in found["core"]} >= {"numpy", "click"}
    assert found["parts"]["pytest"]["complete"]


def test_an_optional_part_may_be_missing(without):
    without(hypothesis=None)
    ran = doctor()
    assert ran.exit_code == 0
    assert "hypothesis" in ran.output
    assert "(missing)" in ran.output
    assert "pip install hypothesis" in ran.output


@pytest.mark.parametrize(("found", "state"), [(None, "missing"), ("8.1.7", "too old")])
def test_a_package_that_is_needed_may_not(without, found, state):
    without(click=found)
    ran = doctor()
    assert ran.exit_code == 1
    assert f"({state})" in ran.output
    assert "specref needs more: pip install 'click>=8.2'" in ran.output


def test_lines_fit_80_columns():
    assert max(map(len, doctor().output.splitlines())) <= 80
