"""Times of calls on a device, with nothing that they read in its caches."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

WARM_UP, AHEAD, LEAST, COPIES = 2, 6, 3, 10
FLOAT32 = 4


@dataclass(frozen=True)
class Spread:
    """What repetitions of one measurement gave, to four digits.

    Examples
    --------
    >>> Spread.of([3.0, 1.0, 2.0])
    Spread(median=2.0, low=1.0, high=3.0, repetitions=3)
    """

    median: float
    low: float
    high: float
    repetitions: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Their median, least and most."""
        figures = statistics.median(values), min(values), max(values)
        median, low, high = (float(f"{figure:.4g}") for figure in figures)
        return cls(median, low, high, len(values))


class Times(NamedTuple):
    """Seconds of one call: until its work was done, and until it returned."""

    done: float
    returned: float


class Stopwatch:
    """Times calls; before each, a buffer larger than the device's caches is read.

    On CUDA the time is that between two events. The reads keep the device busy until the host
    has submitted the whole call, so that what the host takes for it is not in that time, but is
    given as `Times.returned`.

    Parameters
    ----------
    device : str
    buffer : int
        Bytes that are read.
    """

    def __init__(self, device: str, buffer: int) -> None:
        self.device = torch.device(device)
        self._buffer = torch.ones(buffer // FLOAT32, device=device)

    def times(self, run: Callable[[], Any], most: int, seconds: float) -> list[Times]:
        """Up to `most` repetitions, and after three of them none later than `seconds` seconds."""
        for _ in range(WARM_UP):
            run()
        found, ends = list[Times](), time.perf_counter() + seconds
        while len(found) < min(LEAST, most) or (len(found) < most and time.perf_counter() < ends):
            found.append(self._on_cuda(run) if self.device.type == "cuda" else self._on_cpu(run))
        return found

    def copy_bandwidth(self) -> float:
        """Bytes read and written in a second by the fastest of some copies of the buffer."""
        copy = torch.empty_like(self._buffer)
        times = self.times(lambda: copy.copy_(self._buffer), COPIES, float("inf"))
        return 2 * FLOAT32 * len(self._buffer) / min(time.done for time in times)

    def _on_cpu(self, run: Callable[[], Any]) -> Times:
        self._buffer.sum()
        started = time.perf_counter()
        run()
        seconds = time.perf_counter() - started
        return Times(seconds, seconds)

    def _on_cuda(self, run: Callable[[], Any]) -> Times:
        event: Any = torch.cuda.Event
        start, end = (event(enable_timing=True) for _ in range(2))
        for _ in range(AHEAD):
            self._buffer.sum()
        start.record()
        started = time.perf_counter()
        run()
        returned = time.perf_counter() - started
        end.record()
        end.synchronize()
        return Times(start.elapsed_time(end) / 1000, returned)
