"""Low precision: the page has every example, and tolerance is what probing allows."""

from typing import Any

import numpy as np
import pytest

from specref.conformance.public import check
from specref.conformance.status import Status
from specref.examples.correct import verify


# Probing by what is claimed.
def moved(by: float) -> Any:
    """A draft is kept less often by so much of its probability."""

    def sampler(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        p = target_probs.copy()
        p[..., 0], p[..., 1:] = p[..., 0] * (1 - by), p[..., 1:] * (1 - by)
        p[..., -1] += by
        return verify(p, draft_probs, draft_tokens, rng=rng)

    return sampler


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("tolerance", "status"),
    [(0.0, Status.FAILED), (1e-4, Status.FAILED), (0.01, Status.PASSED), (0.02, Status.PASSED)],
)
def test_the_tolerance_of_each_token_is_allowed(tolerance: float, status: Status) -> None:
    (result,) = check(moved(0.01), only=["joint/probed"], tolerance=tolerance).results
    assert result.status == status, result.message
    assert (f"tolerance 3 x {tolerance:g}" in result.message) == bool(tolerance)
    assert 1e-3 < result.evidence["total_variation"] <= 0.03


def test_what_is_beyond_the_tolerance_fails_exactly() -> None:
    (result,) = check(moved(0.2), only=["joint/probed"], tolerance=0.012).results
    assert result.status == Status.FAILED
    assert "exactly; tolerance 3 x 0.012" in result.message


def test_trees_have_the_same_tolerance() -> None:
    from specref.algorithms.trees import topdown
    from specref.contracts.tree import as_verifier

    right = as_verifier(topdown.verify)

    def sampler(
        target_probs: Any, draft_probs: Any, draft_tokens: Any, parents: Any, *, rng: Any
    ) -> Any:
        p = target_probs * 0.99
        p[..., -1] += 0.01
        return right(p, draft_probs, draft_tokens, parents, rng=rng)

    for tolerance, status in ((0.0, Status.FAILED), (0.01, Status.PASSED)):
        (result,) = check(
            sampler, contract="tree", only=["joint/probed"], tolerance=tolerance
        ).results
        assert result.status == status, result.message


def test_law_without_exactness_is_said_to_be_none() -> None:
    pytest.importorskip("torch", reason="not_run (torch is not installed)")
    from specref.examples.low_precision import verify_bfloat16

    claims = {"arrays": "torch", "dtype": "bfloat16", "tolerance": 0.012}
    (result,) = check(verify_bfloat16, only=["joint/probed"], **claims).results
    assert (result.status, result.message) == (
        Status.NOT_APPLICABLE,
        "low precision: the distribution is not exact",
    )


def test_samples_of_the_examples_are_what_they_should_be() -> None:
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    from specref.examples import low_precision

    torch.manual_seed(1)
    p = torch.tensor([[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]]).repeat(4_000, 1, 1)
    q = torch.tensor([[[1.0, 0.0, 0.0]]]).repeat(4_000, 1, 1)
    drafts = torch.zeros((4_000, 1), dtype=torch.int64)
    for name in ("verify_bfloat16", "verify_float16"):
        tokens, counts = getattr(low_precision, name)(p, q, drafts)
        assert set(map(tuple, tokens.tolist())) == {(0, 2), (1, -1)}
        # Kept half of the time: six standard deviations are 190 of 4,000.
        assert abs(int((counts == 2).sum()) - 2_000) < 190
    assert np.isclose(float(p[0, 0].sum()), 1)
