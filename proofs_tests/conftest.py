"""Hypothesis settings for the exact tests, and the search that planted bugs must not survive."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, find, settings
from hypothesis.strategies import SearchStrategy

from proofs_tests.helpers.left_behind import pytest_runtest_setup, pytest_runtest_teardown

__all__ = ["pytest_runtest_setup", "pytest_runtest_teardown"]

Case = TypeVar("Case")
Search = Callable[[SearchStrategy[Case], Callable[[Case], Any]], Case]


def pytest_configure(config: pytest.Config) -> None:
    """The same examples in each run; with `--deep` twelve times as many. Tests may say less."""
    examples = 240 if config.option.deep else 20
    settings.register_profile(
        "exact", max_examples=examples, deadline=None, derandomize=True, database=None
    )
    settings.load_profile("exact")


@pytest.fixture(scope="session")
def counterexample() -> Search[Any]:
    """Find a case for which a check does not hold; fails if none of 1000 cases is one."""
    generate_only = settings(phases=[Phase.generate], max_examples=1000)
    return lambda cases, holds: find(cases, lambda case: not holds(case), settings=generate_only)


@pytest.fixture
def undiagnosed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither compare failures with known bugs nor look for what explains them.

    Either takes seconds, and verdicts need none of it.
    """
    from specref.conformance import suite

    monkeypatch.setattr(suite, "diagnosed", lambda judge, results, draw_on=True: None)
    monkeypatch.setattr(suite, "explanation_in_time", lambda result, judge: "")


@pytest.fixture
def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a bug by as many blocks as its fit needs, and ask few calls whether rows depend."""
    from specref.conformance import explaining, trial
    from specref.conformance.diagnosis.ranking import ENOUGH

    monkeypatch.setattr(explaining, "BLOCKS", ENOUGH)
    monkeypatch.setattr(trial, "CALLS", 16)


@pytest.fixture(autouse=True)
def without_strata(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave strata out of runs of all checks, which they make ten times as long.

    Tests marked `strata` have them; what is run as a command has them in any case.
    """
    if request.node.get_closest_marker("strata") or "specref.conformance" not in sys.modules:
        return
    from specref.conformance import report, suite
    from specref.conformance.checks import CHECKS
    from specref.conformance.status import Stage

    few = tuple(one for one in CHECKS if one.stage != Stage.STRATA)
    for module in (report, suite):
        monkeypatch.setattr(module, "CHECKS", few)
