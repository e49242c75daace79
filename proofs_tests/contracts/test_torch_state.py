"""The number of torch's threads is restored, also by calls that overlap or never return."""

import threading
from collections.abc import Iterator

import pytest

from specref.contracts.timeout import HungError, within

torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")

from specref.contracts.process_state import one_thread, seed_all  # noqa: E402


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [2, 3])
def test_it_is_restored_after_a_call_that_hung_under_another_number(threads: int) -> None:
    end = threading.Event()

    def hanging() -> None:
        with one_thread():
            end.wait(60)

    torch.set_num_threads(1)
    with pytest.raises(HungError):
        within(0.05, hanging)
    torch.set_num_threads(threads)
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == threads
    end.set()


def test_a_call_that_hung_inside_another_one_leaves_it_alone() -> None:
    end = threading.Event()

    def hanging() -> None:
        with one_thread():
            end.wait(60)

    torch.set_num_threads(2)
    with one_thread():
        with pytest.raises(HungError):
            within(0.05, hanging)
        assert torch.get_num_threads() == 1
    end.set()
    assert torch.get_num_threads() == 2


def test_calls_that_overlap_restore_what_was_before_the_first() -> None:
    torch.set_num_threads(2)
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("accelerator", [False, True])
def test_generators_of_accelerators_are_seeded_where_there_are_some(
    accelerator: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    everywhere: list[int] = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: accelerator)
    monkeypatch.setattr(torch, "manual_seed", everywhere.append)
    seed_all(5)
    assert everywhere == [5] * accelerator
