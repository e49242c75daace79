"""The kit judges the torch backend: right in every precision, and planted bugs are found.

alpha 1e-9 for each call of `check`. Sampled checks find a total variation of 0.1 with a
probability of 0.999; everything else here is exact.
"""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor

from specref.adapters.torch_backend import load_seeded_verify, load_verify
from specref.conformance.public import check
from specref.contracts.capabilities import capabilities_of, capable
from specref.torch_backend import randomness
from specref.torch_backend.randomness import Coins, row_coins
from specref.torch_backend.verification import chains

pytestmark = pytest.mark.usefixtures("undiagnosed")

REPLAYED = ["replay/coin-by-coin", "replay/edge-coins", "replay/permuted"]
SMOKE = ["smoke/answers", "smoke/no-drafts", "smoke/one-hot", "smoke/large"]
BOUNDARY = ["boundary/equal-rows", "boundary/forbidden", "boundary/tiny", "boundary/ragged"]
EXACT = [*SMOKE, *REPLAYED, *BOUNDARY]
SAMPLED = [
    "joint/wide",
    "joint/eos",
    "acceptance/wide",
    "independence/rows-wide",
    "iterations/deep",
]
Judged = Callable[..., Any]


def judge(verify: Judged, *only: str) -> Any:
    return check(verify, only=only, detect_tv=0.2)


VERIFIERS = pytest.mark.parametrize(
    ("dtype", "recovery"),
    [("float64", "inverse"), ("float32", "race"), ("float16", "inverse"), ("bfloat16", "race")],
)


@pytest.mark.deep
@VERIFIERS
def test_verification_passes_what_takes_longer(dtype: Any, recovery: Any) -> None:
    report = judge(load_verify(dtype=dtype, recovery=recovery), "boundary", *SAMPLED)
    assert report.exit_code == 0, report


@pytest.mark.deep(one_in=4)
@VERIFIERS
def test_verification_passes(dtype: Any, recovery: Any) -> None:
    report = judge(load_verify(dtype=dtype, recovery=recovery), *EXACT, "joint/wide")
    assert report.exit_code == 0, report
    assert "not_applicable" not in {r.status for r in report.results if r.id.startswith("replay")}


@pytest.mark.deep
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_row_seeds_pass(dtype: Any) -> None:
    report = judge(load_seeded_verify(dtype=dtype), "smoke", *SAMPLED)
    assert report.exit_code == 0, report


@pytest.mark.deep
def test_exact_matching_passes() -> None:
    """SLEM's verification is lossless whatever drafts are drawn from."""

    @capable(arrays="torch")
    def verify(target_probs: Tensor, draft_probs: Any, draft_tokens: Tensor, *, rng: Any) -> Any:
        seeds = torch.from_numpy(rng.integers(2**63, size=len(draft_tokens)))
        coins = row_coins(seeds, 0, draft_tokens.shape[1])
        return chains.verify_matching(target_probs, draft_tokens, coins=coins)

    report = judge(verify, "smoke", "boundary/ragged", "joint/wide", "joint/deep")
    assert report.exit_code == 0, report


def test_claims() -> None:
    claims = capabilities_of(load_verify(dtype="bfloat16", recovery="inverse"))
    assert (claims.rule, claims.recovery, claims.row_seeds) == ("standard", "inverse", True)
    assert (claims.arrays, claims.dtype, claims.tolerance) == ("torch", "bfloat16", 2**-7)
    assert capabilities_of(load_verify()).tolerance == 0


# Planted bugs: one function replaced, and the checks that must see it.

LAST_TOKEN = chains.last_token


def accepting_equals(p: Tensor, q: Tensor | None, drafts: Tensor, u: Tensor) -> Tensor:
    tokens = drafts[:, :-1].clamp(min=0)[..., None]
    chance = [1.0 if laws is None else laws.gather(2, tokens)[..., 0] for laws in (p[:, :-1], q)]
    return (u <= chance[0] / chance[1]) & (drafts[:, :-1] >= 0)


def by_first_coin(weights: Tensor, coins: Coins) -> Tensor:
    return LAST_TOKEN(weights, coins._replace(final=coins.accept[:, 0]))


BUGS = {
    "accepts p = 0 at u = 0": ("_accepted", accepting_equals, ["replay/edge", "boundary/zero"]),
    "last token by the first coin": ("last_token", by_first_coin, ["replay/coin", "joint/wide"]),
}


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, broken, checks = BUGS[bug]
    monkeypatch.setattr(chains, name, broken)
    report = check(load_verify(recovery="inverse"), only=checks, detect_tv=0.1, blocking=False)
    # In float64 what happens at u = 0 alone is a warning: its chance is 2^-53.
    found = [result for result in report.results if result.finding is not None]
    assert len(found) == len(report.results) == len(checks), report
    assert bool(report) == ("u = 0" in bug)


def test_rows_that_share_coins_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_first_row(seeds: Tensor, iteration: int, lookahead: int) -> Coins:
        return row_coins(seeds[:1].expand(len(seeds)), iteration, lookahead)

    monkeypatch.setattr(randomness, "row_coins", of_first_row)
    report = judge(load_seeded_verify(), "independence/rows-wide")
    assert report.counts["failed"] == 1, report
