"""The declared intervals of accepted drafts hold as often as they say, exactly."""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch

from gpu_tests.acceptance import ALPHA, interval


def test_intervals_hold() -> None:
    """Exactly, for 40 coins of two kinds: the law of their number of heads is a convolution."""
    chances = torch.tensor([0.2] * 20 + [0.9] * 20, dtype=torch.float64)
    law = torch.ones(1, dtype=torch.float64)
    for chance in chances:
        law = torch.cat([law * (1 - chance), law.new_zeros(1)]) + torch.cat(
            [law.new_zeros(1), law * chance]
        )
    for alpha in (ALPHA, 0.01):
        low, high = interval(chances, alpha)
        outside = float(law[:low].sum() + law[high + 1 :].sum())
        assert alpha / 1e4 < outside <= alpha
