"""A limit on the memory of a call, so that a large one raises instead of ending the process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
    """The number of a field of a file of ``/proc``.

    Raises
    ------
    OSError, ValueError
        There is no such file, or no such field.
    """
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

    Examples
    --------
    >>> with bounded_memory():
    ...     len(bytearray(1000))
    1000
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
