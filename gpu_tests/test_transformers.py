"""The first judge, with Transformers' verification on CUDA."""

import pytest

from specref.conformance.implementations import transformers
from specref.conformance.verifier import judge


def test_transformers_on_cuda_is_consistent(device: str) -> None:
    pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
    name, verify = transformers.load(seed=11, device=device)
    report = judge(verify, name, trials=2_000, seed=11)
    assert not report.rejected, report
