"""The fused kernels with the constants that are shipped, over real sizes of vocabularies.

Other tests shrink chunks and splits, so that few tokens make several; here nothing is changed.
Laws are dyadic: sums are exact in any order, so blocks are those of the eager rule, coin by coin.
"""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("triton", reason="not_run (no triton)")

import torch

from proofs_tests.helpers.torch.fused_batches import differing, differing_logits, kernels_needed
from specref.torch_backend import fused
from specref.torch_backend.validation import NO_DRAFT
from specref.torch_backend.verification.chains import Coins

kernels_needed()
BITS = 22
ROWS, LOOKAHEAD = 4, 2


def laws(lines: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """Multiples of 2^-22 with sum 1, most of it on 200 tokens, far apart."""
    counts = torch.ones(lines, size, dtype=torch.int64)
    heavy = torch.randint(size, (lines, 200), generator=generator)
    counts.scatter_add_(1, heavy, torch.full_like(heavy, 2**14))
    counts[:, -1] += 2**BITS - counts.sum(dim=1)
    return counts.double() / 2**BITS


def given(size: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Coins]:
    """Ragged rows, drafts that are likely under both, random numbers on a grid of 2^-20."""
    generator = torch.Generator().manual_seed(size)
    p = laws(ROWS * (LOOKAHEAD + 1), size, generator).view(ROWS, -1, size)
    q = (p[:, :LOOKAHEAD] + p[:, :LOOKAHEAD].roll(1, 0)) / 2
    tokens = torch.multinomial(q.flatten(0, 1), 1, generator=generator).view(ROWS, LOOKAHEAD)
    tokens[-1, 1:], tokens[-2, :] = NO_DRAFT, NO_DRAFT
    numbers = torch.randint(2**20, (ROWS, LOOKAHEAD + 1), generator=generator) + 0.5
    numbers = numbers.double() / 2**20
    coins = Coins(numbers[:, :-1], numbers[:, -1])
    return p.to(dtype), q.to(dtype), tokens, coins


SIZES = [50_257, *(pytest.param(n, marks=pytest.mark.deep) for n in (49_152, 152_064, 262_144))]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.deep)], ids=str
)
def test_blocks_of_laws_are_those_of_the_eager_rule(size: int, dtype: torch.dtype) -> None:
    batch = given(size, dtype)
    assert size > 4 * fused.CHUNK_BYTES // dtype.itemsize, "several chunks"
    assert differing(batch) == []


@pytest.mark.parametrize("size", SIZES)
def test_blocks_of_logits_are_those_of_the_eager_rule(size: int) -> None:
    """In float64: of these numbers none is within rounding of a border."""
    p, q, tokens, coins = given(size, torch.float64)
    assert differing_logits((p.log(), q.log(), tokens, coins), 1.0) == []


def test_a_part_that_is_left_out_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of every line is not summarised if each program makes half of its steps."""
    launch, steps = fused.launch, []

    def half(kernel, grid, *arguments, **constants):
        if kernel.__name__ == "judge":
            steps.append(constants["steps"])
            constants["steps"] //= 2
        launch(kernel, grid, *arguments, **constants)

    p, q, tokens, coins = given(50_257, torch.float64)
    monkeypatch.setattr(fused, "launch", half)
    assert differing_logits((p.log(), q.log(), tokens, coins), 1.0) != []
    assert steps[0] > 1
