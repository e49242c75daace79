"""Files that run kernels, on a CPU: in Triton's interpreter, in processes of their own.

Whether kernels are interpreted is settled as Triton makes them, once for a process.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("triton", reason="not_run (no triton)")

ROOT = Path(__file__).parents[3]
FILES = (
    # At small constants; at those of production the next one asks the same.
    pytest.param("proofs_tests/torch_backend/test_fused.py", marks=pytest.mark.deep),
    "proofs_tests/torch_backend/fused/test_production.py",
    "gpu_tests/test_fused_benchmarks.py",
    "specref/torch_backend/fused",
)


def interpreted(*arguments: str) -> str:
    """What pytest says of tests that pass in the interpreter, some at least.

    Raises
    ------
    AssertionError
        A test fails, or none was run.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert re.search(r"\b[1-9]\d* passed\b", done.stdout), done.stdout[-2_000:]
    return done.stdout


@pytest.mark.parametrize("file", FILES)
def test_files_pass_in_the_interpreter(file: str, request: pytest.FixtureRequest) -> None:
    deep = ["--deep"] * bool(request.config.option.deep)
    said = interpreted(file, "-W", "ignore::RuntimeWarning", "-W", "error::UserWarning", *deep)
    assert "no CUDA): test_interpreted" not in said


SKIPPED = "import pytest\npytest.skip('x', allow_module_level=True)\n"


@pytest.mark.parametrize("source", ["def test_it():\n    assert False\n", SKIPPED])
def test_a_failure_and_a_skip_are_noticed(source: str, tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(source)
    with pytest.raises(AssertionError):
        interpreted(str(file), "--noconftest", "--rootdir", str(tmp_path))
