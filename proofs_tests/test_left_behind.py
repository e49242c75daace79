"""Files of tests leave nothing behind for those after them."""

import pytest

pytest_plugins = ["pytester"]
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
