"""Stage replay: given the coins, is the block the very one that the coins decide?"""

import itertools
from collections.abc import Iterator

import numpy as np
from scipy import stats

from specref.conformance.batch import Batch
from specref.conformance.checks.check import VERIFY, Check, failed, not_applicable, passed
from specref.conformance.checks.decided import DECIDED
from specref.conformance.contract import Capabilities, Floats, Ints
from specref.conformance.drawing import draw_batch_coins, sample_batch
from specref.conformance.fixtures import NO_TOKEN, TEETH
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.losslessness.coins import Coins, race_winner
from specref.theory.acceptance import ONE_VOCABULARY

SIZE = 2_000
ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
# A race of 36 is a `final` just below 1; at 37 it would round to 1, which no uniform is.
NOISE = (0.0, 1e-300, 1.0, 36.0)


def expected_tokens(batch: Batch, coins: Coins, recovery: str, rule: str = "standard") -> Ints:
    """What a rule of `DECIDED` emits under given coins, row by row as the definition has it.

    The last token is drawn by the exponential race or by the inverse CDF of `coins.final`.
    """
    tokens = np.full((len(batch), batch.draft_tokens.shape[1] + 1), NO_TOKEN)
    for row in range(len(batch)):
        p, drafts = batch.target_probs[row], batch.draft_tokens[row, : batch.lens[row]]
        q = np.eye(p.shape[1])[drafts] if batch.draft_probs is None else batch.draft_probs[row]
        kept, weights = DECIDED[rule](p, q, drafts, coins.accept[row])
        tokens[row, :kept] = drafts[:kept]
        tokens[row, kept] = _last(weights, coins[row : row + 1], recovery)
    return tokens


def _last(weights: Floats, coins: Coins, recovery: str) -> int:
    if recovery == "race":
        return int(race_winner(weights, coins.race[0]))
    ends = np.cumsum(weights)
    return int((ends <= coins.final[0] * ends[-1]).sum())


def coin_by_coin(judge: Judge) -> Outcome:
    """Every block is the one that the coins decide, on every fixture, with q and without."""
    claims = judge.capabilities
    if "coins" not in judge.keywords:
        return not_applicable("does not take coins")
    rule = claims.rule or ""
    if claims.recovery is None or rule not in DECIDED:
        wanted = " or ".join(f"rule={name!r}" for name in DECIDED)
        return not_applicable(f"declares no recovery ('race' or 'inverse') for {wanted}")
    blocks = 0
    for name, batch in _batches(judge):
        coins = draw_batch_coins(batch, judge.rng(f"coins {name}"))
        got = judge.verifier(batch, judge.rng("replay"), coins).tokens
        expected = expected_tokens(batch, coins, claims.recovery, rule)
        wrong = np.flatnonzero((got != expected).any(axis=1))
        if len(wrong) > most_wrong(claims, batch, judge.alpha):
            return _difference(name, batch, coins, int(wrong[0]), got, expected)
        blocks += len(batch)
    return passed(f"{blocks:,} blocks, coin by coin")


def _batches(judge: Judge) -> Iterator[tuple[str, Batch]]:
    for name in TEETH:
        batch = sample_batch(judge.teeth(name), SIZE, judge.rng(name))
        yield name, batch
        if judge.capabilities.one_hot:
            yield f"{name}, no draft_probs", batch.without_q()


def most_wrong(claims: Capabilities, batch: Batch, alpha: float) -> int:
    """How many blocks rounding may change: more, with probability at most `alpha`.

    Each comparison of a coin comes out otherwise with a chance of about its rounding, and of
    2 TV where a token is drawn.
    """
    decisions = batch.target_probs.shape[1] * batch.target_probs.shape[2]
    chance = decisions * (4 * ROUNDING[claims.dtype] + 2 * claims.tolerance)
    return int(stats.binom.isf(alpha, len(batch), min(chance, 1)))


def _difference(
    name: str, batch: Batch, coins: Coins, row: int, got: Ints, expected: Ints
) -> Outcome:
    drafts = batch.draft_tokens[row].tolist()
    return failed(
        f"{name}, row {row}: {got[row].tolist()}, expected {expected[row].tolist()} from drafts "
        f"{drafts} and accept coins {coins.accept[row].round(4).tolist()}",
        row=row,
        accept=coins.accept[row].tolist(),
        race=coins.race[row].tolist(),
        **batch.facts(row),
    )


def edge_coins(judge: Judge) -> Outcome:
    """Coins at the ends of their range accept no draft with p = 0, and emit nothing impossible.

    At u = 0 such a draft is rejected (accept iff u < p / q, strictly). Where p = q, no coin
    rejects; where rounding makes p a little less than q everywhere, the residual is empty, and
    the last token has p > 0 all the same.
    """
    if "coins" not in judge.keywords:
        return not_applicable("does not take coins")
    for case, batch, coins in _edges(judge.capabilities.dtype):
        tokens = judge.verifier(batch, judge.rng("edge"), coins).tokens[0].tolist()
        allowed = _allowed(judge, case)
        if tokens not in allowed:
            u, noise = float(coins.accept[0, 0]), float(coins.race[0, 0])
            return failed(
                f"{case} for draft {batch.draft_tokens[0, 0]}, accept coin {u}, race {noise}: "
                f"{tokens}, expected one of {allowed}",
                accept=u,
                race=noise,
                **batch.facts(0),
            )
    return passed()


def _edges(dtype: str) -> Iterator[tuple[str, Batch, Coins]]:
    step = 2 * ROUNDING[dtype]
    equal = np.array([0.0, 0.25, 0.25, 0.5])
    cases = {
        "p = 0": (np.array([0.0, 0.5, 0.5, 0.0]), np.array([0.5, 0.5, 0.0, 0.0]), 0),
        "p = q": (equal, equal, 1),
        "p = q but for rounding": (equal, equal * (1 + step), 3),
    }
    one = np.zeros(1, dtype=np.int64)
    for case, (p, q, draft) in cases.items():
        rows = np.array([[p, equal]])
        batch = Batch(rows, q[None, None], np.array([[draft]]), one + 1, one)
        for u, noise in itertools.product((0.0, 1 - step / 2), NOISE):
            yield case, batch, Coins(np.array([[u]]), np.full((1, 4), noise))


def _allowed(judge: Judge, case: str) -> list[list[int]]:
    one = judge.capabilities.rule in ONE_VOCABULARY
    if case == "p = 0":
        return [[2, NO_TOKEN]] if one else [[2, NO_TOKEN], [1, NO_TOKEN]]
    draft = 1 if case == "p = q" else 3
    kept = [[draft, NO_TOKEN], *([draft, token] for token in (1, 2, 3))]
    other = [[token, NO_TOKEN] for token in (1, 2, 3)]
    return kept[1:] if one and case == "p = q" else [*kept, *other]


def permuted(judge: Judge) -> Outcome:
    """Rows permuted with their coins, or given in chunks, get the same blocks."""
    if "coins" not in judge.keywords:
        return not_applicable("does not take coins")
    batch = sample_batch(judge.teeth("wide"), 60, judge.rng("permuted"))
    coins = draw_batch_coins(batch, judge.rng("permuted coins"))
    order = judge.rng("order").permutation(len(batch))
    whole = judge.verifier(batch, judge.rng("call"), coins).tokens
    moved = judge.verifier(batch[order], judge.rng("call"), _rows(coins, order)).tokens
    halves = [
        judge.verifier(batch[part], judge.rng("call"), coins[part]).tokens
        for part in (slice(0, 1), slice(1, 7), slice(7, None))
    ]
    for name, other in (("permuted", moved[np.argsort(order)]), ("split", np.concatenate(halves))):
        for row in np.flatnonzero((whole != other).any(axis=1))[:1].tolist():
            got, before = other[row].tolist(), whole[row].tolist()
            return failed(
                f"row {row} is {got} when the batch is {name}, {before} otherwise",
                row=row,
                **batch.facts(row),
            )
    return passed()


def _rows(coins: Coins, order: Ints) -> Coins:
    return Coins(coins.accept[order], coins.race[order])


CHECKS = (
    Check("replay/coin-by-coin", VERIFY, coin_by_coin),
    Check("replay/edge-coins", VERIFY, edge_coins),
    Check("replay/permuted", VERIFY, permuted),
)
