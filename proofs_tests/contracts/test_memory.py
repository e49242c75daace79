"""A large call is refused memory that the machine has not got."""

import sys

import numpy as np
import pytest

from specref.contracts import memory
from specref.contracts.memory import available, bounded_memory

UNKNOWN = available() is None or sys.platform != "linux"
NO_LIMITS = "not_run (the system says not how much memory is available)"


@pytest.mark.skipif(UNKNOWN, reason=NO_LIMITS)
def test_what_would_use_up_memory_raises_there_and_only_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free = available()
    assert free is not None
    half = free // 2  # other tests run beside this one
    monkeypatch.setattr(memory, "available", lambda: half)
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
