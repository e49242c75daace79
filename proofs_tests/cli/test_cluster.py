"""Dask clusters: two worker processes do what one does, and one that is killed loses nothing.

Tests that start a scheduler run with `--deep`.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from proofs_tests.helpers.command import run, without_seconds
from specref.cli import cluster
from specref.conformance.public import check
from specref.examples.correct import verify as correct
from specref.report.kit import kit_record
from specref.report.machine import as_json
from specref.verification import main_job
from specref.verification.main_job import TRIED, AlgorithmReport, Verification

distributed = pytest.importorskip("distributed", reason="not_run (Dask is not installed)")
ROOT = Path(__file__).parents[2]
ONLY = ["smoke/answers", "joint/deep", "independence/rows-deep"]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and two worker processes, which are started again if they die."""
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    here = ("--scheduler-file", str(file), "--no-dashboard", "--host", "127.0.0.1")
    workers = ("--nworkers", "2", "--nthreads", "1", "--local-directory", str(folder))
    with (
        server(folder, "scheduler", "--port", "0", *here),
        server(folder, "worker", *workers, *here),
        distributed.Client(scheduler_file=str(file), timeout=60) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client.scheduler.address


@contextmanager
def server(folder: Path, *command: str) -> Iterator[None]:
    """A command of dask, until it is left; a failing test shows what it printed."""
    log = folder / f"{command[0]}.log"
    with log.open("w") as lines:
        running = subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=lines,
            stderr=lines,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        print(log.read_text())


@pytest.mark.deep
def test_the_main_job_survives_the_death_of_a_worker(address, monkeypatch):
    few = {name: TRIED[name] for name in ("autoregressive", "tli")}
    monkeypatch.setattr(main_job, "TRIED", few)
    monkeypatch.setitem(main_job.TRIALS, "quick", 2_000)
    monkeypatch.setitem(main_job.EPS, "quick", 0.25)
    killed: list[int] = []
    with cluster.executor_of(1, address) as executor, distributed.Client(address) as client:

        def kill(name: str) -> None:
            if not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        found = main_job.verify(advance=kill, executor=executor)
    assert killed
    assert timeless(found) == timeless(main_job.verify())


def timeless(verification: Verification) -> list[AlgorithmReport]:
    return [
        replace(one, seconds=0, monte_carlo=replace(one.monte_carlo, seconds=0))
        for one in verification.reports
    ]


COMMANDS = (
    ("zoo", "counts-bonus-as-accepted", "shared-u"),
    ("check", "examples.correct:verify", *(f"--only={one}" for one in ONLY)),
    ("prove", "specref.algorithms.standard:step", "--only", "EOS"),
    ("prove", "specref.algorithms.standard:step", "--everywhere", "--tokens", "2"),
)


@pytest.mark.deep
@pytest.mark.parametrize("asked", COMMANDS, ids=lambda asked: " ".join(asked[::2]))
def test_a_command_on_a_cluster(address: str, tmp_path: Path, asked: tuple[str, ...]) -> None:
    files = [tmp_path / "here.json", tmp_path / "there.json"]
    for file, where in zip(files, ([], ["--cluster", address]), strict=True):
        assert run(*asked, *where, "--json", str(file)).exit_code == 0
    here, there = (without_seconds(json.loads(file.read_text())) for file in files)
    if asked[0] == "prove":  # on other machines it is not watched which lines run
        assert there.pop("never_ran") is None
        assert here.pop("never_ran") is not None
    assert here == there


class Killing(Executor):
    """Sends jobs to a cluster, and kills one of its processes when the first was sent."""

    def __init__(self, executor: Executor, address: str) -> None:
        self.executor, self.address = executor, address
        self.killed: list[int] = []

    def submit(self, function: Callable[..., Any], /, *given: Any, **options: Any) -> Future[Any]:
        future = self.executor.submit(function, *given, **options)
        if not self.killed:
            with distributed.Client(self.address) as client:
                self.killed = [next(iter(client.run(os.getpid).values()))]
            os.kill(self.killed[0], signal.SIGKILL)
        return future

    def map(self, function: Callable[..., Any], /, *given: Any, **options: Any) -> Iterator[Any]:
        return iter(
            [one.result() for one in [self.submit(function, *x) for x in zip(*given, strict=True)]]
        )


@pytest.mark.deep
def test_checks_survive_the_death_of_a_worker(address: str) -> None:
    with cluster.executor_of(1, address) as executor:
        killing = Killing(executor, address)
        found = check(correct, only=ONLY, executor=killing)
    assert killing.killed
    both = (kit_record(one) for one in (found, check(correct, only=ONLY)))
    there, here = (without_seconds(json.loads(as_json(one))) for one in both)
    assert there == here


@pytest.mark.deep
def test_workers_that_always_die_are_an_error_in_one_line(address: str) -> None:
    with (
        pytest.raises(OSError, match="workers died again and again"),
        cluster.executor_of(1, address) as executor,
    ):
        executor.submit(os._exit, 1).result()


def test_a_worker_with_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    client = MagicMock()
    client.return_value.__enter__.return_value.run.return_value = {"tcp://it:1": "0.0.0"}
    monkeypatch.setattr(distributed, "Client", client)
    result = run("zoo", "shared-u", "--cluster", "tcp://127.0.0.1:9")
    assert result.exit_code == 2
    told = f"worker tcp://it:1 has specref 0.0.0: expected {cluster.__version__}"
    assert told in result.stderr


@pytest.mark.deep
def test_a_scheduler_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SECONDS", 0.5)
    options = {"processes": False, "protocol": "tcp://", "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=0, **options) as empty:
        result = run("zoo", "shared-u", "--cluster", empty.scheduler_address)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "worker" in result.stderr


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SECONDS", 0.5)
    result = run("zoo", "shared-u", "--cluster", "tcp://127.0.0.1:9")
    assert result.exit_code == 2
    assert "tcp://127.0.0.1:9" in result.stderr


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("command", [("verify",), ("prove", "specref.algorithms.standard:step")])
def test_one_of_workers_and_cluster(command: tuple[str, ...]) -> None:
    result = run(*command, "--cluster", "tcp://127.0.0.1:9", "--workers", "2")
    assert result.exit_code == 2
    assert "--workers 2, --cluster tcp://127.0.0.1:9: expected one of them" in result.stderr
