"""Where commands run: processes of this machine, or the workers of a Dask cluster."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

import click

from specref import __version__
from specref.cli.workers import worker_processes
from specref.optional import PARTS

SECONDS = 20.0

cluster_option = click.option(
    "--cluster",
    metavar="tcp://HOST:PORT",
    help="Run on the workers of a Dask scheduler instead.",
)


@contextmanager
def executor_of(workers: int, cluster: str | None) -> Iterator[Executor | None]:
    """The executor that --workers and --cluster ask for; None for this process.

    * `cluster`: The address of a Dask scheduler.
    * raises `ImportError`: `distributed` is missing, here or where a worker looks for specref.
    * raises `OSError`: Workers died, or the cluster does not answer or has no workers.
    * raises `ValueError`: Both are given, or a worker has another version of specref.
    """
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


def version_here() -> str:
    """The version of specref where this runs."""
    return __version__
