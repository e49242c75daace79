"""Modules of engines, put in place of those that are installed or not, and functions of theirs."""

import sys
from collections.abc import Callable
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A module with functions of one's own, in a package that is otherwise empty."""

    def put(module: str, **names: Any) -> None:
        parts = module.split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        for name, value in names.items():
            setattr(sys.modules[module], name, value)

    return put


def taking(*names: str) -> Callable[..., None]:
    """A function with these parameters."""

    def function(**given: Any) -> None: ...

    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return function
