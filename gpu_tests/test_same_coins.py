"""The backend and the NumPy reference, given the same coins, emit the same blocks.

On real logits: laws are computed apart, in float32 on the device and in float64 by NumPy, so a
few blocks may differ: those in which some p and q within 1e-5 of theirs, relatively, accept
another draft or let another token win the race. These are counted, and at most one in a hundred;
by an inverse CDF five. There each of 2,000 tokens has an end that moves by 1e-5 / 3 in the mean,
and five times as far where p - q is a fifth of p + q. All others agree.
"""

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor

from gpu_tests.blocks import Blocks, Last
from gpu_tests.lab import Figure, Lab
from specref.contrib.real_models import planted
from specref.torch_backend import Coins, verify

UNDECIDED = {"race": 0.01, "final": 0.05}
Verify = Callable[..., tuple[Tensor, Tensor]]


def differing(blocks: Blocks, verified: Verify) -> Tensor:
    tokens, counts = verified(blocks.p, blocks.q, blocks.drafts, coins=blocks.coins)
    assert torch.equal(counts, (tokens >= 0).sum(1))
    return (tokens != blocks.expected()).any(1)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("last", ["race", "final"])
@pytest.mark.parametrize("method", ["standard", "tli", "union"])
def test_blocks_are_those_of_the_reference(
    lab: Lab, method: str, last: Last, figure: Figure
) -> None:
    total, undecided, wrong = 0, 0, 0
    for blocks in (some.by(last) for some in lab.blocks(method)):
        decided = blocks.decided()
        total, undecided = total + len(decided), undecided + int((~decided).sum())
        wrong += int((differing(blocks, verify) & decided).sum())
    figure(
        f"{method}, same coins, {last}: {total} blocks, {undecided} near a tie, "
        f"{wrong} of the others different"
    )
    assert wrong == 0
    assert undecided <= UNDECIDED[last] * total


def shifted(p: Tensor, q: Tensor, drafts: Tensor, *, coins: Coins) -> tuple[Tensor, Tensor]:
    """Accept iff u < p / q + 0.05."""
    return verify(p, q, drafts, coins=coins._replace(accept=coins.accept - 0.05))


def wrong_bonus(p: Tensor, q: Tensor, drafts: Tensor, *, coins: Coins) -> tuple[Tensor, Tensor]:
    return verify(torch.cat([p[:, :-1], p[:, -2:-1]], 1), q, drafts, coins=coins)


def residual_is_p(p: Tensor, q: Tensor, drafts: Tensor, *, coins: Coins) -> tuple[Tensor, Tensor]:
    """Race for p after a rejection."""
    assert coins.race is not None
    tokens, counts = verify(p, q, drafts, coins=coins)
    place = (counts - 1)[:, None]
    weights = p[torch.arange(len(p), device=p.device), place[:, 0]]
    return tokens.scatter_(1, place, (coins.race / weights).argmin(1, keepdim=True)), counts


def mirrored(p: Tensor, q: Tensor, drafts: Tensor, *, coins: Coins) -> tuple[Tensor, Tensor]:
    """The last token from the other end."""
    assert coins.final is not None
    return verify(p, q, drafts, coins=coins._replace(final=1 - coins.final))


@pytest.mark.parametrize("bug", [shifted, wrong_bonus, mirrored])
def test_bugs_of_inverse_cdfs_differ(lab: Lab, bug: Verify) -> None:
    blocks = lab.blocks("standard")[0].by("final")
    assert (differing(blocks, bug) & blocks.decided()).any()


@pytest.mark.parametrize(
    "bug", [shifted, wrong_bonus, residual_is_p, planted.row_before()["verify"]]
)
def test_bugs_differ_where_it_is_decided(lab: Lab, bug: Verify) -> None:
    blocks = lab.blocks("standard")[0]
    assert (differing(blocks, bug) & blocks.decided()).any()


def test_what_is_undecided_can_come_out_otherwise(lab: Lab) -> None:
    """At a margin of 0.1, moving p and q within it changes undecided blocks and no others."""
    blocks, generator = lab.blocks("standard")[0], torch.Generator().manual_seed(1)
    p, q = (
        law * (1 + 0.1 * (2 * torch.rand(law.shape, generator=generator) - 1)).to(law.device)
        for law in (blocks.p, blocks.q)
    )
    tokens, _ = verify(p, q, blocks.drafts, coins=blocks.coins)
    differs = (tokens != blocks.expected()).any(1)
    assert differs.any()
    assert not (differs & blocks.decided(0.1)).any()
