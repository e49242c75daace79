"""What `make test` leaves to `make deep`, and that files of tests leave nothing behind."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import pytest

@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("n", range(7))
def test_family(n):
    pass

@pytest.mark.deep
def test_slow():
    pass

@pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_some(n):
    pass

@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("n", [0, *(pytest.param(n, marks=pytest.mark.deep) for n in (1, 2, 3))])
def test_family_with_slow_cases(n):
    pass
"""


@pytest.mark.parametrize(
    ("arguments", "passed", "deselected"),
    [
        ((), 4, 10),
        (("--deep",), 14, 0),
        (("test_it.py::test_family[1]",), 1, 0),
        (("-k", "test_slow"), 0, 14),
    ],
)
def test_what_is_deep_runs_when_it_is_asked_for(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    passed: int,
    deselected: int,
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # which takes a second
    pytester.makeconftest((ROOT / "conftest.py").read_text())
    pytester.makepyfile(test_it=TESTS)
    pytester.makeini("[pytest]\nmarkers = deep: as in pyproject.toml")
    found = pytester.runpytest_subprocess(*arguments)
    found.assert_outcomes(passed=passed, deselected=deselected)


HOOKS = "from proofs_tests.helpers.left_behind import *"
CHANGES = """
import logging, os, sys

def test_it():
    {changed}
    logging.getLogger("of a library").setLevel(10)
    os.environ["LEFT"] = "1"
    sys.path.insert(0, "left")
"""
LOOKS = """
import logging, os, sys

def test_it():
    assert logging.getLogger("of a library").level == 30
    assert "LEFT" not in os.environ
    assert "left" not in sys.path
"""


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("changed", "errors"),
    [
        ("pass", 0),
        ("os.chdir('..')", 1),
        ("__import__('numpy').seterr(all='ignore')", 1),
    ],
)
def test_what_a_file_changes_is_put_back_or_an_error(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, changed: str, errors: int
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # which takes a second
    pytester.makeconftest(
        f"{HOOKS}\nimport logging\nlogging.getLogger('of a library').setLevel(30)"
    )
    pytester.makepyfile(test_1=CHANGES.format(changed=changed), test_2=LOOKS)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(
        passed=2, errors=errors
    )
