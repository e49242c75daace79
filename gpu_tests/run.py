"""One command for a person with a GPU: all that CUDA can show, step by step, into one JSON file.

Each step is a process of its own, and its outcome is written as soon as it ends: called again,
the command goes on with what is left. A step that was stopped by the limit is tried once more.
Run: python -m gpu_tests.run --output build/cuda.json
"""

import json
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from gpu_tests.sizes import RATES
from specref.report.machine import write_json

LEAST = 30.0
"""Seconds that are left when a step is begun: a process with torch needs ten of them to start."""
TRIES = 2
PASSED, FAILED, TIMED_OUT, NOT_RUN = "passed", "failed", "timed_out", "not_run"
OPEN = "inconclusive"
"""Of a command that leaves with 2: no models are here, say, or a planted bug is not found yet."""
NO_CUDA = "not_run (no CUDA)"
BEFORE: tuple[str, ...] = ()
"""A module that runs each step's, for tests: `gpu_tests.pretended`."""


@dataclass(frozen=True)
class Step:
    """What is run: tests by pytest, or a module as a command.

    Attributes
    ----------
    name : str
    arguments : tuple of str
        Of pytest, or the module and its arguments.
    tests : bool
    memory : float
        GB that the device has to have.
    """

    name: str
    arguments: tuple[str, ...]
    tests: bool = True
    memory: float = 0.0


def _tests(name: str, *files: str, only: str = "not cpu", memory: float = 0.0) -> Step:
    given = [f"gpu_tests/test_{file}.py" for file in files]
    return Step(name, (*given, "-k", only), memory=memory)


def _command(name: str, *arguments: str, memory: float = 0.0) -> Step:
    return Step(name, arguments, tests=False, memory=memory)


RECORD, PAGE = "docs/records/benchmarks.json", "docs/records/benchmarks.md"
STEPS: Sequence[Step] = (
    Step(
        "kernels",
        (
            "proofs_tests/torch_backend/test_fused.py",
            "proofs_tests/torch_backend/fused/test_production.py",
        ),
    ),
    _tests("device", "device"),
    _tests("the same random numbers", "same_coins", "rounding"),
    _tests("greedy and caches", "greedy", "caches"),
    *(_tests(f"texts of {one}", "generations", only=f"cuda-{one}", memory=24) for one in RATES),
    _tests(
        "texts with bugs of the rule",
        "generations",
        only=" and ".join(["not cpu", *(f"not cuda-{one}" for one in RATES)]),
        memory=24,
    ),
    _tests("a large vocabulary", "large_vocabulary", memory=24),
    _tests("Transformers beside", "side_by_side"),
    _tests("benchmarks are right", "fused_benchmarks", "benchmarks"),
    *(
        _command(
            f"benchmark of {part}",
            *("gpu_tests.benchmarks.record", "--device", "cuda", "--part", part),
            *("--output", RECORD, "--markdown", PAGE),
            memory=16,
        )
        for part in ("verification", "generation")
    ),
    _command(
        "published models",
        *("specref", "cross-check", "--device", "cuda", "--dtype", "bfloat16"),
        *("--record", "docs/records/real_models.json"),
        memory=8,
    ),
)


def machine() -> dict[str, Any] | None:
    """What this machine is; None if torch finds no CUDA, or is not installed."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    about = torch.cuda.get_device_properties(0)
    return {
        "device": about.name,
        "memory_gb": round(about.total_memory / 1e9, 1),
        "multiprocessors": about.multi_processor_count,
        "driver": _said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        **{name: _version(name) for name in ("torch", "triton", "transformers", "numpy")},
        "commit": _said("git", "rev-parse", "HEAD"),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _said(*command: str) -> str | None:
    """What a command prints, None where it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def run(step: Step, seconds: float) -> dict[str, Any]:
    """The outcome of a step within so many seconds."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "junit.xml"
        options = ("pytest", "-q", "--deep", f"--junitxml={junit}") if step.tests else ()
        command = [sys.executable, "-m", *BEFORE, *options, *step.arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return {"status": TIMED_OUT, "seconds": round(seconds, 1)}
        cases = list(ElementTree.parse(junit).iter("testcase")) if junit.exists() else []
    outcome = _of_cases(cases) if step.tests else {}
    right = done.returncode == 0
    status = outcome.pop("status", {0: PASSED, 2: OPEN}.get(done.returncode, FAILED))
    # 5: no test was chosen. A crash leaves no list of tests.
    if step.tests and not right and (status == PASSED or done.returncode != 5):
        status = FAILED
    said = {} if status == PASSED else {"said": (done.stdout + done.stderr)[-2_000:]}
    return {"status": status, "seconds": round(time.monotonic() - started, 1), **outcome, **said}


def _of_cases(cases: Sequence[ElementTree.Element]) -> dict[str, Any]:
    wrong = [case for case in cases if _of(case, "failure") or _of(case, "error")]
    skipped = [_of(case, "skipped") for case in cases if _of(case, "skipped")]
    passed = len(cases) - len(wrong) - len(skipped)
    values = [
        (one.get("name"), one.get("value")) for case in cases for one in case.iter("property")
    ]
    return {
        "status": FAILED if wrong else PASSED if passed else NOT_RUN,
        "passed": passed,
        "failed": [f"{case.get('classname')}::{case.get('name')}" for case in wrong],
        "skipped": sorted(set(skipped)),
        "figures": [value for name, value in values if name == "figure"],
    }


def _of(case: ElementTree.Element, kind: str) -> str:
    """The message of a child of a test case; "" if it has none of the kind."""
    found = case.find(kind)
    return "" if found is None else found.get("message") or kind


def left_over(record: Mapping[str, Any], memory: float) -> list[Step]:
    """The steps that are to be run: those that fit, and have no outcome yet."""
    steps = record["steps"]
    return [
        step
        for step in STEPS
        if step.memory <= memory
        and (
            step.name not in steps
            or (steps[step.name]["status"] == TIMED_OUT and steps[step.name]["tries"] < TRIES)
        )
    ]


def exit_code(record: Mapping[str, Any]) -> int:
    """0: all passed that was run; 1: something failed; 2: something is open, or none was run."""
    statuses = {step["status"] for step in record["steps"].values()}
    if statuses & {FAILED, TIMED_OUT}:
        return 1
    return 0 if PASSED in statuses and OPEN not in statuses else 2


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--output", default="build/cuda.json", show_default=True, metavar="FILE")
@click.option("--seconds", default=540.0, show_default=True, help="For this call.")
def main(output: str, seconds: float) -> None:
    """Run what is left, and write after each step.

    Exit codes: 0 all passed; 1 a step failed, or did not end in time twice; 2 no CUDA, or a step
    is inconclusive; 3 time is up and steps are left: call again.
    """
    here = machine()
    if here is None:
        click.echo(NO_CUDA, err=True)
        sys.exit(2)
    file = Path(output)
    file.parent.mkdir(parents=True, exist_ok=True)
    record = json.loads(file.read_text()) if file.exists() else {"machine": here, "steps": {}}
    if record["machine"] != here:
        click.echo(f"error: {output} is of another machine or commit: name another", err=True)
        sys.exit(2)
    memory, end = float(here["memory_gb"]), time.monotonic() + seconds
    for step in STEPS:
        if step.memory > memory:
            record["steps"].setdefault(step.name, {"status": NOT_RUN, "said": "too little memory"})
    for step in left_over(record, memory):
        left = end - time.monotonic()
        if left < LEAST:
            click.echo("time is up: call again")
            sys.exit(3)
        click.echo(f"{step.name}: at most {left:.0f} s", err=True)
        tries = record["steps"].get(step.name, {}).get("tries", 0) + 1
        record["steps"][step.name] = run(step, left) | {"tries": tries, "step": asdict(step)}
        write_json(output, json.dumps(record, indent=1))
        click.echo(f"{step.name}: {record['steps'][step.name]['status']}")
    sys.exit(3 if left_over(record, memory) else exit_code(record))


if __name__ == "__main__":
    main()
