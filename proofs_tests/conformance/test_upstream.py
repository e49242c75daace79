"""Criteria of engines' own tests, written anew: what they reject, and what survives them.

Ten runs each, seed 0. If the vLLM criterion rejected the clean rule in a tenth of runs, more than
half of ten would be rejected with probability 1.5e-4; a rule rejected in nine tenths is rejected
in fewer than half as rarely.
"""

import numpy as np
import pytest

from proofs_tests.benchmarks.upstream import (
    CLEAN,
    STEPS,
    kit_killers,
    kit_verdict,
    trt_runs,
    visible,
    vllm_runs,
)

RUNS, SEED = 10, 0
BONUS_BUG = "bonus-from-stale-residual"


def rejections(name: str) -> int:
    return sum(vllm_runs(STEPS[name], RUNS, SEED))


def test_flattened_tokens_of_the_clean_rule_follow_the_target_and_those_of_a_bug_do_not():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    shares = {}
    for name in (CLEAN, "argmax-verify"):
        law = visible(STEPS[name], (p, q), 2)
        counts = law.weights @ law.tokens
        shares[name] = counts / counts.sum()
    assert np.allclose(shares[CLEAN], p, rtol=0, atol=1e-12)
    assert np.abs(shares["argmax-verify"] - p).sum() > 0.5


def test_the_clean_rule_passes_the_vllm_criterion_in_most_runs():
    assert rejections(CLEAN) <= RUNS // 2


def test_argmax_verify_is_rejected_by_the_vllm_criterion():
    assert rejections("argmax-verify") >= RUNS // 2


@pytest.mark.deep
def test_a_bonus_bug_survives_the_vllm_criterion_and_the_kit_kills_it():
    assert rejections(BONUS_BUG) <= RUNS // 2
    killers = kit_killers(BONUS_BUG)
    assert set(killers) - {"joint/exact"}, "not killed by samples"
    assert kit_verdict(killers).startswith("killed")


@pytest.mark.deep
@pytest.mark.parametrize(("name", "rejected"), [(CLEAN, 0), ("argmax-verify", 2)])
def test_the_tensorrt_llm_criterion(name, rejected):
    assert sum(trt_runs(STEPS[name], 2, SEED)) == rejected
