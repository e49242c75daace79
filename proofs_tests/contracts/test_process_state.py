"""Global generators and torch's threads are given back whatever happens; memory is limited."""

import sys
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from specref.contracts import process_state
from specref.contracts.process_state import (
    available,
    bounded_memory,
    exclusively,
    one_thread,
    seed_all,
)
from specref.contracts.timeout import HungError, within


def counted(done: list[str]) -> Callable[[], Callable[[], None]]:
    def begin() -> Callable[[], None]:
        done.append("begun")
        return lambda: done.append("undone")

    return begin


def test_a_turn_is_begun_and_undone_once() -> None:
    done: list[str] = []
    with exclusively(counted(done)):
        assert done == ["begun"]
    assert done == ["begun", "undone"]


def test_a_turn_within_a_turn_begins_and_undoes_its_own() -> None:
    outer, inner = list[str](), list[str]()
    with exclusively(counted(outer)):
        with exclusively(counted(inner)):
            assert (outer, inner) == (["begun"], ["begun"])
        assert (outer, inner) == (["begun"], ["begun", "undone"])
    assert outer == ["begun", "undone"]


def test_a_beginning_that_fails_gives_its_turn_back() -> None:
    def fails() -> Callable[[], None]:
        raise ValueError("no state")

    with pytest.raises(ValueError, match="no state"), exclusively(fails):
        pass
    done: list[str] = []
    with exclusively(counted(done)):
        pass
    assert done == ["begun", "undone"]


def test_an_undoing_that_fails_gives_its_turn_back() -> None:
    def begin() -> Callable[[], None]:
        def undo() -> None:
            raise ValueError("no undoing")

        return undo

    with pytest.raises(ValueError, match="no undoing"), exclusively(begin):
        pass
    with exclusively(counted([])):
        pass


def test_who_waits_too_long_for_a_turn_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_state, "LONGEST", 5 * process_state.SLICE)
    errors: list[BaseException] = []

    def other() -> None:
        try:
            with exclusively(counted([])):
                pass
        except BaseException as error:
            errors.append(error)

    with exclusively(counted([])):
        waiting = Thread(target=other)
        waiting.start()
        waiting.join(60)
    (error,) = errors
    assert isinstance(error, HungError)
    assert str(error).startswith("waited 0.1 s for another call")


UNKNOWN = available() is None or sys.platform != "linux"
NO_LIMITS = "not_run (the system says not how much memory is available)"


@pytest.mark.skipif(UNKNOWN, reason=NO_LIMITS)
def test_what_would_use_up_memory_raises_there_and_only_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free = available()
    assert free is not None
    half = free // 2  # other tests run beside this one
    monkeypatch.setattr(process_state, "available", lambda: half)
    almost_all = int(0.95 * half)  # never written, so that it is never taken
    with bounded_memory(), pytest.raises(MemoryError):
        np.empty(almost_all, dtype=np.uint8)
    assert len(np.empty(almost_all, dtype=np.uint8)) == almost_all


@pytest.mark.skipif(UNKNOWN, reason=NO_LIMITS)
def test_the_limit_ends_with_a_call_that_raises() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(ZeroDivisionError), bounded_memory():
        1 / 0  # noqa: B018
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.fixture
def torch() -> Iterator[Any]:
    """torch, whose number of threads is restored."""
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    before = torch.get_num_threads()
    yield torch
    torch.set_num_threads(before)


def hang_with_one_thread(end: Event) -> None:
    def hanging() -> None:
        with one_thread():
            end.wait(60)

    with pytest.raises(HungError):
        within(0.05, hanging)


@pytest.mark.parametrize("threads", [2, 3])
def test_it_is_restored_after_a_call_that_hung_under_another_number(
    torch: Any, threads: int
) -> None:
    end = Event()
    torch.set_num_threads(1)
    hang_with_one_thread(end)
    torch.set_num_threads(threads)
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == threads
    end.set()


def test_a_call_that_hung_inside_another_one_leaves_it_alone(torch: Any) -> None:
    end = Event()
    torch.set_num_threads(2)
    with one_thread():
        hang_with_one_thread(end)
        assert torch.get_num_threads() == 1
    end.set()
    assert torch.get_num_threads() == 2


def test_calls_that_overlap_restore_what_was_before_the_first(torch: Any) -> None:
    torch.set_num_threads(2)
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("accelerator", [False, True])
def test_generators_of_accelerators_are_seeded_where_there_are_some(
    torch: Any, accelerator: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    everywhere: list[int] = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: accelerator)
    monkeypatch.setattr(torch, "manual_seed", everywhere.append)
    seed_all(5)
    assert everywhere == [5] * accelerator
