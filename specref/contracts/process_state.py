"""The state of this process that calls of user code depend on: set for a call, and restored.

Only one call at a time uses the global generators.
"""

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path

import numpy as np

from specref.contracts.timeout import HungError, deadline_here

SLICE = 0.02
LONGEST = 600.0

_LOCK = threading.Lock()
_MINE: ContextVar[bool] = ContextVar("specref_turn", default=False)


@contextmanager
def exclusively(begin: Callable[[], Callable[[], None]]) -> Iterator[None]:
    """Hold the lock, and the state set by `begin`, until leaving.

    A call that does not return in time loses the lock, and what `begin` did is undone then. The
    wait for other calls does not count towards the timeout.

    * `begin`: Changes the state of the process, and returns a function that undoes it.
    """
    if _MINE.get():
        undo = begin()
        try:
            yield
        finally:
            undo()
        return
    deadline = deadline_here()
    for _ in range(int(LONGEST / SLICE)):
        acquired = _LOCK.acquire(timeout=SLICE)
        deadline.waited()
        if acquired:
            break
    else:
        raise HungError(f"waited {LONGEST:g} s for another call that uses the global generators")
    token = _MINE.set(True)
    try:
        with deadline.releasing(_once(begin)):
            yield
    finally:
        _MINE.reset(token)


def _once(begin: Callable[[], Callable[[], None]]) -> Callable[[], None]:
    """Begin; the returned function undoes it and releases the lock, at its first call only."""
    try:
        open_ = [begin()]
    except BaseException:
        _LOCK.release()
        raise

    def end() -> None:
        try:
            undo = open_.pop()
        except IndexError:
            return
        try:
            undo()
        finally:
            _LOCK.release()

    return end


_THREADS = threading.Lock()
_before: dict[object, int] = {}


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: with more, tensors of a few numbers take many times longer.

    If several callers overlap, each restores, on leaving, what was there before the first one.
    A call that does not return in time has left.
    """
    import torch

    caller, thread = object(), threading.get_ident()
    with _THREADS:
        _before[caller] = next(iter(_before.values()), torch.get_num_threads())

    def leave() -> None:
        with _THREADS:
            threads = _before.pop(caller, None)
            alone = not _before
        if threads is not None and (alone or threading.get_ident() == thread):
            torch.set_num_threads(threads)

    with deadline_here().releasing(leave):
        torch.set_num_threads(1)
        yield


@contextmanager
def seeded(rng: np.random.Generator, device: str = "cpu") -> Iterator[None]:
    """Seed torch's global generators from `rng`, and use one thread; undo both on leaving.

    Only one call at a time, as for `global_randomness`.
    """
    import torch

    seed = int(rng.integers(2**63))

    def begin() -> Callable[[], None]:
        kind = torch.device(device).type
        devices, kind = ([], "cuda") if kind == "cpu" else ([torch.device(device)], kind)
        stack = ExitStack()
        stack.enter_context(torch.random.fork_rng(devices, device_type=kind))
        seed_all(seed)
        return stack.close

    with exclusively(begin), one_thread():
        yield


def seed_all(seed: int) -> None:
    """Seed torch's global generators.

    Without an accelerator `torch.manual_seed` formats a stack trace for each kind that there
    could be, which takes longer than many a call of user code.
    """
    import torch

    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@contextmanager
def global_randomness(rng: np.random.Generator) -> Iterator[None]:
    """Seed the global generators of Python, NumPy and torch, and restore them afterwards.

    Only one call at a time: checks in other threads wait.
    """
    with exclusively(partial(_seeded, int(rng.integers(2**31)))):
        yield


def _seeded(seed: int) -> Callable[[], None]:
    torch = sys.modules.get("torch")
    # User code may use the legacy generator.
    kept = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = torch.cuda.get_rng_state_all() if torch and torch.cuda.is_initialized() else []
    cpu = torch and torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if torch:
        seed_all(seed)

    def undo() -> None:
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002
        if torch:
            torch.set_rng_state(cpu)
            torch.cuda.set_rng_state_all(devices)

    return undo


SHARE = 0.8
"""Of the memory that is available: other programs, and what is freed late, need the rest."""
CGROUP = Path("/sys/fs/cgroup")


def available() -> int | None:
    """Bytes that this process can still use; None where the system does not say."""
    found: list[int] = []
    with suppress(OSError, ValueError):
        found.append(1024 * field(Path("/proc/meminfo"), "MemAvailable"))
    with suppress(OSError, ValueError):  # "max" where nothing limits it
        most = int((CGROUP / "memory.max").read_text())
        found.append(max(0, most - int((CGROUP / "memory.current").read_text())))
    return min(found, default=None)


def field(file: Path, name: str) -> int:
    """The number of a field of a file of ``/proc``."""
    for line in file.read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0])
    raise ValueError(f"no field {name} in {file}")


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Let what is asked for within raise MemoryError instead of using up the machine's memory.

    On Linux, the data of the process may grow by a share of what is available. Elsewhere, and
    where a lower limit holds already, nothing changes.
    """
    free = available()
    if free is None or sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = 1024 * field(Path("/proc/self/status"), "VmData") + int(SHARE * free)
    if any(most >= one != resource.RLIM_INFINITY for one in (soft, hard)):
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
