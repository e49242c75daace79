"""A device that is pretended: a CPU's values and CUDA's rules, in every thread that is started.

What `torch.cuda` says of itself is made up, `torch.compile` and CUDA graphs run as written, and
kernels of Triton are interpreted; rules: `proofs_tests.helpers.torch.pretend`. As a plugin:
python -m pytest -p gpu_tests.pretended gpu_tests -k cuda
For a command: python -m gpu_tests.pretended MODULE ARGUMENTS
"""

import os
import runpy
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

# Settled as Triton makes kernels, once for a process.
os.environ["TRITON_INTERPRET"] = "1"

import pytest
import torch

from gpu_tests.benchmarks import cases, lines, record
from gpu_tests.sizes import PRETENDED
from proofs_tests.helpers.torch.pretend import CPU, Generator, Pretender, here_of
from specref.contrib.real_models import running
from specref.contrib.real_models.record import Sizes

ACTIVE = Pretender()
run, fork, moved = threading.Thread.run, torch.random.fork_rng, torch.nn.Module.to
ABOUT = SimpleNamespace(name="pretended", total_memory=140e9, multi_processor_count=1)
CUDA: dict[str, Any] = {
    "is_available": lambda: True,
    "get_device_name": lambda *_: ABOUT.name,
    "get_device_properties": lambda *_: ABOUT,
    "synchronize": lambda *_: None,
    "set_sync_debug_mode": lambda mode: setattr(ACTIVE, "refusing", mode == "error"),
    "graph": lambda _: nullcontext(),
}


class Graph:
    """What has been captured has been done."""

    def replay(self) -> None: ...


class Event:
    """A moment on the device, which is that of the host."""

    def __init__(self, **_: Any) -> None:
        self.record()

    def record(self) -> None:
        self.seconds = time.perf_counter()

    def elapsed_time(self, other: "Event") -> float:
        return max(1e-3, 1_000 * (other.seconds - self.seconds))

    def synchronize(self) -> None: ...


@contextmanager
def pretending() -> Iterator[None]:
    """The device is there inside, with benchmarks and records of a size for it."""
    tiny = replace(
        cases.TINY, batches=(1,), compiled=cases.always, fused=cases.always, repetitions=1
    )
    few = replace(lines.TINY, new_tokens=2, pairs=("homogeneous", "large intersection"))
    with pytest.MonkeyPatch.context() as patch, ACTIVE:
        patch.setattr(threading.Thread, "run", there)
        # The device has no generator of its own.
        patch.setattr(torch.random, "fork_rng", lambda *_, **__: fork([], device_type="cuda"))
        patch.setattr(torch.nn.Module, "to", with_index)
        patch.setattr(torch, "Generator", Generator)
        patch.setattr(torch, "compile", lambda function, **_: function)
        for name, stand_in in (CUDA | {"CUDAGraph": Graph, "Event": Event}).items():
            patch.setattr(torch.cuda, name, stand_in)
        # Of both modules: one that is run as a command reads them anew.
        for module, size in ((cases, tiny), (lines, few)):
            patch.setattr(module, "SIZES", dict.fromkeys(module.SIZES, size))
        patch.setattr(record, "SIZES", {"verification": cases.SIZES, "generation": lines.SIZES})
        patch.setattr(running, "PROFILES", dict.fromkeys(running.PROFILES, Sizes(8, 0, 8, 1, 4)))
        for module, name in ((running, "BATCH"), (running, "LENGTH")):
            patch.setattr(module, name, 4)
        if find_spec("triton"):
            fused = import_module("specref.torch_backend.fused")
            patch.setattr(fused, "launch", partial(launched, fused.launch))
            patch.setattr(fused, "SPLITS", 2)  # of the interpreter each program takes its time
        try:
            yield
        finally:
            ACTIVE.events.clear()


def there(thread: threading.Thread) -> None:
    """A thread's work, on the device: torch has modes for each thread."""
    with ACTIVE.also_here():
        run(thread)


def with_index(module: torch.nn.Module, where: Any, *others: Any) -> torch.nn.Module:
    """A module that is moved: the device is known by its index."""
    return moved(module, PRETENDED if where == "cuda" else where, *others)


def launched(
    launch: Any, kernel: Any, grid: Any, device: torch.device, *given: Any, **constants: Any
) -> None:
    """A launch of a kernel on the device, which is interpreted on what its tensors hold."""
    if device.type != "cuda":
        raise ValueError(f"tensors are on {device}: expected cuda")
    launch(kernel, grid, CPU, *map(here_of, given), **constants)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """With its fixtures, whatever they load."""
    with pretending():
        return (yield)


def pytest_configure() -> None:
    """Where tests of kernels put their tensors."""
    if find_spec("triton"):
        batches: Any = import_module("proofs_tests.helpers.torch.fused_batches")
        batches.DEVICE = PRETENDED


def main(module: str, *arguments: str) -> None:
    """Run a module as a command; of tests each has the device for itself."""
    sys.argv = [module, *arguments]
    if module == "pytest":
        sys.argv += ["-p", "gpu_tests.pretended"]
    with nullcontext() if module == "pytest" else pretending():
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
