"""Without torch or Transformers, doctests of files that need them are skipped, by name.

The collector of garbage leaves alone what collection left.
"""

import gc
from importlib.util import find_spec

import pytest

MISSING = [name for name in ("torch", "transformers") if find_spec(name) is None]
collect_ignore = ["specref/torch_backend", "specref/adapters/torch_backend.py"] if MISSING else []


def pytest_configure(config: pytest.Config) -> None:
    """Where both are installed, a file that cannot be imported stays an error."""
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


def pytest_report_header() -> list[str]:
    """Say what is left out, and why: of a doctest, pytest says only that it cannot be imported."""
    left_out = [*collect_ignore, "doctests of what imports them"] if MISSING else []
    return [f"{one}: not_run ({', '.join(MISSING)} missing)" for one in left_out]
