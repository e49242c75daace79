"""The kit on CUDA: Transformers' verification there, and the reference between two devices."""

import pytest

from gpu_tests.sizes import PRETENDED
from specref import check
from specref.adapters import IMPLEMENTATIONS
from specref.contrib.engines.transformers import load_verify

KNOWN = {known.check: known.reason for known in IMPLEMENTATIONS["transformers"].known}


def test_transformers_on_cuda_is_lossless(cuda: str) -> None:
    """Alpha 1e-9; any law at total variation 0.2 is found 999 times in 1,000."""
    pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
    only = ["smoke/answers", "smoke", "boundary", "joint/wide", "joint/eos"]
    if cuda == PRETENDED:
        only = only[:1]
    report = check(
        load_verify(cuda),
        only=only,
        detect_tv=0.2,
        seed=11,
        expected_failures=KNOWN,
    )
    assert report.exit_code == 0, report
