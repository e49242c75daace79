"""Headless Chromium, where there is one that starts; it is tried once a session."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

HEADLESS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--dump-dom",
)
PROBE, LIMIT = 20, 120


@cache
def missing() -> str:
    """Why there is no Chromium to ask; empty if it shows an empty page within 20 seconds."""
    if _found() is None:
        return "not_run (Chromium is not installed)"
    with TemporaryDirectory() as folder:
        try:
            done = _run(Path(folder), ["about:blank"], PROBE)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"not_run (Chromium does not start: {type(error).__name__})"
    if done.returncode or "<html" not in done.stdout:
        return f"not_run (Chromium does not start: exit code {done.returncode})"
    return ""


def dumped(folder: Path, *words: str) -> str:
    """The DOM of a page after its scripts; skips the test where there is no Chromium."""
    if why := missing():
        pytest.skip(why)
    done = _run(folder, words, LIMIT)
    assert done.returncode == 0, done.stderr
    assert "<html" in done.stdout, done.stderr
    return done.stdout


def _found() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


def _run(folder: Path, words: Sequence[str], limit: float) -> "subprocess.CompletedProcess[str]":
    command = [str(_found()), *HEADLESS, f"--user-data-dir={folder / 'profile'}", *words]
    home = {**os.environ, "HOME": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, env=home)
