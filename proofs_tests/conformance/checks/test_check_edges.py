"""Where checks draw their lines: formats, thresholds and what is asked of whom."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

from specref.algorithms import standard
from specref.chance import Chance
from specref.coins import Coins
from specref.conformance.checks import boundary, probed, replay, smoke
from specref.conformance.judge import Judge
from specref.conformance.options import CheckOptions
from specref.conformance.status import Finding, Status
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Subject
from specref.examples.correct import verify as correct
from specref.models import Model
from specref.rule import Rule
from specref.rules import RULES
from specref.statistics.floats.floats import verify_float64

Verify = Callable[..., Any]


def judging(implementation: Verify, **claims: Any) -> Judge:
    if claims.get("dtype") in ("float16", "bfloat16"):
        pytest.importorskip("torch", reason="not_run (torch is not installed)")
        claims["arrays"], implementation = "torch", from_torch(implementation)
    return Judge(Subject(implementation, Capabilities(**claims)), CheckOptions())


def from_torch(verify: Verify) -> Verify:
    """A sampler of arrays as one of tensors."""

    def plain(value: Any) -> Any:
        if isinstance(value, Coins):
            return Coins(plain(value.accept), plain(value.race))
        if isinstance(value, np.ndarray):
            return value
        return value.double().numpy() if value.is_floating_point() else value.numpy()

    def of_tensors(p: Any, q: Any, tokens: Any, *, coins: Any) -> Any:
        import torch

        answer = verify(plain(p), plain(q), plain(tokens), coins=plain(coins))
        return tuple(map(torch.from_numpy, answer))

    return of_tensors


def bfloat16(bits: int) -> float:
    """The number with the upper 16 bits of a float32."""
    return float(np.array([bits << 16], dtype=np.uint32).view(np.float32)[0])


ONE = 0x3F80  # 1 in bfloat16; the number before it ends its mantissa
BELOW_ONE = {
    **{f"float{b}": float(np.nextafter(np.dtype(f"f{b // 8}").type(1), 0)) for b in (16, 32, 64)},
    "bfloat16": bfloat16(ONE - 1),
}
HALF_UP = {
    **{
        f"float{b}": float(np.nextafter(np.dtype(f"f{b // 8}").type(0.5), 1)) for b in (16, 32, 64)
    },
    "bfloat16": bfloat16(ONE - 0x80 + 1),
}


# Coins at the ends of their range.


def given_edges(dtype: str) -> list[tuple[Any, Any, int, float, float | str]]:
    """(p, q, draft, accept coin, noise) of each question."""
    seen = []

    def verify(
        target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Coins
    ) -> tuple[Any, Any]:
        tokens = verify_float64(target_probs, draft_probs, draft_tokens, coins)
        if len(target_probs) == 1 and target_probs.shape[1:] == (2, 4):
            noise = set(coins.race.ravel().tolist())
            assert len(noise) == 1 or sorted(coins.race[0].tolist()) == [0, 1, 1, 1]
            seen.append(
                (
                    target_probs[0, 0].astype(float),
                    draft_probs[0, 0].astype(float),
                    int(draft_tokens[0, 0]),
                    float(coins.accept[0, 0]),
                    noise.pop() if len(noise) == 1 else "one is 0",
                )
            )
        return tokens, (tokens >= 0).sum(axis=1)

    replay.edge_coins(judging(verify, rule="standard", dtype=dtype))
    return seen


@pytest.mark.parametrize("dtype", BELOW_ONE)
def test_edge_coins_are_the_ends_of_the_format(dtype: str) -> None:
    """Three pairs of rows, each at u = 0 and at the last u below 1, with all noise.

    And at u = 1/2 with one number of the noise that is 0.
    """
    seen = given_edges(dtype)
    grid = set(itertools.product((0.0, BELOW_ONE[dtype]), replay.NOISE))
    grid |= {(0.5, "one is 0")}
    by_case = {
        case: [(u, noise) for p, q, x, u, noise in seen if kind(p, q, x) == case]
        for case in ("p = 0", "p = q", "p < q")
    }
    assert {case: set(coins) for case, coins in by_case.items()} == dict.fromkeys(by_case, grid)
    (above,) = {q[x] for p, q, x, *_ in seen if kind(p, q, x) == "p < q"}
    assert above == HALF_UP[dtype]


def kind(p: Any, q: Any, draft: int) -> str:
    if p[draft] == 0 < q[draft]:
        return "p = 0"
    if np.array_equal(p, q):
        return "p = q"
    assert (p <= q).all()
    return "p < q"


@pytest.mark.parametrize("dtype", BELOW_ONE)
def test_an_edge_coin_has_the_chance_of_its_format(dtype: str) -> None:
    """Accepts at u <= p / q."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Coins) -> Any:
        lower = Coins(np.maximum(coins.accept - 1e-300, -1e-300), coins.race)
        tokens = verify_float64(target_probs, draft_probs, draft_tokens, lower)
        return tokens, (tokens >= 0).sum(axis=1)

    found = replay.edge_coins(judging(verify, rule="standard", dtype=dtype))
    chance = 1 - BELOW_ONE[dtype]
    assert (found.finding, found.evidence["chance"]) == (Finding.EDGE, chance)
    assert found.status == (Status.PASSED if dtype == "float64" else Status.FAILED)
    assert found.evidence["accept"] == 0


DRAFT = {"p = 0": 0, "p = q": 1, "p < q": 3}


def answers(case: str) -> list[tuple[int, int]]:
    """All that have the right form: the draft and one more token, or one token alone."""
    return [(x, -1) for x in range(4)] + [(DRAFT[case], x) for x in range(4)]


def answered(case: str, answer: tuple[int, int], **claims: Any) -> Status:
    """What is said of a sampler that gives one answer, whatever the coins, in one case."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Coins) -> Any:
        tokens = verify_float64(target_probs, draft_probs, draft_tokens, coins)
        if target_probs.shape == (1, 2, 4) and draft_tokens[0, 0] == DRAFT[case]:
            tokens = np.array([answer])
        return tokens, (tokens >= 0).sum(axis=1)

    return replay.edge_coins(judging(verify, **claims)).status


POSSIBLE = (1, 2, 3)
KEPT = {draft: {(draft, x) for x in POSSIBLE} for draft in (1, 3)}
NOT_KEPT = {(x, -1) for x in POSSIBLE}


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(
    ("case", "rule", "allowed"),
    [
        ("p = 0", "standard", {(2, -1)}),
        ("p = q", "standard", KEPT[1]),
        ("p < q", "standard", KEPT[3] | NOT_KEPT | {(3, -1)}),
        ("p = 0", None, {(2, -1), (1, -1)}),
        ("p = q", None, KEPT[1] | NOT_KEPT),
        ("p < q", None, KEPT[3] | NOT_KEPT),
    ],
)
def test_what_an_edge_coin_may_give(
    case: str, rule: str | None, allowed: set[tuple[int, int]]
) -> None:
    claims = {"rule": rule} if rule else {}
    found = {
        answer for answer in answers(case) if answered(case, answer, **claims) != Status.FAILED
    }
    assert found == allowed


# Without sampling.


def moved(by: float) -> Verify:
    """So much of the law of every token is given to the last."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        p = target_probs * (1 - by)
        p[..., -1] += by
        return correct(p, draft_probs, draft_tokens, rng=rng)

    return verify


def test_a_probed_law_may_be_off_by_rounding_alone() -> None:
    for tv, status in ((0.9e-6, Status.PASSED), (1.1e-6, Status.FAILED)):
        found = probed.probed(judging(moved(12 / 13 * tv)))
        assert found.status == status, found.message
        assert found.evidence["total_variation"] == pytest.approx(tv, rel=1e-5)


def test_nothing_is_said_of_a_coin_of_zero_where_nothing_is_drawn() -> None:
    def likeliest(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        best = target_probs[:, 0].argmax(axis=1)[:, None]
        tokens = np.pad(best, ((0, 0), (0, target_probs.shape[1] - 1)), constant_values=-1)
        return tokens, np.ones(len(best), dtype=int)

    def seeded(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        rng.integers(2**31)
        return likeliest(target_probs, draft_probs, draft_tokens, rng=rng)

    for verify in (likeliest, seeded):
        for question in (probed.zero_coin, probed.empty_residual):
            found = question(judging(verify))
            assert found.status == Status.NOT_APPLICABLE
            assert found.message.endswith(": nothing that it draws is intercepted")
    assert probed.zero_coin(judging(correct)).status == Status.PASSED


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_empty_residual_is_one_of_rounding(dtype: str) -> None:
    """p is below q by the spacing of each format that the sampler may count in."""
    less: set[float] = set()

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        row, q = target_probs[0, 0].astype(float), draft_probs[0, 0].astype(float)
        if q.tolist() == [0.25, 0.25, 0.5, 0]:
            assert (row <= q).all()
            less.add(float(1 - row[0] / q[0]))
        return correct(target_probs, draft_probs, draft_tokens, rng=rng)

    assert probed.empty_residual(judging(verify, dtype=dtype)).status == Status.PASSED
    formats = (np.float64, np.float32) if dtype == "float64" else (np.float32,)
    spacing = [float(np.finfo(one).eps) for one in formats]
    assert len(less) == len(spacing)
    assert all(eps <= one < 2 * eps for one, eps in zip(sorted(less), spacing, strict=True))


def refusing(at: tuple[float, float], dtype: type) -> Verify:
    """A token of p = 0 after a rejection, where p is below q by so much."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        p, q, x = target_probs[0, 0], draft_probs[0, 0], int(draft_tokens[0, 0])
        if rng.random(dtype=dtype) < p[x] / q[x]:
            return np.array([[x, 2]]), np.array([2])
        return np.array([[3 if at[0] < 1 - p[0] / q[0] < at[1] else 2, -1]]), np.array([1])

    return verify


def test_the_worse_of_two_empty_residuals_counts() -> None:
    rare, often, both = (0, 1e-12), (1e-12, 1), (0, 1)
    # Rows in float64 are off by the spacing of float32 only if they were calculated in it.
    for at, dtype, claimed, status in (
        (rare, np.float64, "float64", Status.PASSED),
        (often, np.float64, "float64", Status.PASSED),
        (often, np.float32, "float64", Status.PASSED),
        (often, np.float32, "float32", Status.FAILED),
        (both, np.float32, "float32", Status.FAILED),
    ):
        found = probed.empty_residual(judging(refusing(at, dtype), dtype=claimed))
        assert (found.status, found.finding) == (status, Finding.EDGE), (at, dtype, claimed)
    # float32 has no uniform between 1 - 2^-52 and 1.
    found = probed.empty_residual(judging(refusing(rare, np.float32)))
    assert (found.status, found.finding) == (Status.PASSED, None)


# How often, and how large.


def test_impossible_tokens_of_a_large_vocabulary_are_named() -> None:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        impossible = int(np.flatnonzero(target_probs[5, 0] == 0)[0])
        tokens = np.full((8, 3), -1)
        tokens[:, 0] = target_probs[:, 0].argmax(axis=1)
        tokens[5, 0] = impossible
        return tokens, np.ones(8, dtype=int)

    found = smoke.large_vocabulary(judging(verify))
    assert (found.status, found.evidence) == (Status.FAILED, {"row": 5, "position": 0})


def test_a_row_without_drafts_may_get_any_token_of_its_first_law() -> None:
    for token, status in ((0, Status.PASSED), (2, Status.PASSED), (3, Status.FAILED)):

        def verify(
            target_probs: Any, draft_probs: Any, draft_tokens: Any, *, lens: Any, rng: Any,
            token: int = token,
        ) -> Any:  # fmt: skip
            tokens = np.full((len(lens), target_probs.shape[1]), -1)
            tokens[:, 0] = token
            assert (lens == 0).all()
            return tokens, np.ones(len(lens), dtype=int)

        assert smoke.no_drafts(judging(verify)).status == status


# Whether randomness varies.


def test_a_sampler_of_single_rows_is_not_asked_whether_rows_vary() -> None:
    def alone(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        assert len(target_probs) == 1
        return correct(target_probs, draft_probs, draft_tokens, rng=rng)

    assert smoke.rows_vary(judging(alone, batch=1)).status == Status.NOT_APPLICABLE
    assert smoke.rows_vary(judging(correct, batch=2)).status == Status.PASSED


@pytest.mark.parametrize("count", [1, 2, 3])
def test_rows_that_share_one_last_token_are_found(count: int) -> None:
    """Only rows with so many tokens share their last one."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        tokens, counts = correct(target_probs, draft_probs, draft_tokens, rng=rng)
        mine = np.flatnonzero(counts == count)
        if len(mine):
            tokens[mine, count - 1] = tokens[mine[0], count - 1]
        return tokens, counts

    found = smoke.rows_vary(judging(verify))
    assert found.status == Status.FAILED
    assert f"rows with {count} tokens had the same last one" in found.message


def thinned(target: Model, context: Any, drafts: list[Any], chance: Chance) -> Any:
    """Accepts half as often as the standard rule: then more than (p - q)+ is left."""
    p = target.next_token(context)
    (draft,) = drafts
    if chance.accept(min(1.0, p[draft.token] / draft.q[draft.token]) / 2, "accept"):
        return (draft.token, chance.draw(target.next_token((*context, draft.token)), "bonus"))
    left = p - np.minimum(p, draft.q) / 2
    return (chance.draw(left / left.sum(), "residual"),)


def test_one_token_is_left_only_for_rules_that_leave_one() -> None:
    p, q = np.array([[0.5, 1e-37, 0.5], [1e-37, 0.5, 0.5]]), np.array([0.25, 1e-20, 0.75])
    rule = Rule("thinned", (), standard.step, verify=thinned, coins="token by token")
    assert boundary.likely_blocks(rule, p, q, 1) == {(0,), (2,)}
    for name in ("standard", "block", "topdown", "traversal"):
        assert boundary.likely_blocks(RULES[name], p, q, 1) == {(0,)}, name
    assert boundary.likely_blocks(RULES["autoregressive"], p, q, 1) == set()


def test_noise_goes_from_nearly_zero_to_where_its_uniform_is_just_below_one() -> None:
    last = -math.expm1(-max(replay.NOISE))
    assert 0 < 1 - last <= np.finfo(float).eps
    assert 0 < min(replay.NOISE) < np.finfo(float).eps


@pytest.mark.parametrize("profile", boundary.RARE)
def test_how_often_a_rare_draft_may_be_kept(profile: str) -> None:
    """The least number that uniforms of 23 bits exceed with a probability below 1e-10."""
    calls, most = boundary.RARE[profile]
    law = scipy.stats.binom(calls * boundary.RARE_ROWS, 2.0**-23)
    assert law.sf(most) < 1e-10 < law.sf(most - 1)


# Rows of NaN beside good ones.


def raising_at_nan(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    if np.isnan(target_probs).any():
        raise ValueError("a row is NaN")
    return correct(target_probs, draft_probs, draft_tokens, rng=rng)


def sampling_at_nan(spread: bool = False, token: int = 0, likeliest: bool = False) -> Verify:
    """Gives such a row a token; beside one, `spread` and `likeliest` spoil all rows of a batch."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        nan = np.isnan(target_probs).any(axis=(1, 2))
        p = np.nan_to_num(target_probs / target_probs.max() if spread else target_probs)
        p[p.sum(axis=2) == 0, 3] = 1
        p /= p.sum(axis=2, keepdims=True)
        tokens, counts = correct(p, draft_probs, draft_tokens, rng=rng)
        if likeliest and nan.any():
            tokens[:], counts[:] = -1, 1
            tokens[:, 0] = p[:, 0].argmax(axis=1)
        tokens[nan], counts[nan] = -1, 1
        tokens[nan, 0] = token
        return tokens, counts

    return verify


def test_what_is_claimed_of_a_row_of_nan_holds() -> None:
    assert boundary.certain(judging(raising_at_nan, nan="raises")).status == Status.PASSED
    assert boundary.certain(judging(sampling_at_nan(), nan=0)).status == Status.PASSED


@pytest.mark.parametrize(
    ("verify", "claim", "finding", "why"),
    [
        (sampling_at_nan(), "raises", Finding.CONTRACT, "nothing was raised"),
        (sampling_at_nan(token=1), 0, Finding.CONTRACT, "is NaN and got [1]: it claims nan=0"),
        (sampling_at_nan(spread=True), 0, None, "row 256 next to it is NaN"),
        (
            sampling_at_nan(likeliest=True),
            0,
            None,
            "of the 256 between them 256 begin with token 1: p is 1/2",
        ),
    ],
)
def test_what_does_not_hold_is_found(verify: Verify, claim: Any, finding: Any, why: str) -> None:
    found = boundary.certain(judging(verify, nan=claim))
    assert (found.status, found.finding) == (Status.FAILED, finding)
    assert why in found.message
    assert boundary.certain(judging(verify)).status == Status.PASSED, "nobody claims anything"


@pytest.mark.parametrize("wrong", [-1, True, "zero"])
def test_other_claims_of_nan_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="expected raises, or the id of a token"):
        Capabilities(nan=wrong)
