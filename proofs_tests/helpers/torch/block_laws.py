"""Exact laws of batched block verification: the thresholds of its coins, bisected in one batch."""

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor

from proofs_tests.helpers.torch.laws import CELLS, LAST, Law, cells
from specref.torch_backend.verification.chains import NO_DRAFT, Coins

Verified = tuple[Tensor, Tensor]


def laws(rule: Callable[..., Verified], p: Tensor, q: Any, tokens: Tensor) -> list[Law]:
    """The laws of blocks: h of each length, then where tokens end if that is the last success."""
    chances, ends = _chances(rule, p, q, tokens), _ends(rule, p, q, tokens)
    return [_law(*row) for row in zip(tokens.tolist(), chances, ends, strict=True)]


def _chances(rule: Callable[..., Verified], p: Tensor, q: Any, tokens: Tensor) -> Any:
    """How likely the coin of length i succeeds, if no other does; 1 if a longer one must."""
    rows, most = tokens.shape
    repeated = [None if t is None else t.repeat_interleave(most, 0) for t in (p, q, tokens)]
    here, length = torch.eye(most, dtype=torch.bool).repeat(rows, 1), torch.arange(most) + 1
    final = torch.zeros(rows * most, dtype=torch.float64)

    def succeeds(u: Tensor) -> Tensor:
        _, counts = rule(*repeated, Coins(torch.where(here, u[:, None], LAST), final))
        return counts > length.repeat(rows)

    return (cells(succeeds, rows * most).double() / CELLS).view(rows, most).tolist()


def _ends(rule: Callable[..., Verified], p: Tensor, q: Any, tokens: Tensor) -> Any:
    """Where token v ends in `final`, if k drafts are kept."""
    (rows, most), size = tokens.shape, p.shape[2]
    tries = (most + 1) * size
    repeated = [None if t is None else t.repeat_interleave(tries, 0) for t in (p, q, tokens)]
    kept = torch.arange(most + 1).repeat_interleave(size).repeat(rows)[:, None]
    token = torch.arange(size).repeat(rows * (most + 1))
    accept = torch.where(torch.arange(1, most + 1) == kept, 0.0, torch.tensor(LAST).double())

    def at_most(u: Tensor) -> Tensor:
        found, _ = rule(*repeated, Coins(accept, u))
        return found.gather(1, kept)[:, 0] <= token

    ends = cells(at_most, rows * tries).double() / CELLS
    return ends.view(rows, most + 1, size).tolist()


def _law(tokens: list[int], chances: list[float], ends: list[list[float]]) -> Law:
    law: Law = {}
    drafts = tokens[: tokens.index(NO_DRAFT)] if NO_DRAFT in tokens else tokens
    chances = [1.0, *chances[: len(drafts)]]
    for kept, succeeds in enumerate(chances):
        chance, start = succeeds * prod(1 - other for other in chances[kept + 1 :]), 0.0
        for token, end in enumerate(ends[kept] if chance else ()):
            if end > start:
                law[(*drafts[:kept], token)] = chance * (end - start)
            start = end
    return law
