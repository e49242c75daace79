"""Packages that are missing, wherever the tests run."""

from importlib.metadata import PackageNotFoundError

import pytest


def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixture: no package that carries a real vocabulary is installed."""

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("specref.contrib.vocabularies.files.distribution", missing)
