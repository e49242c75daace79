"""What was found so far is in the file before the next check, which may be the last to run."""

from types import SimpleNamespace

import pytest

from specref.cli import judging


@pytest.mark.parametrize(("seconds", "written"), [(0.5, 3), (30.0, 1)])
def test_only_writing_that_takes_seconds_is_put_off(
    monkeypatch: pytest.MonkeyPatch, seconds: float, written: int
) -> None:
    """Three checks end one right after another: the file has the last, unless the disk is slow."""
    clock, times = SimpleNamespace(now=0.0), []

    def write(*_: object) -> None:
        clock.now += seconds
        times.append(clock.now)

    monkeypatch.setattr(judging, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(judging, "write_json", write)
    files = judging.Files(None, None, None, "report.json")
    for _ in range(3):
        files.so_far([])
    assert len(times) == written
