"""Real servers on checkpoints with a known law, each with a draft model: llama.cpp and mlx-lm."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specref.contrib.checkpoints import build, named_pair

STARTS_WITHIN = 120.0


def pair(folder: Path, law: str = "lookback") -> Path:
    """The folder of a target and a drafter, for both servers."""
    build(named_pair(law), folder, ["hf", "gguf"])
    return folder


@contextmanager
def llama(folder: Path, kind: str | None, probabilistic: bool = False) -> Iterator[str]:
    """llama.cpp's server in this process; `kind` is how it speculates, None for not."""
    from xllamacpp import Server

    from specref.contrib.engines.llama_cpp import parameters, speculate

    given = parameters(folder / "target")
    given.port = _free_port()
    if kind is not None:
        speculate(given, kind, folder / "drafter", probabilistic)
    server = Server(given)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server


@contextmanager
def mlx(folder: Path, drafts: bool) -> Iterator[str]:
    """mlx-lm's server, in a process of its own."""
    port = _free_port()
    command = [sys.executable, "-m", "mlx_lm", "server", "--model", str(folder / "target")]
    command += ["--port", str(port)]
    if drafts:
        command += ["--draft-model", str(folder / "drafter"), "--num-draft-tokens", "3"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, "HF_HUB_OFFLINE": "1"}, **quiet) as process:
        try:
            _wait(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Until a server answers."""
    ends = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < ends and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{url} did not answer (exit code {process.poll()})")
