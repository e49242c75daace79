"""The benchmark of the fused kernels times what verifies as the eager rule does."""

from dataclasses import replace
from typing import get_args

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("triton", reason="not_run (no triton)")

import torch
from triton import knobs

from gpu_tests.benchmarks import verification
from gpu_tests.benchmarks.cases import SIZES, TINY, Case, Problem, Variant
from gpu_tests.benchmarks.figures import BATCH, VOCABULARY

CASE = Case(3, 2, 100, "float32", "probabilities", "fused")


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("given", ["probabilities", "logits"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fused_blocks_are_the_eager_ones(given: str, dtype: str, device: str) -> None:
    if device == "cpu" and not knobs.runtime.interpret:
        pytest.skip("not_run here: proofs_tests' test_interpreted.py runs it in the interpreter")
    case = replace(CASE, input=given, dtype=dtype)
    problem = Problem.drawn(case, device, 1)
    for variant in ("fused", "fused graph")[: 1 + (device != "cpu")]:
        found = problem.call(replace(case, variant=variant))()
        right = problem.call(replace(case, variant="eager"))()
        assert all(map(torch.equal, found, right))
    other = replace(problem, coins=problem.coins._replace(accept=problem.coins.accept * 0 + 0.999))
    assert not torch.equal(other.call(case)()[0], right[0])


def test_every_variant_is_measured_where_a_figure_is_to_be_reached() -> None:
    variants = {
        case.variant
        for case in SIZES["cuda"].lines
        if (case.batch, case.vocabulary) == (BATCH, VOCABULARY)
    }
    assert variants == set(get_args(Variant))
    assert {case.variant for case in SIZES["cpu"].lines} == {"eager", "compiled"}


def test_fused_rows_are_measured(cuda: str) -> None:
    tiny = replace(TINY, batches=(1,), fused=lambda case: True, repetitions=1)
    rows = verification.rows(list(verification.steps(cuda, tiny, 1)))
    assert {row["status"] for row in rows} == {"measured"}
    assert {row["variant"] for row in rows} == {"eager", "fused", "fused graph"}
