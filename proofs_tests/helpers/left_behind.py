"""Test files run in any order: none leaves the process changed for those after it.

What libraries set when they are first used is put back: environment, paths of imports, levels of
loggers. Where numbers, or the working folder, are left changed, the file fails.
"""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

PYTEST_S_OWN = "PYTEST_CURRENT_TEST"


def settings() -> dict[str, Any]:
    """What decides numbers, and where files are found."""
    found = {"the working folder": os.getcwd(), "numpy.geterr()": np.geterr()}
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch's default dtype"] = torch.get_default_dtype()
        found["torch's threads"] = torch.get_num_threads()
    return found


class Before(NamedTuple):
    """The process as a file of tests finds it."""

    file: Path
    settings: dict[str, Any]
    environment: dict[str, str]
    path: list[str]
    levels: dict[str, int]

    @classmethod
    def now(cls, file: Path) -> "Before":
        loggers = {**logging.root.manager.loggerDict, "": logging.root}
        levels = {name: one.level for name, one in loggers.items() if hasattr(one, "level")}
        return cls(file, settings(), dict(os.environ), sys.path[:], levels)

    def put_back(self) -> None:
        sys.path[:] = self.path
        for name in {*os.environ, *self.environment} - {PYTEST_S_OWN}:
            if name not in self.environment:
                del os.environ[name]
            elif os.environ.get(name) != self.environment[name]:
                os.environ[name] = self.environment[name]
        for name, level in self.levels.items():
            logging.getLogger(name).setLevel(level)


BEFORE: list[Before] = []
"""Of the file that is being run, if one is."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if not BEFORE:
        BEFORE.append(Before.now(item.path))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """After fixtures of the whole file."""
    yield
    if nextitem is not None and nextitem.path == item.path:
        return
    before = BEFORE.pop()
    before.put_back()
    after = settings()
    left = {
        name: (value, after[name])
        for name, value in before.settings.items()
        if value != after[name]
    }
    assert not left, f"{before.file.name} leaves changed (before, after): {left}"
