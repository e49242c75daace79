"""The first judge of other people's verification: Transformers, a twin, and planted bugs."""

import numpy as np
import pytest

from specref.conformance.implementations import transformers
from specref.conformance.verifier import Verify, judge
from specref.vocabulary import Tokens

TRIALS = 4_000


def sampler(
    rng: np.random.Generator, *, bonus_row: int = -1, drop_residual: bool = False
) -> Verify:
    """A plain NumPy verification, with two bugs that can be switched on."""

    def verify(p: np.ndarray, q: np.ndarray, drafts: Tokens) -> Tokens:
        for i, token in enumerate(drafts):
            if rng.random() >= p[i, token] / q[i, token]:
                excess = p[i] if drop_residual else np.maximum(p[i] - q[i], 0)
                return (*drafts[:i], int(rng.choice(len(excess), p=excess / excess.sum())))
        return (*drafts, int(rng.choice(p.shape[1], p=p[bonus_row] / p[bonus_row].sum())))

    return verify


def test_a_right_sampler_is_consistent() -> None:
    report = judge(sampler(np.random.default_rng(5)), "right", trials=TRIALS)
    assert not report.rejected
    assert len(report.cases) == 5


@pytest.mark.parametrize("bug", [{"bonus_row": 0}, {"drop_residual": True}])
def test_planted_bugs_are_rejected(bug: dict) -> None:
    report = judge(sampler(np.random.default_rng(5), **bug), "wrong", trials=TRIALS)
    assert report.rejected


def test_transformers_is_consistent() -> None:
    pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
    name, verify = transformers.load(seed=11)
    report = judge(verify, name, trials=2_000, seed=11)
    assert not report.rejected
    assert name.startswith("transformers ")


def test_transformers_with_a_planted_bug_is_rejected() -> None:
    pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
    _, verify = transformers.load(seed=11)

    def swapped(p: np.ndarray, q: np.ndarray, drafts: Tokens) -> Tokens:
        return verify(np.concatenate([p[:-1], p[:1]]), q, drafts)

    assert judge(swapped, "bonus from row 0", trials=2_000, seed=11).rejected


def test_bad_alpha() -> None:
    with pytest.raises(ValueError, match="alpha = 0"):
        judge(sampler(np.random.default_rng(5)), "right", alpha=0)
