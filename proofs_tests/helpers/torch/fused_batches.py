"""Batches for fused verification, and where its blocks are not those of the eager rule.

Kernels run on CUDA, or in a process that was started for Triton's interpreter.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from triton import knobs

from proofs_tests.helpers.torch.laws import (
    LAST,
    Case,
    Row,
    accept_chances,
    batch,
    drafted,
    token_ends,
)
from specref.pairs import toy_pairs
from specref.torch_backend import shape_logits
from specref.torch_backend.fused import verify, verify_logits
from specref.torch_backend.validation import NO_DRAFT, OUTSIDE
from specref.torch_backend.verification import chains
from specref.torch_backend.verification.chains import Coins

NEAR = 2.0**-40
ROWS, LOOKAHEAD, SIZE = 24, 3, 5
DEVICE = "cpu" if knobs.runtime.interpret else "cuda"
Given = tuple[Tensor, Tensor | None, Tensor, Coins]


def kernels_needed() -> None:
    """Skip a file of tests where kernels run neither on CUDA nor in the interpreter."""
    if DEVICE == "cuda" and not torch.cuda.is_available():
        reason = "not_run here (no CUDA): test_interpreted.py runs it in Triton's interpreter"
        pytest.skip(reason, allow_module_level=True)


def eager(p: Tensor, q: Tensor | None, tokens: Tensor, coins: Coins, **more: Any) -> Any:
    return chains.verify(p, q, tokens, coins=coins, **more)


def placed(given: Given) -> Given:
    """The batch on the device of kernels."""
    p, q, tokens, coins = given
    moved = [None if one is None else one.to(DEVICE) for one in (p, q, tokens, *coins)]
    return *moved[:3], Coins(*moved[3:])


def differing(given: Given, **more: Any) -> list[int]:
    """Rows whose blocks are not the eager ones."""
    right, right_counts = eager(*given, **more)
    p, q, tokens, coins = placed(given)
    more = {name: one.to(DEVICE) for name, one in more.items()}
    found, counts = (one.cpu() for one in verify(p, q, tokens, coins=coins, **more))
    wrong = (found != right).any(dim=1) | (counts != right_counts)
    return wrong.nonzero()[:, 0].tolist()


def dyadic(*shape: int, generator: torch.Generator) -> Tensor:
    """Laws of multiples of 1/128, some of them 0: exact in every dtype."""
    drawn = torch.randint(0, 2 * SIZE, (*shape, 128), generator=generator) // 2
    laws = torch.nn.functional.one_hot(drawn, SIZE).sum(dim=-2).double() / 128
    return torch.where(torch.rand(laws.shape, generator=generator) < 0.3, 0.0, laws)


def drawn(rows: int = ROWS, dtype: torch.dtype = torch.float64) -> Given:
    """Rows of 0 to 3 drafts, OUTSIDE among them; p sums to 1, q to 1 at most."""
    generator = torch.Generator().manual_seed(1)
    p, q = (dyadic(rows, n, generator=generator) for n in (LOOKAHEAD + 1, LOOKAHEAD))
    p[..., 1] += 1 - p.sum(dim=-1)
    tokens = torch.randint(0, SIZE, (rows, LOOKAHEAD), generator=generator)
    tokens[::5, 1] = OUTSIDE
    lens = torch.arange(rows) % (LOOKAHEAD + 1)
    ended = (torch.arange(LOOKAHEAD) >= lens[:, None]) | (tokens == OUTSIDE).roll(1, 1)
    tokens = tokens.masked_fill(ended.cummax(dim=1).values, NO_DRAFT)
    uniforms = torch.rand(rows, LOOKAHEAD + 1, generator=generator, dtype=torch.float64)
    return p.to(dtype), q.to(dtype), tokens, Coins(uniforms[:, :-1], uniforms[:, -1])


def edges(dtype: torch.dtype = torch.float64, u: float = 0.0) -> Given:
    """p = 0, p = q, p = q but for rounding, 0 / 0; weights of 0 at both ends of every law."""
    p = torch.tensor([[0.0, 0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.25, 0.75, 0.0]], dtype=dtype)
    q = torch.tensor([[0.5, 0.0, 0.0, 0.0, 0.5], [0.0, 0.0, 0.5, 0.5, 0.0]], dtype=dtype)[
        [0, 1, 1, 1]
    ]
    q[2] *= 1 + torch.finfo(dtype).eps
    uniforms = torch.full((4, 2), u, dtype=torch.float64)
    tokens = torch.tensor([[0], [2], [2], [0]])
    return p.repeat(4, 1, 1), q[:, None], tokens, Coins(uniforms[:, :1], uniforms[:, 1])


def critical(step: Any, name: str) -> Iterator[Given]:
    """Coins on both sides of every threshold of the eager rule, for all drafts of a pair."""
    pair = next(pair for pair in toy_pairs("quick") if pair.name == name)
    case = Case(pair.target, (), drafted(step, pair.target, pair.drafter, (), 2))
    p, q, tokens = batch([Row(case.target, (), drafts) for drafts in case.drafts])
    (rows, most), size = tokens.shape, p.shape[2]
    accepts = torch.tensor(accept_chances(eager, p, q, tokens)).double()
    ends = torch.tensor(token_ends(eager, p, q, tokens)).double().view(rows, most + 1, size)
    for side in (-NEAR, NEAR):
        for i in range(most):
            uniforms = torch.zeros(rows, most, dtype=torch.float64)
            uniforms[:, i] = (accepts[:, i] + side).clamp(0, LAST)
            yield p, q, tokens, Coins(uniforms, torch.full((rows,), 0.5))
        for kept in range(most + 1):
            uniforms = torch.where(torch.arange(most) < kept, 0.0, LAST).double().expand(rows, -1)
            for end in (ends[:, kept] + side).clamp(0, LAST).unbind(1):
                yield p, q, tokens, Coins(uniforms.contiguous(), end)


def together(given: Iterator[Given]) -> Given:
    p, q, tokens, coins = zip(*given, strict=True)
    accept, final, _ = zip(*coins, strict=True)
    laws = [torch.cat(one) for one in (p, q, tokens)]
    return *laws, Coins(torch.cat(accept), torch.cat(final))


def differing_logits(given: Given, temperature: float = 1.0) -> list[int]:
    p, q, tokens, coins = given
    laws = [None if one is None else shape_logits(one, temperature) for one in (p, q)]
    right, _ = eager(*laws, tokens, coins)
    p, q, tokens, coins = placed(given)
    found, _ = verify_logits(p, q, tokens, temperature=temperature, coins=coins)
    return (found.cpu() != right).any(dim=1).nonzero()[:, 0].tolist()


def logits() -> Given:
    """A third of rows forbids a whole chunk, another has most of p after the first chunk."""
    p, q, tokens, coins = drawn(18)
    p[::3, :, 2:4] = 0
    p[::3, :, 0] = q[..., 4] = 0.25
    p[1::3, :, 4] = 8
    tokens[1::3] = tokens[1::3].where(tokens[1::3] < 0, 4)
    return p.log(), q.log(), tokens, coins
