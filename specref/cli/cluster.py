"""Where commands run: processes of this machine, or the workers of a Dask cluster."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import click

from specref import __version__
from specref.cli.group import deliver
from specref.optional import PARTS
from specref.report.document import Document

MOST = 16


def cores() -> int:
    """The cores that this process may use, at most 16."""
    given = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(given or 1, MOST)


@contextmanager
def worker_processes(count: int) -> Iterator[Executor | None]:
    """A pool of processes, or None for one worker, which is this process."""
    if count == 1:
        yield None
        return
    pool = _Pool(count)
    try:
        yield pool
    except BrokenProcessPool:
        raise OSError("a worker process died (out of memory? ended by judged code?)") from None
    except BaseException:
        _end(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class _Pool(ProcessPoolExecutor):
    """Processes that ignore Ctrl-C: the main process receives it, and ends them.

    What they print goes to standard error.
    """

    def __init__(self, count: int) -> None:
        # Spawned: the progress bar has a thread, and a forked copy of that would not run.
        super().__init__(count, multiprocessing.get_context("spawn"), _print_to_stderr)

    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> Future[Any]:
        """Submit a job; a process that starts for it inherits the blocked signal."""
        with ctrl_c_later():
            return super().submit(function, *arguments, **options)


def _print_to_stderr() -> None:
    sys.stdout = sys.stderr


@contextmanager
def ctrl_c_later() -> Iterator[None]:
    """Delay Ctrl-C: a process that starts meanwhile is not interrupted, then or later.

    The signal itself is blocked, which is inherited; other threads may still receive it.
    """
    pressed: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    can_block = hasattr(signal, "pthread_sigmask")  # not on Windows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if can_block else set()
    try:
        yield
    finally:
        if can_block:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
    if pressed:
        signal.raise_signal(signal.SIGINT)


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes without waiting for their jobs."""
    # Before CPython 3.13 the pool's thread complains of cancelled futures whose worker is gone.
    hook, threading.excepthook = threading.excepthook, lambda failure: None
    try:
        processes = multiprocessing.active_children()
        for process in processes:
            process.terminate()
        pool.shutdown(cancel_futures=True)
        for process in processes:
            process.join()
    finally:
        threading.excepthook = hook


SECONDS = 20.0

cluster_option = click.option(
    "--cluster",
    metavar="tcp://HOST:PORT",
    help="Run on the workers of a Dask scheduler instead.",
)


@contextmanager
def executor_of(workers: int, cluster: str | None) -> Iterator[Executor | None]:
    """The executor that --workers and --cluster ask for; None for this process."""
    if cluster is None:
        with worker_processes(workers) as pool:
            yield pool
        return
    if workers != 1:
        raise ValueError(f"--workers {workers}, --cluster {cluster}: expected one of them")
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise ImportError(f"--cluster needs Dask: {PARTS['cluster'].remedy}") from None
    connected = Client(cluster, timeout=SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    with connected as client:
        client.wait_for_workers(1, timeout=SECONDS)
        for worker, version in client.run(version_here).items():
            if version != __version__:
                raise ValueError(f"worker {worker} has specref {version}: expected {__version__}")
        try:
            # Not pure: equal jobs of two runs are two jobs.
            yield client.get_executor(pure=False)
        except KilledWorker as error:
            raise OSError(f"workers died again and again: {error}") from None


@dataclass(frozen=True)
class Run:
    """What the commands that prove have in common: the seed, who works, and what is written."""

    seed: int
    workers: int
    cluster: str | None
    json_file: str | None
    html_file: str | None
    markdown: str | None = None

    def executor(self) -> AbstractContextManager[Executor | None]:
        return executor_of(self.workers, self.cluster)

    def deliver(self, told: Document, record: str, *given: tuple[str, str]) -> None:
        deliver(told, record, self.json_file, self.html_file, self.markdown, *given)


def version_here() -> str:
    return __version__
