"""The time of `torch_backend.verify` against the memory bandwidth of the device.

Two floors are bytes over the bandwidth of a copy, measured in the same run: all rows of both
models, and those that the rule needs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from typing import Any

from gpu_tests.benchmarks.cases import Case, Problem, Sizes, floors
from gpu_tests.benchmarks.timing import Spread, Stopwatch


def steps(device: str, sizes: Sizes, seed: int) -> Iterator[dict[str, Any]]:
    """Measure one case after the other."""
    stopwatch = Stopwatch(device, sizes.buffer)
    bandwidth = stopwatch.copy_bandwidth()
    for _, cases in groupby(sizes.lines, key=attrgetter("numbers")):
        yield from _steps(list(cases), stopwatch, bandwidth, sizes, seed)


def _steps(
    cases: Sequence[Case], stopwatch: Stopwatch, bandwidth: float, sizes: Sizes, seed: int
) -> Iterator[dict[str, Any]]:
    problem = Problem.drawn(cases[0], str(stopwatch.device), seed)
    for case in cases:
        yield asdict(case) | _figures(case, problem, stopwatch, bandwidth, sizes)


def _figures(
    case: Case, problem: Problem, stopwatch: Stopwatch, bandwidth: float, sizes: Sizes
) -> dict[str, Any]:
    try:
        run = problem.call(case)
        counts = run()[1].tolist()
        times = stopwatch.times(run, sizes.repetitions, sizes.seconds)
    except Exception as error:  # of any class: Triton's have no common one
        return {"status": f"failed ({type(error).__name__})"}
    moved = floors(case, counts)
    figures = {
        "status": "measured",
        "mean_block": sum(counts) / len(counts),
        "bytes": moved,
        "copied_bytes": sizes.buffer,
        "copy_bytes_per_second": float(f"{bandwidth:.4g}"),
        "floor_seconds": {
            name: float(f"{number / bandwidth:.4g}") for name, number in moved.items()
        },
        "seconds": asdict(Spread.of([time.done for time in times])),
    }
    if stopwatch.device.type == "cuda":
        figures["host_seconds"] = asdict(Spread.of([time.returned for time in times]))
    return figures


def rows(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each case."""
    return list(found)
