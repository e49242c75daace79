"""What only CUDA can show: no waiting, the same coins, the kit's verdict there, and memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor

from gpu_tests.sizes import PRETENDED
from specref import check
from specref.adapters.torch_backend import (
    Verified,
    load_seeded_verify,
    load_verify,
    load_verify_block,
    load_verify_ragged,
    load_verify_tree,
)
from specref.contracts.capabilities import capabilities_of, capable
from specref.torch_backend import Coins, row_coins, uniforms, verify, verify_matching

COPIES = 3
TREES = ["smoke/answers", "smoke", "boundary", "joint/siblings", "joint/ending"]
EXACT = ["smoke/answers", "smoke/no-drafts", "smoke/one-hot", "smoke/large", "replay", "boundary"]
SAMPLED = [
    "smoke/answers",
    "smoke",
    "joint/wide",
    "joint/eos",
    "independence/rows-wide",
    "iterations/deep",
]


def batch(device: str, rows: int = 64, lookahead: int = 4, size: int = 32_000) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(1)
    p, q = (
        torch.randn(rows, count, size, generator=generator).softmax(-1).to(device)
        for count in (lookahead + 1, lookahead)
    )
    drafts = torch.randint(0, size, (rows, lookahead), generator=generator).to(device)
    coins = row_coins(torch.arange(rows, device=device), 0, lookahead)
    return p, q, drafts, coins


@contextmanager
def refusing_to_wait() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def waiting(p: Tensor, q: Tensor, drafts: Tensor, coins: Coins) -> float:
    return float(verify(p, q, drafts, coins=coins)[1].sum().item())


def test_verification_waits_for_nothing(cuda: str) -> None:
    p, q, drafts, coins = batch(cuda)
    race = coins._replace(race=torch.rand(p.shape[0], p.shape[2], device=cuda))
    lens = torch.full((len(p),), 2, device=cuda)
    with refusing_to_wait():
        verify(p, q, drafts, coins=coins)
        verify(p, None, drafts, lens=lens, coins=race)
        verify_matching(p, drafts, coins=coins)
    with refusing_to_wait(), pytest.raises(RuntimeError):
        waiting(p, q, drafts, coins)


def test_coins_are_those_of_the_host(cuda: str) -> None:
    seeds = torch.tensor([0, 1, -1, 2**63 - 1, -(2**63)])
    for iteration, site in ((0, 0), (1, 1), (2**31 - 1, 255)):
        on_cpu = uniforms(seeds, iteration, site, 1000)
        assert torch.equal(on_cpu, uniforms(seeds.to(cuda), iteration, site, 1000).cpu())
    assert not torch.equal(on_cpu[0], on_cpu[1])


def test_blocks_are_those_of_the_host(cuda: str) -> None:
    """By inverse CDFs in float64, on laws of dyadic numbers: sums are exact on both."""
    *laws, drafts, coins = batch("cpu", 256, 4, 512)
    p, q = ((law.double() * 2**20).round() / 2**20 for law in laws)
    there = Coins(coins.accept.to(cuda), coins.final.to(cuda))
    found = verify(p.to(cuda), q.to(cuda), drafts.to(cuda), coins=there)
    expected = verify(p, q, drafts, coins=coins)
    assert all(torch.equal(a, b.cpu()) for a, b in zip(expected, found, strict=True))
    other = verify(p, q, drafts, coins=coins._replace(final=coins.final.flip(0)))
    assert not torch.equal(other[0], expected[0])


def matching(device: str) -> Verified:
    """Exact match: lossless whatever drafts are drawn from."""

    @capable(arrays="torch", device=device)
    def verified(target_probs: Tensor, draft_probs: Any, draft_tokens: Tensor, *, rng: Any) -> Any:
        seeds = torch.from_numpy(rng.integers(2**63, size=len(draft_tokens))).to(device)
        coins = row_coins(seeds, 0, draft_tokens.shape[1])
        return verify_matching(target_probs, draft_tokens, coins=coins)

    return verified


DTYPES = ("float64", "float32", "float16", "bfloat16")
JUDGED: dict[str, tuple[Callable[[str], Verified], list[str]]] = {
    **{
        f"verify, {dtype}, {recovery}": (
            partial(load_verify, dtype=dtype, recovery=recovery),
            [*EXACT, *SAMPLED],
        )
        for dtype in DTYPES
        for recovery in ("race", "inverse")
    },
    **{f"seeds, {dtype}": (partial(load_seeded_verify, dtype=dtype), SAMPLED) for dtype in DTYPES},
    **{
        f"block, {recovery}": (
            partial(load_verify_block, dtype="float32", recovery=recovery),
            ["smoke/answers", *SAMPLED],
        )
        for recovery in ("race", "inverse")
    },
    **{
        f"tree, {rule}": (partial(load_verify_tree, dtype="float32", rule=rule), TREES)
        for rule in ("topdown", "traversal")
    },
    "ragged": (
        partial(load_verify_ragged, dtype="float32"),
        ["smoke/answers", "smoke", "joint/wide"],
    ),
    "matching": (matching, ["smoke/answers", "smoke", "boundary/ragged", "joint/wide"]),
}


@pytest.mark.deep(one_in=9)
@pytest.mark.parametrize("name", JUDGED)
def test_the_kit_finds_nothing(cuda: str, name: str) -> None:
    """Alpha 1e-9; any law at total variation 0.1 is found 999 times in 1,000.

    On a pretended device, which is slow, the first checks only: whether tensors are in place.
    """
    load, only = JUDGED[name]
    if cuda == PRETENDED:
        only = only[:1]
    contract = next((one for one in ("tree", "ragged") if name.startswith(one)), "verify")
    report = check(load(cuda), contract=contract, only=only, detect_tv=0.1, seed=11, device=cuda)
    assert report.exit_code == 0, report
    assert report.counts["passed"], report


def test_the_kit_finds_a_sampler_that_stays_on_the_host(cuda: str) -> None:
    """Its random numbers, say."""
    load, only = JUDGED["verify, float32, inverse"]
    clean = load(cuda)

    @capable(**asdict(capabilities_of(clean)))
    def forgetful(p: Tensor, q: Tensor, drafts: Tensor, **given: Any) -> Any:
        return verify(p, q, drafts, coins=Coins(torch.zeros(q.shape[:2]), torch.zeros(len(p))))

    report = check(forgetful, only=only[:1], seed=11, device=cuda)
    assert report.exit_code == 1, report


def test_memory_is_that_of_the_inputs(gpu: str) -> None:
    given = batch(gpu, lookahead=8)
    assert copies(lambda: verify(*given[:3], coins=given[3]), given) <= COPIES
    assert copies(lambda: wasteful(*given), given) > COPIES


def wasteful(p: Tensor, q: Tensor, drafts: Tensor, coins: Coins) -> Any:
    return verify(p.double(), q.double(), drafts, coins=coins)


def copies(function: Callable[[], Any], given: tuple[Any, ...]) -> float:
    """The most memory that is held while it runs, inputs included, in copies of p and q."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    function()
    torch.cuda.synchronize()
    inputs: int = sum(law.numel() * law.element_size() for law in given[:2])
    return 1 + (torch.cuda.max_memory_allocated() - before) / inputs
