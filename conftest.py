"""Which tests run by default, and which doctests without torch or Transformers.

A test marked `deep` takes long: it runs with `--deep`, or if it is named (`FILE::TEST`). Of a
family marked `deep(one_in=4)`, one case in four runs by default, and all with `--deep`. A case
that is marked `deep` itself is none of them.

Without torch or Transformers, doctests of files that need them are skipped, by name. The collector
of garbage leaves alone what collection left.
"""

import gc
from collections import Counter
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

MISSING = [name for name in ("torch", "transformers") if find_spec(name) is None]
collect_ignore = ["specref/torch_backend", "specref/adapters/torch_backend.py"] if MISSING else []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--deep`."""
    parser.addoption("--deep", action="store_true", help="run the tests marked deep, too")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests where there are some: it imports a file, and goes through its names."""
    collectors = yield
    if file_path.suffix == ".py" and b">>> " not in file_path.read_bytes():
        return [one for one in collectors if not isinstance(one, DoctestModule)]
    return collectors


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is deep; of families, all but one in so many.

    Of each group of so many the next one is kept, so that no parameter keeps one value only.
    """
    named = any("::" in asked for asked in config.args) or config.getoption("lf", False)
    if config.option.deep or named:
        return
    kept, left_out = [], []
    before: Counter[str] = Counter()
    for item in items:
        shares = [mark.kwargs.get("one_in") for mark in item.iter_markers("deep")]
        if None in shares:
            left_out.append(item)
            continue
        family, one_in = item.nodeid.partition("[")[0], shares[0] if shares else 1
        group, place = divmod(before[family], one_in)
        (kept if place == group % one_in else left_out).append(item)
        before[family] += 1
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def pytest_configure(config: pytest.Config) -> None:
    """Where both are installed, a file that cannot be imported stays an error."""
    gc.set_threshold(100_000)  # Most of what collection makes stays.
    if MISSING:
        config.option.doctest_ignore_import_errors = True


def pytest_collection_finish() -> None:
    """Modules and tests stay: to look through them again and again takes long."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_unconfigure() -> None:
    """Let the end of the process find them, or libraries complain of leaks."""
    gc.unfreeze()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is left out, and why: of a doctest, pytest says only that it cannot be imported."""
    left_out = [*collect_ignore, "doctests of what imports them"] if MISSING else []
    deep = [] if config.option.deep else ["tests marked deep: not_run (--deep runs them)"]
    return [*deep, *(f"{one}: not_run ({', '.join(MISSING)} missing)" for one in left_out)]
