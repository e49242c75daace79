"""The command for a machine with a GPU, on a pretended one: steps, limits, going on."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from click.testing import CliRunner

from gpu_tests import run as runner
from gpu_tests.run import Step, exit_code, main, run
from specref.torch_backend.methods import DRAFTERS

HERE = {"device": "pretended", "memory_gb": 8.0}
GOOD = "def test_one(record_property):\n    record_property('figure', 'f')\n"
CASES = {
    "passed": GOOD,
    "failed": "def test_one():\n    assert False\n",
    "not_run": "import pytest\n\ndef test_one():\n    pytest.skip('not_run (no CUDA)')\n",
    "timed_out": "import time\n\ndef test_one():\n    time.sleep(60)\n",
}


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Two steps, of which the second is too large; and where the record goes."""
    file = tmp_path / "test_it.py"
    file.write_text(GOOD)
    option = "def pytest_addoption(parser):\n    parser.addoption('--deep', action='store_true')\n"
    (tmp_path / "conftest.py").write_text(option)
    options = (str(file), "-p", "no:cacheprovider", f"--rootdir={tmp_path}")
    small, large = Step("small", options), Step("large", options, memory=80.0)
    monkeypatch.setattr(runner, "STEPS", (small, large))
    monkeypatch.setattr(runner, "machine", lambda: HERE)
    return small, tmp_path / "cuda.json"


@pytest.mark.deep
@pytest.mark.parametrize("status", CASES)
def test_outcomes(steps, tmp_path, status):
    (tmp_path / "test_it.py").write_text(CASES[status])
    found = run(steps[0], 3.0 if status == "timed_out" else 60.0)
    assert found["status"] == status
    if status == "passed":
        assert (found["passed"], found["figures"]) == (1, ["f"])
    if status == "failed":
        assert found["failed"] == ["test_it::test_one"]


def test_a_command_that_fails_is_a_failure(tmp_path):
    found = run(Step("it", ("no_such_module",), tests=False), 60)
    assert found["status"] == "failed"
    assert "no_such_module" in found["said"]


def test_it_goes_on_and_refuses_another_machine(steps, monkeypatch):
    _, output = steps
    arguments = ["--output", str(output)]
    assert CliRunner().invoke(main, [*arguments, "--seconds", "1"]).exit_code == 3
    assert CliRunner().invoke(main, arguments).exit_code == 0
    record = json.loads(output.read_text())
    assert record["steps"]["small"]["status"] == "passed"
    assert record["steps"]["large"] == {"status": "not_run", "said": "too little memory"}
    assert CliRunner().invoke(main, [*arguments, "--seconds", "1"]).exit_code == 0
    monkeypatch.setattr(runner, "machine", lambda: {**HERE, "commit": "other"})
    assert CliRunner().invoke(main, arguments).exit_code == 2


def test_a_step_that_never_ends_is_tried_twice(steps):
    small, _ = steps
    record = {"machine": HERE, "steps": {"small": {"status": "timed_out", "tries": 1}}}
    assert runner.left_over(record, 8.0) == [small]
    record["steps"]["small"]["tries"] = 2
    assert runner.left_over(record, 8.0) == []
    assert exit_code(record) == 1
    assert exit_code({"steps": {"a": {"status": "not_run"}}}) == 2


def test_without_cuda_it_says_so_and_measures_nothing(tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is CUDA")
    output = tmp_path / "cuda.json"
    result = CliRunner().invoke(main, ["--output", str(output)])
    assert (result.exit_code, result.output) == (2, "not_run (no CUDA)\n")
    assert not output.exists()


def files(steps):
    return {one for step in steps for one in step.arguments if one.endswith(".py")}


def test_every_file_for_a_device_is_in_a_step():
    root = Path(runner.__file__).parent.parent
    assert all((root / file).is_file() for file in files(runner.STEPS))
    ours = {f"gpu_tests/{path.name}" for path in root.glob("gpu_tests/test_*.py")}
    without = {f"gpu_tests/test_{name}.py" for name in ("run", "pretended")}
    assert ours - files(runner.STEPS) == without
    assert ours - files(runner.STEPS[2:]) != without


def test_every_method_has_a_step_and_what_is_of_none_has_one():
    names = [step.name for step in runner.STEPS if "texts" in step.name]
    assert names == [
        *(f"texts of {one}" for one in ("autoregressive", *DRAFTERS)),
        "texts with bugs of the rule",
    ]


def test_a_command_that_is_open_is_no_pass(tmp_path):
    open_ = Step("it", ("gpu_tests.run", "--nonsense"), tests=False)
    assert run(open_, 60)["status"] == "inconclusive"
    assert exit_code({"steps": {"a": {"status": "passed"}, "b": {"status": "inconclusive"}}}) == 2
