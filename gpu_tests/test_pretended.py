"""What is for CUDA runs on a pretended device, in a process of its own: threads included."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

ROOT = Path(__file__).parents[1]
FILES = ("test_device.py", "test_large_vocabulary.py", "test_caches.py", "test_greedy.py")
FILES += ("test_same_coins.py", "test_rounding.py", "test_generations.py")
TWO = """
import threading
import torch

def test_a_tensor_of_the_host_is_refused(cuda):
    torch.zeros(2, device=cuda) + torch.zeros(2)

def test_it_is_in_threads(cuda):
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.zeros(2, device=cuda).device))
    thread.start()
    thread.join()
    assert [str(one) for one in found] == [cuda]
"""


def pretended(*arguments: str) -> tuple[int, str]:
    """The exit code of pytest on that device, and what it says."""
    command = [sys.executable, "-m", "pytest", "-p", "gpu_tests.pretended", "-q", *arguments]
    options = "-p", "no:cacheprovider", "-n", "0"
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout[-8_000:] + done.stderr[-2_000:]


def cases(file: str) -> object:
    """Generations take minutes on this device."""
    return file if file == FILES[0] else pytest.param(file, marks=pytest.mark.deep)


@pytest.mark.parametrize("file", [cases(file) for file in FILES])
def test_what_is_for_cuda_passes(file: str) -> None:
    # Others have their device as a parameter.
    chosen = [] if file == FILES[0] else ["-k", "cuda"]
    code, said = pretended(f"gpu_tests/{file}", *chosen)
    assert code == 0, said
    assert re.search(r"\b[1-9]\d* passed\b", said), said


def test_its_rules_hold_in_every_thread(tmp_path: Path) -> None:
    """Beside the fixtures of `gpu_tests`; outside of it torch has no such device."""
    file = tmp_path / "test_cuda.py"
    file.write_text(TWO)
    (tmp_path / "conftest.py").write_text("from gpu_tests.conftest import cuda\n")
    code, said = pretended(str(file), "--rootdir", str(tmp_path))
    assert code == 1, said
    assert "1 failed, 1 passed" in said
    assert "Expected all tensors to be on the same device" in said
