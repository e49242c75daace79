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
    "proofs_tests/torch_backend/fused/test_production.py",
    "gpu_tests/test_fused_benchmarks.py",
    "specref/torch_backend/fused",
)
SMALL = "proofs_tests/torch_backend/test_fused.py"
"""With --deep: at small constants it asks what the first one asks at those of production."""


def interpreted(*arguments: str) -> str:
    """What pytest says of tests that pass in the interpreter, some at least.

    Raises
    ------
    AssertionError
        A test fails, or none was run.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    more = {"TRITON_INTERPRET": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **more, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert re.search(r"\b[1-9]\d* passed\b", done.stdout), done.stdout[-2_000:]
    return done.stdout


def test_files_pass_in_the_interpreter(request: pytest.FixtureRequest) -> None:
    more = [SMALL, "--deep"] if request.config.option.deep else []
    warnings = ["-W", "ignore::RuntimeWarning", "-W", "error::UserWarning"]
    said = interpreted(*FILES, *more, *warnings)
    assert "no CUDA): test_interpreted" not in said


SKIPPED = "import pytest\npytest.skip('x', allow_module_level=True)\n"


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("source", ["def test_it():\n    assert False\n", SKIPPED])
def test_a_failure_and_a_skip_are_noticed(source: str, tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(source)
    with pytest.raises(AssertionError):
        interpreted(str(file), "--noconftest", "--rootdir", str(tmp_path))
