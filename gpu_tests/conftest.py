"""On a machine without CUDA everything here is skipped as not_run, and counted."""

import pytest

torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")


@pytest.fixture
def device() -> str:
    if not torch.cuda.is_available():
        pytest.skip("not_run (no CUDA)")
    return "cuda"
