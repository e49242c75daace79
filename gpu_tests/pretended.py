"""A plugin for pytest: what is for CUDA runs on a device that is pretended.

It has the values of a CPU and CUDA's rules (`proofs_tests.helpers.torch.pretend`), in every thread
that tests start. Run: python -m pytest -p gpu_tests.pretended gpu_tests -k cuda
"""

import threading
from collections.abc import Iterator

import pytest
import torch

from proofs_tests.helpers.torch.pretend import Pretender

ACTIVE = Pretender()
run, fork = threading.Thread.run, torch.random.fork_rng


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """With its fixtures, whatever they load."""
    with pytest.MonkeyPatch.context() as patch, ACTIVE:
        patch.setattr(threading.Thread, "run", there)
        # The device has no generator of its own.
        patch.setattr(torch.random, "fork_rng", lambda *_, **__: fork([], device_type="cuda"))
        try:
            return (yield)
        finally:
            ACTIVE.events.clear()


def there(thread: threading.Thread) -> None:
    """A thread's work, on the device: torch has modes for each thread."""
    with ACTIVE.also_here():
        run(thread)
