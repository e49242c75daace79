"""The float tier: the reference follows the algorithm, bounds hold, rounding is told from bugs."""

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specref.algorithms import standard
from specref.chance import Chance
from specref.coins import Coins, draw_coins, race_winner
from specref.models import Model
from specref.statistics.campaign.levels import total_variation_test
from specref.statistics.floats import coupled, floats
from specref.statistics.floats.coupled import (
    coupled_replay,
    first_mismatch,
    upper_rate,
)
from specref.statistics.floats.floats import (
    EQUIVALENCE_MARGIN,
    inverse_cdf_mismatch,
    law_in,
    output_law,
    race_mismatch,
    round_to,
    rounding_bound,
    softmax_in,
    verify_float64,
    verify_in,
)
from specref.vocabulary import Vocabulary

ALPHA = 1e-9
FORMATS = list(EQUIVALENCE_MARGIN)
ALMOST_ONE = np.nextafter(1.0, 0.0)
INSTANCES = 20


def instances(
    size: int, dtype: str, count: int, scale: float = 1.0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Logits of p and q that a model of this format can emit: q's are p's and N(0, 1) noise."""
    for seed in range(count):
        rng = np.random.default_rng([size, seed])
        p = scale * rng.normal(size=size)
        yield round_to(p, dtype), round_to(p + rng.normal(size=size), dtype)


def distance(p: np.ndarray, w: np.ndarray) -> float:
    """Total variation of the normalised rows."""
    return float(np.abs(p / p.sum() - w / w.sum()).sum() / 2)


def cumulative_law(p: np.ndarray, dtype: str) -> np.ndarray:
    """The law of an inverse-CDF draw whose running sums are rounded at every token."""
    total, ends = 0.0, [0.0]
    for mass in round_to(p, dtype).tolist():
        total = float(round_to(total + mass, dtype))
        ends.append(total)
    return np.diff(ends) / ends[-1]


def rows(size, zeros=True):
    """Distributions with ties, zeros, and masses far below what float16 can hold."""
    masses = [1.0, 1.0, 0.3, 0.7, 1e-4, 3e-8, 1e-8] + [0.0] * zeros
    exponents = st.floats(-20, 0).map(np.exp)
    weights = st.lists(st.sampled_from(masses) | exponents, min_size=size, max_size=size)
    return weights.map(np.array).filter(np.any).map(lambda w: w / w.sum())


def pairs(size):
    return st.tuples(rows(size), rows(size)) | rows(size).map(lambda p: (p, p))


def random_rows(shape, rng):
    """Rows of multiples of 1/8, so that zeros and ties are common."""
    return rng.multinomial(8, np.full(shape[-1], 1 / shape[-1]), size=shape[:-1]) / 8


def one_trial(accept, race):
    return Coins(np.array([accept]), np.array([race]))


class FromCoins(Chance):
    """The reference algorithm's chance, fed one trial of the batch's coins."""

    def __init__(self, coins: Coins) -> None:
        self.coins = coins

    def accept(self, probability, site):
        return bool(self.coins.accept[0, int(site[len("accept[") : -1])] < probability)

    def choose(self, weights, site):
        return int(race_winner(np.asarray(weights), self.coins.race[0]))


def step_by_step(p, q, drafts, coins):
    """One trial by the algorithm as it is written for reading, in float64."""
    vocabulary = Vocabulary("abcdefgh"[: p.shape[-1]])
    target = Model(vocabulary, lambda context: p[len(context)])
    drafted = [standard.Draft(int(x), row) for x, row in zip(drafts, q, strict=True) if x >= 0]
    block = standard.verify(target, (), drafted, FromCoins(coins))
    return [*block, *[-1] * (len(p) - len(block))]


def test_reference_is_the_algorithm():
    rng = np.random.default_rng(1)
    trials, lookahead, size = 400, 3, 4
    p = random_rows((trials, lookahead + 1, size), rng)
    q = random_rows((trials, lookahead, size), rng)
    p[::5, 0], p[::7, 2] = q[::5, 0], q[::7, 2]
    drafts = race_winner(q, rng.standard_exponential(q.shape))
    drafts[::3, 2], drafts[::9, 1:] = -1, -1
    coins = draw_coins(trials, lookahead, size, rng)
    expected = [step_by_step(p[t], q[t], drafts[t], coins[t : t + 1]) for t in range(trials)]
    assert verify_float64(p, q, drafts, coins).tolist() == expected


def test_race_draws_from_its_weights():
    # Alpha 1e-9, beta 1e-3: finds any law at total variation 0.015.
    weights = np.array([0.0, 3.0, 1.0, 0.5, 0.0, 3.5]) / 8
    race = np.random.default_rng(2).standard_exponential((200_000, 6))
    counts = dict(enumerate(np.bincount(race_winner(weights, race), minlength=6).tolist()))
    result = total_variation_test(counts, dict(enumerate(weights.tolist())), ALPHA)
    assert not result.rejected
    assert result.detectable < 0.015


@given(pairs(5))
def test_race_mismatch_by_its_formula_and_bounds(pair):
    p, w = pair
    slowest = [max(p[y] / p[x], w[y] / w[x]) for x in range(5) if p[x] * w[x] for y in range(5)]
    agree = (1 / np.array(slowest).reshape(-1, 5).sum(axis=1)).sum()
    tv = distance(p, w)
    assert race_mismatch(p, w) == pytest.approx(1 - agree, abs=1e-12)
    assert tv - 1e-12 <= race_mismatch(p, w) <= 2 * tv / (1 + tv) + 1e-12
    assert inverse_cdf_mismatch(p, w) >= tv - 1e-12


def test_mismatch_formulas_against_draws():
    # Two-sided exact binomial test, alpha 1e-9 each.
    p, w = np.array([0.1, 0.4, 0.2, 0.3]), np.array([0.3, 0.3, 0.15, 0.25])
    rng, trials = np.random.default_rng(3), 100_000
    race, uniform = rng.standard_exponential((trials, 4)), rng.random(trials)
    raced = (race_winner(p, race) != race_winner(w, race)).sum()
    by_cdf = [np.searchsorted(np.cumsum(row), uniform) for row in (p, w)]
    for count, rate in (
        (raced, race_mismatch(p, w)),
        ((by_cdf[0] != by_cdf[1]).sum(), inverse_cdf_mismatch(p, w)),
    ):
        assert stats.binomtest(int(count), trials, rate).pvalue > ALPHA


@pytest.mark.parametrize("dtype", FORMATS)
def test_inverse_cdf_couples_worse_and_worse(dtype):
    ratios = {}
    for size in (8, 1024, 32_000):
        couplings = []
        for logits, _ in instances(size, dtype, 5):
            p, low = softmax_in("float64", logits), softmax_in(dtype, logits)
            couplings.append(inverse_cdf_mismatch(p, low) / race_mismatch(p, low))
        ratios[size] = np.median(couplings)
    assert ratios[1024] > 10
    assert ratios[32_000] > 50
    assert ratios[8] < 5


@pytest.mark.parametrize(("events", "trials"), [(0, 50), (3, 50), (49, 50), (7, 10_000)])
def test_upper_rate_is_exact(events, trials):
    bound = upper_rate(events, trials, 1e-6)
    assert stats.binom.cdf(events, trials, bound) == pytest.approx(1e-6, rel=1e-6)


def test_upper_rate_when_every_trial_differs():
    assert upper_rate(5, 5, ALPHA) == 1


def replay_instances(size, dtype, lookahead=2, scale=1.0):
    """p and q of three instances whose rows all differ."""
    logits = list(instances(size, dtype, 3 * (lookahead + 1), scale))
    p, q = (softmax_in("float64", side) for side in zip(*logits, strict=True))
    shape = 3, lookahead + 1, size
    return p.reshape(shape), q.reshape(shape)[:, :lookahead]


def test_reference_agrees_with_itself():
    p, q = replay_instances(8, "float64")
    result = coupled_replay(verify_float64, p, q, trials=1000, rng=np.random.default_rng(4))
    assert (result.mismatches, result.first_mismatch) == (0, None)
    assert result.upper_bound == pytest.approx(1 - ALPHA ** (1 / 1000))


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("dtype", "size", "trials", "certified"),
    [
        ("float32", 8, 200_000, 2e-4),
        ("float16", 8, 200_000, 1e-3),
        ("bfloat16", 8, 200_000, 5e-3),
        ("bfloat16", 1024, 10_000, 1.2e-2),
    ],
)
def test_correct_arithmetic_is_certified(dtype, size, trials, certified):
    # Alpha 1e-9 for the bound to fail. It would pass `certified` in fewer than 1 run in 1000:
    # no rate is above 3e-6, 5e-4, 3e-3 and 4e-3, as the benchmark measures with other seeds.
    p, q = replay_instances(size, dtype)
    twin, rng = partial(verify_in, dtype), np.random.default_rng(5)
    result = coupled_replay(twin, p, q, trials=trials, rng=rng, alpha=ALPHA)
    assert result.upper_bound < certified
    first_tokens = [
        distance(output_law(dtype, a[0], b[0]), a[0]) for a, b in zip(p, q, strict=True)
    ]
    assert np.mean(first_tokens) <= result.upper_bound


def residual_is_target(p, q, drafts, coins):
    tokens = verify_in("float32", p, q, drafts, coins)
    trial, last = np.arange(len(tokens)), (tokens >= 0).sum(axis=1) - 1
    tokens[trial, last] = race_winner(p[trial, last], coins.race)
    return tokens


def bonus_of_the_row_before(p, q, drafts, coins):
    stale = p.copy()
    stale[:, -1] = p[:, -2]
    return verify_in("float32", stale, q, drafts, coins)


def accepts_on_equality(p, q, drafts, coins):
    lowered = np.nextafter(coins.accept, -1)  # u <= r iff the float before u is below r
    return verify_float64(p, q, drafts, Coins(lowered, coins.race))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("size", [8, 1024])
def test_planted_bugs_are_far_above_the_margin(dtype, size):
    for a, b in instances(size, dtype, INSTANCES):
        p, q = softmax_in("float64", a), softmax_in("float64", b)
        kept = np.minimum(p, q)
        assert distance(kept + (1 - kept.sum()) * p, p) > 3 * EQUIVALENCE_MARGIN[dtype]
        ((_, other),) = instances(size + 1, dtype, 1)
        bonus = softmax_in("float64", other[:size])
        assert kept.sum() * distance(bonus, p) > 3 * EQUIVALENCE_MARGIN[dtype]


@pytest.mark.parametrize("bug", [residual_is_target, bonus_of_the_row_before])
def test_coupled_replay_finds_planted_bugs(bug):
    # Both laws are farther than 0.03 away, so 1,000 trials show no difference with chance 1e-13.
    p, q = replay_instances(8, "float32")
    rng = np.random.default_rng(6)
    result = coupled_replay(bug, p, q, trials=1000, rng=rng, alpha=ALPHA)
    found = result.first_mismatch
    assert result.mismatches > 30
    assert found is not None
    assert bug(*found.inputs)[0].tolist() == list(found.actual)
    assert verify_float64(*found.inputs)[0].tolist() == list(found.expected) != list(found.actual)
    assert f"trial {found.trial}, drafts" in str(found)


def test_trials_take_instances_in_turn_and_in_batches(monkeypatch):
    monkeypatch.setattr(coupled, "CELLS", 100)
    p, q = replay_instances(4, "float64", lookahead=1)
    seen, done = [], []

    def wrong_on_trials_20_and_25(p, q, drafts, coins):
        tokens = verify_float64(p, q, drafts, coins)
        numbers = np.arange(len(tokens)) + len(seen)
        seen.extend(p[:, 0])
        tokens[np.isin(numbers, [20, 25])] = -1
        return tokens

    result = coupled_replay(
        wrong_on_trials_20_and_25,
        p,
        q,
        trials=27,
        rng=np.random.default_rng(7),
        advance=done.append,
    )
    assert np.array_equal(seen, p[np.arange(27) % 3, 0])
    assert done == [6, 6, 6, 6, 3]
    assert (result.mismatches, result.first_mismatch.trial) == (2, 20)
    assert np.array_equal(result.first_mismatch.inputs.p, p[[20 % 3]])
    assert re.fullmatch(
        r"Mismatch\(trial=20, expected=\(.*\), actual=\(-1, -1\)\)", repr(result.first_mismatch)
    )


def test_drafts_come_from_q():
    # Alpha 1e-9, beta 1e-3: finds any law at total variation 0.03; p is at 0.4.
    p = np.array([[[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [1.0, 0.0, 0.0]]])
    q = np.array([[[0.1, 0.5, 0.4], [0.6, 0.4, 0.0]]])
    drafted = []

    def recorded(p, q, drafts, coins):
        drafted.append(drafts)
        return verify_float64(p, q, drafts, coins)

    coupled_replay(recorded, p, q, trials=50_000, rng=np.random.default_rng(14))
    pairs_seen, counts = np.unique(np.concatenate(drafted), axis=0, return_counts=True)
    law = {(x, y): q[0, 0, x] * q[0, 1, y] for x in range(3) for y in range(3)}
    found = {(x, y): n for (x, y), n in zip(pairs_seen.tolist(), counts.tolist(), strict=True)}
    result = total_variation_test(found, law, ALPHA)
    assert not result.rejected
    assert result.detectable < 0.03


def test_implementation_may_overwrite_its_arguments():
    p, q = replay_instances(4, "float64")
    before = p.copy(), q.copy()

    def destructive(p, q, drafts, coins):
        tokens = verify_float64(p, q, drafts, coins) * 0
        for array in (p, q, drafts, coins.accept, coins.race):
            array.fill(0)
        return tokens

    found = coupled_replay(
        destructive, p, q, trials=50, rng=np.random.default_rng(8)
    ).first_mismatch
    assert np.array_equal(p, before[0])
    assert np.array_equal(q, before[1])
    assert verify_float64(*found.inputs)[0].tolist() == list(found.expected)


@given(pairs(6), st.sampled_from(FORMATS))
def test_rounding_bound_holds(pair, dtype):
    p, q = pair
    assert distance(output_law(dtype, p, q), p) <= rounding_bound(dtype, 6)


@pytest.mark.parametrize("dtype", FORMATS)
def test_rounding_bound_is_not_vacuous(dtype):
    laws = [
        (softmax_in("float64", a), softmax_in("float64", b))
        for a, b in instances(3, "float64", 400)
    ]
    largest = max(distance(output_law(dtype, p, q), p) for p, q in laws)
    assert rounding_bound(dtype, 3) / 4 < largest <= rounding_bound(dtype, 3)


@given(st.tuples(rows(2), rows(2)), st.sampled_from(FORMATS), st.integers(1, 12))
def test_output_law_is_the_law_of_the_twin(pair, dtype, bits):
    """Of two tokens the residual has one, so the race decides nothing: enumerate uniforms."""
    p, q = (round_to(row, dtype) for row in pair)
    if not (p > q).any():
        return
    uniforms = np.arange(2**bits)[:, None] / 2**bits
    law = np.zeros(2)
    for draft in np.flatnonzero(q):
        coins = Coins(uniforms, np.ones((len(uniforms), 2)))
        drafts = np.full((len(uniforms), 1), draft)
        both = np.stack([p, [1.0, 0.0]])[None], q[None, None]
        first = verify_in(dtype, *both, drafts, coins, bits)[:, 0]
        law += q[draft] / q.sum() * np.bincount(first, minlength=2) / len(uniforms)
    expected = output_law(dtype, p, q, uniform_bits=bits)
    assert law == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_residual_is_rounded_in_twin_and_law(dtype):
    p, q = (round_to(row, dtype) for row in ([0.0, 0.6, 0.4], [0.9, 0.07, 0.03]))
    weights = round_to(p - q, dtype)[1:]
    assert weights[0] / weights[1] != (p - q)[1] / (p - q)[2]
    rejected = output_law(dtype, p, q)[1:] - q[1:] / q.sum()
    assert rejected[0] / rejected[1] == pytest.approx(weights[0] / weights[1], rel=1e-9)
    for factor, winner in ((1 - 1e-9, 2), (1 + 1e-9, 1)):
        coins = one_trial([0.5], [1.0, weights[0], weights[1] * factor])
        rows = np.stack([p, p])[None], q[None, None]
        assert verify_in(dtype, *rows, np.array([[0]]), coins).tolist() == [[winner, -1]]


def test_output_law_is_the_law_of_the_twin_by_draws():
    # Alpha 1e-9, beta 1e-3: finds a law at 0.02. Three-bit uniforms move it farther.
    rng, trials, dtype = np.random.default_rng(9), 200_000, "bfloat16"
    p = np.array([0.02, 0.3, 0.08, 0.35, 0.25, 0.0])
    q = np.array([0.5, 0.1, 0.2, 0.1, 0.0, 0.1])
    law = output_law(dtype, p, q, uniform_bits=3)
    assert distance(law, p) > 0.02
    drafts = race_winner(round_to(q, dtype), rng.standard_exponential((trials, 6)))[:, None]
    coins = draw_coins(trials, 1, 6, rng)
    tokens = verify_in(dtype, np.stack([p, p])[None], q[None, None], drafts, coins, 3)
    counts = dict(enumerate(np.bincount(tokens[:, 0], minlength=6).tolist()))
    result = total_variation_test(counts, dict(enumerate(law.tolist())), ALPHA)
    assert not result.rejected
    assert result.detectable < 0.02


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("scale", [1.0, 3.0])
@pytest.mark.parametrize("size", [2, 3, 8, 1024, 32_000])
@pytest.mark.parametrize("dtype", FORMATS)
def test_rounding_stays_below_the_margin(dtype, size, scale):
    count = 100 if size < 1000 else INSTANCES
    for a, b in instances(size, dtype, count, scale):
        tv = distance(law_in(dtype, a, b), softmax_in("float64", a))
        assert tv < EQUIVALENCE_MARGIN[dtype]
        assert tv > 0


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_same_format_is_a_nearer_target(dtype):
    nearer = []
    for a, b in instances(1024, dtype, INSTANCES):
        law, low = law_in(dtype, a, b), softmax_in(dtype, a)
        nearer.append(distance(law, low) / distance(law, softmax_in("float64", a)))
    assert np.median(nearer) < 0.6


def test_drafts_of_bfloat16_verified_in_float32():
    """The declared q is not what drafts came from: 10,000 times the error of plain float32."""
    for a, b in instances(1024, "bfloat16", INSTANCES):
        p, q, drafted = (
            softmax_in("float64", a),
            *(softmax_in(d, b) for d in ("float32", "bfloat16")),
        )
        tv = distance(law_in("float32", a, b, drafted_in="bfloat16"), p)
        assert tv > 1000 * distance(law_in("float32", a, b), p)
        assert 3e-4 < tv <= distance(q, drafted) + rounding_bound("float32", 1024)
        assert tv < race_mismatch(q, drafted) < 2 * distance(q, drafted)


def test_coupling_the_drafter_bounds_what_it_does():
    # A lookahead of 0 couples the draw itself. Alpha 1e-9; the exact rate is about 1e-3, so a
    # run of 20,000 is above 3e-3 with chance below 1e-9.
    logits = np.stack([b for _, b in instances(1024, "bfloat16", 3)])
    q = softmax_in("float64", logits)[:, None]
    drafted = partial(verify_in, "bfloat16")
    result = coupled_replay(
        drafted, q, q[:, :0], trials=20_000, rng=np.random.default_rng(10), alpha=ALPHA
    )
    exact = np.mean([race_mismatch(row[0], round_to(row[0], "bfloat16")) for row in q])
    assert exact < result.upper_bound < 3e-3
    assert stats.binomtest(result.mismatches, result.trials, exact).pvalue > ALPHA


@pytest.mark.parametrize(
    ("dtype", "size", "least"),
    [("float32", 1024, 1e-6), ("float32", 32_000, 1e-4), ("bfloat16", 1024, 0.1)],
)
def test_trap_running_sums_in_the_format(dtype, size, least):
    """Rounding every partial sum moves tokens by far more than rounding every probability."""
    ((logits, _),) = instances(size, dtype, 1)
    p = softmax_in("float64", logits)
    assert distance(cumulative_law(p, dtype), p) > max(least, 50 * distance(round_to(p, dtype), p))


def test_trap_uniform_zero_accepts_the_impossible():
    p, q = np.array([[[0.0, 1.0], [0.5, 0.5]]]), np.array([[[0.5, 0.5]]])
    zero = first_mismatch(accepts_on_equality, p, q, np.array([[0]]), one_trial([0.0], [1.0, 1.0]))
    assert zero is not None
    assert (zero.expected, zero.actual) == ((1, -1), (0, 0))
    tiny = one_trial([np.nextafter(0, 1)], [1.0, 1.0])
    assert first_mismatch(accepts_on_equality, p, q, np.array([[0]]), tiny) is None


def test_trap_coarse_uniforms_accept_rare_tokens():
    """A uniform of 8 bits is 0 once in 256 times, and 0 accepts every token with p > 0."""
    p, q = np.array([1e-6, 1 - 1e-6]), np.array([0.5, 0.5])
    assert output_law("float64", p, q, uniform_bits=8)[0] == pytest.approx(0.5 / 256)
    assert output_law("float64", p, q, uniform_bits=24)[0] == pytest.approx(1e-6, abs=2**-24)


@pytest.mark.parametrize(
    ("p_draft", "q_draft", "truth", "in_float16"),
    [
        (3.1e-8, 8.9e-8, 0.348, 1.0),  # both round up or down to 2^-24
        (1e-8, 4e-8, 0.25, 0.0),  # p is lost: the draft is always refused
        (1e-8, 2e-8, 0.5, 0.0),  # both are lost: 0 / 0 refuses
        (3e-8, 2.9e-8, 1.0, 1.0),  # q is lost: the ratio is infinite
    ],
)
def test_trap_float16_ratio_underflow(p_draft, q_draft, truth, in_float16):
    p, q = (np.array([x, 0.25 - x, 0.75]) for x in (p_draft, q_draft))
    rows = np.stack([p, p])[None], q[None, None]
    uniforms = (np.arange(1000)[:, None] + 0.5) / 1000
    drafts = np.zeros((1000, 1), dtype=np.int64)
    coins = Coins(uniforms, np.ones((1000, 3)))
    rates = [
        (verify(*rows, drafts, coins)[:, 1] >= 0).mean()
        for verify in (verify_float64, partial(verify_in, "float16"))
    ]
    assert rates == pytest.approx([truth, in_float16], abs=1e-3)


def refuses_if_above(p, q, drafts, coins):
    """Accepts unless u > ratio, in float16: 0 / 0 is accepted."""
    low_p, low_q = round_to(p[:, 0], "float16"), round_to(q[:, 0], "float16")
    with np.errstate(invalid="ignore"):
        ratio = low_p[:, drafts[0, 0]] / low_q[:, drafts[0, 0]]
    accepted = np.where(coins.accept > ratio[:, None], ALMOST_ONE, 0.0)
    return verify_float64(p, q, drafts, Coins(accepted, coins.race))


def test_trap_nan_is_not_above_any_uniform():
    p, q = (np.array([x, 0.25 - x, 0.75]) for x in (1e-8, 2e-8))
    rows = np.stack([p, p])[None], q[None, None]
    coins = one_trial([0.9], [1.0, 1.0, 1.0])
    assert verify_float64(*rows, np.array([[0]]), coins)[0, 1] == -1
    found = first_mismatch(refuses_if_above, *rows, np.array([[0]]), coins)
    assert found is not None
    assert found.actual[0] == 0


def uniform_in_float32(p, q, drafts, coins):
    """Converts its uniforms, and the largest below 1 becomes 1; takes the residual for granted."""
    u = coins.accept.astype(np.float32)
    trial = np.arange(len(drafts))
    accepted = u[:, 0] < p[trial, 0, drafts[:, 0]] / q[trial, 0, drafts[:, 0]]
    excess = np.maximum(p[:, 0] - q[:, 0], 0)
    with np.errstate(invalid="ignore"):
        residual = excess / excess.sum(axis=1, keepdims=True)
    last = race_winner(np.where(accepted[:, None], p[:, 1], residual), coins.race)
    blocks = np.stack([drafts[:, 0], last], axis=1), np.stack([last, last * 0 - 1], axis=1)
    return np.where(accepted[:, None], *blocks)


def test_trap_uniform_that_rounds_to_one():
    """Where p = q the reference never rejects; a uniform of 1 does, and the residual is 0 / 0."""
    row = np.array([[[0.25, 0.75]]])
    rows, drafts = (np.repeat(row, 2, axis=1), row), np.array([[1]])
    coins = one_trial([ALMOST_ONE], [2.0, 3.0])
    assert verify_float64(*rows, drafts, coins).tolist() == [[1, 1]]
    assert first_mismatch(partial(verify_in, "float32"), *rows, drafts, coins) is None
    found = first_mismatch(uniform_in_float32, *rows, drafts, coins)
    assert found is not None
    assert found.actual == (0, -1)
    harmless = one_trial([0.5], [2.0, 3.0])
    assert first_mismatch(uniform_in_float32, *rows, drafts, harmless) is None


def test_rejected_by_rounding_alone_draws_from_p():
    p = np.array([0.25, 0.75 - 2**-53])
    q = np.array([0.25, 0.75])
    coins = one_trial([ALMOST_ONE], [9.0, 1.0])
    assert p[1] / q[1] <= ALMOST_ONE
    rows = np.stack([p, p])[None], q[None, None]
    assert verify_float64(*rows, np.array([[1]]), coins).tolist() == [[1, -1]]


def test_round_to_agrees_with_numpy_and_torch():
    torch = pytest.importorskip("torch")
    upper = np.arange(0, 2**16, 5, dtype=np.uint32) << 16
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], dtype=np.uint32)
    values = (upper[:, None] + lower).view(np.float32)
    values = values[np.isfinite(values)]
    expected = torch.from_numpy(values).to(torch.bfloat16).double().numpy()
    assert np.array_equal(round_to(values, "bfloat16"), expected)
    assert np.array_equal(round_to(values, "float32"), values)


@pytest.mark.parametrize("dtype", FORMATS)
def test_round_to_special_values(dtype):
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(round_to(special, dtype), special)
    assert float(round_to(0.1, dtype)) != 0.1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_softmax_in_agrees_with_torch(dtype):
    torch = pytest.importorskip("torch")
    for logits, _ in instances(1024, dtype, 3):
        theirs = torch.from_numpy(logits).to(getattr(torch, dtype)).softmax(-1).double().numpy()
        ours = softmax_in(dtype, logits)
        assert (ours != theirs).mean() < 0.01
        assert ours == pytest.approx(theirs, rel=2**-7)


def test_bad_input():
    p, q = replay_instances(4, "float64", lookahead=1)
    rng = np.random.default_rng(11)
    run = partial(coupled_replay, verify_float64, trials=10, rng=rng)
    with pytest.raises(ValueError, match=r"p has shape \(3, 2, 4\) and q \(3, 2, 4\)"):
        run(p, p)
    with pytest.raises(ValueError, match=r"q\[2, 0\] has sum 0.5"):
        run(p, q * np.array([1, 1, 0.5])[:, None, None])
    with pytest.raises(ValueError, match=r"q\[1, 0\] has sum 0.5"):
        run(p, q * np.array([1, 0.5, 0.5])[:, None, None])
    with pytest.raises(
        ValueError, match=r"p\[0, 1\] has sum 1.0 and minimum -0.5: expected a dis"
    ):
        run(np.array([[[0.5, 0.5], [1.5, -0.5]]]), np.array([[[0.5, 0.5]]]))
    with pytest.raises(ValueError, match=r"p\[0, 0\] has sum nan"):
        run(p * np.nan, q)
    with pytest.raises(ValueError, match=r"returned shape \(10, 1\): expected \(10, 2\)"):
        coupled_replay(lambda *inputs: inputs[2], p, q, trials=10, rng=rng)
    with pytest.raises(ValueError, match="dtype = 'float8'"):
        round_to(0.1, "float8")


@pytest.mark.parametrize(
    ("drafts", "first"),
    [
        ([[3, 0]], "[0, 0] = 3"),
        ([[-2, 0]], "[0, 0] = -2"),
        ([[1, 0]], "[0, 0] = 1"),
        ([[2, 1]], "[0, 1] = 1"),
        ([[-1, 0]], "[0, 1] = 0"),
        ([[2, 0], [4, 5]], "[1, 0] = 4"),
    ],
)
def test_the_first_impossible_draft_is_named(drafts, first):
    q = np.array([[[0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]])
    coins = draw_coins(len(drafts), 2, 3, np.random.default_rng(12))
    message = f"drafts{first}: expected a token with q > 0, or -1 after the last"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        verify_float64(np.full((1, 3, 3), 1 / 3), q, np.array(drafts), coins)


def test_misfitting_shapes():
    q = np.full((1, 2, 3), 1 / 3)
    drafts = np.zeros((4, 2), dtype=np.int64)
    coins = draw_coins(4, 2, 3, np.random.default_rng(13))
    with pytest.raises(ValueError, match=r"p has shape \(1, 2, 3\): expected \(4, 3, 3\)"):
        verify_float64(q, q, drafts, coins)
    with pytest.raises(ValueError, match=r"accept has shape \(3, 2\): expected \(4, 2\)"):
        verify_float64(np.full((4, 3, 3), 1 / 3), q, drafts, Coins(coins.accept[:3], coins.race))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_errors_of_a_format_are_half_of_its_steps(dtype):
    relative, absolute = floats.FORMATS[dtype]
    limits = np.finfo(dtype)
    assert relative == limits.eps / 2
    # Half of the smallest float64 is no float64.
    assert absolute == float(limits.smallest_subnormal) / (1 if dtype == "float64" else 2)


def test_errors_of_bfloat16_are_half_of_its_steps_and_of_those_of_float32():
    relative, absolute = floats.FORMATS["bfloat16"]
    assert relative == 2.0**-8 + 2 * floats.FORMATS["float32"].relative
    assert round_to(absolute, "bfloat16") == absolute  # the smallest there is
    assert round_to(absolute / 2, "bfloat16") == 0


@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 131_072), ("float16", 8_000), ("bfloat16", 131_072)]
)
def test_margins_are_above_the_bound_of_large_vocabularies_and_not_ten_times(dtype, size):
    assert 0.1 * EQUIVALENCE_MARGIN[dtype] < rounding_bound(dtype, size)
    assert rounding_bound(dtype, size) <= EQUIVALENCE_MARGIN[dtype]


def test_bounds_by_their_formulas():
    e = 2.0**-24 + 10 * 2.0**-150
    assert rounding_bound("float32", 10, 12) == pytest.approx(
        2 * e + (2.0**-24 + 2.0**-12) * (1 + e)
    )
