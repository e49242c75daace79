"""Versions and remedies of optional parts."""

import pytest

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
