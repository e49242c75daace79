"""What is for CUDA runs on a pretended device, in processes of their own: threads included.

By default some steps of `gpu_tests.run`, with `--deep` all. The rules of that device are tested in
proofs_tests' `test_pretend`.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from click.testing import CliRunner

from gpu_tests import run as runner
from proofs_tests.contrib.real_models.tiny import save

ROOT = Path(__file__).parents[1]
SAMPLE = (
    "test_device.py::test_blocks_are_those_of_the_host",
    "test_device.py::test_verification_waits_for_nothing",
)
BUGS = """
import threading

import torch

from gpu_tests import blocks
from gpu_tests.benchmarks.cases import TINY, Problem
from gpu_tests.pairs import CASES
from gpu_tests.pairs import Models, prompts_of
from gpu_tests.recording import record
from specref.torch_backend.drafters import drafts


def test_a_tensor_is_left_on_the_host(cuda, monkeypatch):
    own = drafts.uniforms
    monkeypatch.setattr(drafts, "uniforms", lambda seeds, *site: own(seeds.cpu(), *site))
    pair = Models(cuda).pair("homogeneous")
    record(pair, CASES["standard"], prompts_of(pair, 2), 3)


def test_a_generator_is_of_the_host(cuda, monkeypatch):
    generator = torch.Generator
    monkeypatch.setattr(torch, "Generator", lambda device: generator())
    Problem.drawn(TINY.lines[0], cuda, 1)


def test_numpy_is_asked_of_the_device(cuda, monkeypatch):
    monkeypatch.setattr(blocks, "_reference", lambda *given: given[2].numpy())
    blocks.held_out_blocks(Models(cuda).pair("homogeneous"), "standard", 2)


def test_another_thread_has_the_device(cuda):
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.tensor([2], device=cuda).device))
    thread.start()
    thread.join()
    assert [str(one) for one in found] == [cuda]
"""
SAID = (
    "Expected all tensors to be on the same device",
    "Expected a 'cuda' device type for generator but found 'cpu'",
    "can't convert cuda:0 device type tensor to numpy",
)


def test_a_sample_passes_and_device_bugs_are_found(tmp_path: Path) -> None:
    """Each with CUDA's own words, and in every thread."""
    file = tmp_path / "test_cuda.py"
    file.write_text(BUGS)
    (tmp_path / "conftest.py").write_text("from gpu_tests.conftest import cuda\n")
    chosen = [*(f"gpu_tests/{one}" for one in SAMPLE), str(file)]
    command = [sys.executable, "-m", "gpu_tests.pretended", "pytest", "-q", *chosen]
    options = "-p", "no:cacheprovider", "-n", "0"
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    said = done.stdout[-12_000:] + done.stderr[-2_000:]
    assert done.returncode == 1, said
    assert f"{len(SAID)} failed, {len(SAMPLE) + 1} passed" in said, said
    assert [words for words in SAID if not re.search(f"Error: {re.escape(words)}", said)] == []


SAMPLED = "device", "benchmark of verification"
EVERY = pytest.param(tuple(step.name for step in runner.STEPS), marks=pytest.mark.deep, id="all")


@pytest.mark.parametrize("names", [pytest.param(SAMPLED, id="sampled"), EVERY])
def test_steps_of_the_command_end_in_its_file(names, tmp_path, monkeypatch) -> None:
    """As on a GPU, but for sizes, most tests of kernels, the models, and where records go."""
    sizes = {"target": (300, 1), "drafter": (280, 2)}
    folders = [f"--{name}={save(tmp_path / name, *size)}" for name, size in sizes.items()]

    def elsewhere(step: runner.Step) -> runner.Step:
        given = [one.replace("docs/records", str(tmp_path)) for one in step.arguments]
        given += ["-k", "strides or lens or wait"] if step.name == "kernels" else []
        return replace(step, arguments=(*given, *folders * ("specref" in given)))

    steps = [elsewhere(step) for step in runner.STEPS if step.name in names]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(runner, "BEFORE", ("gpu_tests.pretended",))
    monkeypatch.setattr(runner, "STEPS", steps)
    monkeypatch.setattr(runner, "machine", lambda: {"device": "pretended", "memory_gb": 140.0})
    output = tmp_path / "cuda.json"
    hours = "36000"  # so that a slow machine leaves no step out
    result = CliRunner().invoke(runner.main, ["--output", str(output), "--seconds", hours])
    record = json.loads(output.read_text())["steps"]
    open_ = {name: step["status"] for name, step in record.items() if step["status"] != "passed"}
    few = {"published models": "inconclusive"} if "published models" in names else {}
    assert (open_, result.exit_code) == (few, 2 if few else 0), record
    assert tuple(record) == names
