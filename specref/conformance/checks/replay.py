"""Stage replay: given the coins, whether the block is exactly the one that they decide."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints, one_hot_rows
from specref.coins import Coins, race_winner
from specref.conformance.checks.check import (
    LARGE,
    Check,
    edge,
    failed,
    not_applicable,
    other_randomness,
    passed,
)
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome, Status
from specref.contracts.batch import Batch, draw_batch_coins
from specref.contracts.capabilities import Capabilities
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.verify import VerifyContract, sample_batch
from specref.rule import CoinOrder
from specref.rules import RULES
from specref.statistics.floats.floats import EQUIVALENCE_MARGIN, FORMATS

Decide: TypeAlias = Callable[[Floats, Floats, Ints, Floats], tuple[int, Floats]]


def token_by_token(p: Floats, q: Floats, drafts: Ints, coins: Floats) -> tuple[int, Floats]:
    """Standard: draft i is kept iff coins[i] < p / q, up to the first that is not.

    The last token is from the residual, or from p if all are kept or rounding alone rejects.

    How many drafts are kept, and weights of the last token.
    """
    for i, x in enumerate(drafts.tolist()):
        if not coins[i] * q[i, x] < p[i, x]:
            return i, np.maximum(p[i] - q[i], 0) if (p[i] > q[i]).any() else p[i]
    return len(drafts), p[len(drafts)]


def jointly(p: Floats, q: Floats, drafts: Ints, coins: Floats) -> tuple[int, Floats]:
    """Block: the longest prefix of i drafts with coins[i - 1] < h_i, or none.

    Sun et al. 2024, Algorithm 2; every prefix has a coin of its own, and failures before the
    last success do not matter.

    Parameters and result as `token_by_token`.

    Examples
    --------
    The first draft has p / q = 1/2, the second 2: together they are certain.

    >>> p, q = np.array([[1, 2]] * 3) / 3, np.array([[2, 1]] * 2) / 3
    >>> coins = np.array([0.9, 0.9])
    >>> jointly(p, q, np.array([0, 1]), coins)[0], token_by_token(p, q, np.array([0, 1]), coins)[0]
    (2, 0)
    """
    survival, found = 1.0, (0, p[0])
    for i in range(len(drafts) + 1):
        excess = np.maximum(survival * p[i] - (q[i] if i < len(drafts) else 0), 0)
        total = float(excess.sum())
        chance = total and (total / (total + 1 - survival) if i < len(drafts) else survival)
        if i == 0 or coins[i - 1] < chance:
            found = i, excess if total and i < len(drafts) else p[i]
        if i < len(drafts):
            survival = min(1.0, float(survival * p[i, drafts[i]] / q[i, drafts[i]]))
    return found


DECIDED: Mapping[CoinOrder, Decide] = MappingProxyType(
    {"token by token": token_by_token, "jointly": jointly}
)


# Which other blocks rounding allows. An operation of unit u gives its exact result times 1 + d,
# |d| <= u, and n of them one within n u / (1 - n u) of it, relatively (Higham 2002, Lemma 3.1).
# The laws are the numbers that were given, without an error. All that decides is enclosed
# accordingly, and a block is possible if some numbers in these intervals decide it. Operations are
# those of the definitions: a coin is rounded, p / q or its product with q, p - q, noise / weight,
# each sum; logarithms are not among them.
OPERATIONS = 4


class Interval(NamedTuple):
    """Numbers, each from `least` to `most`."""

    least: Floats
    most: Floats


class Arithmetic(NamedTuple):
    """The rounding error of one operation: relative `unit`, and `absolute` for tiny numbers."""

    unit: float
    absolute: float

    def error(self, sums: int = 0) -> float:
        """The relative error of a few operations and `sums` additions; at most a million."""
        cost = min((OPERATIONS + sums) * self.unit, 1 - 1e-6)
        return cost / (1 - cost)

    def around(self, values: Floats) -> Interval:
        """The interval into which rounding may move non-negative numbers; 0 is exact."""
        error, slack = self.error(), np.where(values > 0, self.absolute, 0)
        return Interval(np.maximum(values * (1 - error) - slack, 0), values * (1 + error) + slack)


class Length(NamedTuple):
    """Whether a number of kept drafts is possible, and the weights of the last token then."""

    possible: bool
    weights: Interval


Enclose: TypeAlias = Callable[[Floats, Floats, Ints, Interval, int, Arithmetic], Length]


def arithmetic_of(claims: Capabilities) -> Arithmetic:
    """The arithmetic of float32 for laws in half precision, otherwise that of the laws.

    Rounding p and q costs two units. Code that declares a larger tolerance calculates in low
    precision, with a third of it as unit: `floats.rounding_bound` is about three units.
    """
    given, single = FORMATS[claims.dtype], FORMATS["float32"]
    if claims.tolerance > 2 * given.relative:
        return Arithmetic(claims.tolerance / 3, max(given.absolute, single.absolute))
    return Arithmetic(*min(given, single))


def token_by_token_enclosed(
    p: Floats, q: Floats, drafts: Ints, coins: Interval, kept: int, arithmetic: Arithmetic
) -> Length:
    """Whether the first `kept` drafts may have coins below p / q, and the next one may not.

    Parameters as for `token_by_token`, but for `coins`, which are enclosed.
    """
    at = np.arange(len(drafts)), drafts
    taken = coins.least * q[at] < p[at]
    refused = coins.most * q[at] >= p[at]
    ends = kept == len(drafts)
    weights = p[kept] if ends else np.maximum(p[kept] - q[kept], 0)
    possible = bool(taken[:kept].all() and (ends or refused[kept]))
    return Length(possible, arithmetic.around(weights if weights.any() else p[kept]))


def jointly_enclosed(
    p: Floats, q: Floats, drafts: Ints, coins: Interval, kept: int, arithmetic: Arithmetic
) -> Length:
    """Whether the coin of `kept` drafts may be below h, and those of all longer prefixes not.

    h is that of `jointly`.
    """
    lengths = list(_prefixes(p, q, drafts, arithmetic))
    taken = kept == 0 or coins.least[kept - 1] < lengths[kept][0].most
    longer = range(kept + 1, len(lengths))
    refused = all(coins.most[n - 1] >= lengths[n][0].least for n in longer)
    weights = lengths[kept][1]
    if not weights.least.any():
        weights = Interval(weights.least, np.maximum(weights.most, p[kept]))
    return Length(bool(taken and refused), weights)


def _prefixes(
    p: Floats, q: Floats, drafts: Ints, arithmetic: Arithmetic
) -> Iterator[tuple[Interval, Interval]]:
    """h of each number of drafts, and the weights of the token that follows."""
    error, survival = arithmetic.error(), Interval(*np.ones((2, 1)))
    for i, x in enumerate(drafts.tolist()):
        excess = Interval(
            np.maximum(survival.least * p[i] * (1 - error) - q[i], 0) * (1 - error),
            np.maximum(survival.most * p[i] * (1 + error) - q[i], 0) * (1 + error),
        )
        yield _stopping(survival, excess, arithmetic), excess
        reached = survival.least * (1 - error), survival.most * (1 + error)
        survival = Interval(*(np.minimum(1, one * p[i, x] / q[i, x]) for one in reached))
    yield survival, arithmetic.around(p[len(drafts)])


def _stopping(survival: Interval, excess: Interval, arithmetic: Arithmetic) -> Interval:
    """S / (S + 1 - P), which grows with S and P; the sums are below 2."""
    error, sums = arithmetic.error(), arithmetic.error(len(excess.least))
    least, most = excess.least.sum() * (1 - sums), excess.most.sum() * (1 + sums)
    below = least + 1 - survival.least + 2 * error
    above = max(most + 1 - survival.most - 2 * error, most)
    return Interval(least / below * (1 - error), most / above * (1 + error) if most else most)


ENCLOSED: Mapping[CoinOrder, Enclose] = MappingProxyType(
    {"token by token": token_by_token_enclosed, "jointly": jointly_enclosed}
)


def wins(weights: Interval, race: Interval, token: int, arithmetic: Arithmetic) -> bool:
    """Whether a token may be argmin race / weight.

    Examples
    --------
    >>> exact = Arithmetic(0, 0)
    >>> race = exact.around(np.array([2.0, 1.0]))
    >>> [wins(exact.around(np.array([0.5, 0.5])), race, token, exact) for token in (0, 1)]
    [False, True]
    """
    error = arithmetic.error()
    with np.errstate(divide="ignore", invalid="ignore"):
        latest = np.where(weights.least > 0, race.most / weights.least, np.inf).min()
        earliest = race.least[token] / weights.most[token]
    return bool(weights.most[token] > 0 and earliest * (1 - error) <= latest * (1 + error))


def falls(weights: Interval, final: Interval, token: int, arithmetic: Arithmetic) -> bool:
    """Whether a token may be the one that the inverse CDF gives for `final`.

    Examples
    --------
    >>> exact = Arithmetic(0, 0)
    >>> weights, final = exact.around(np.array([0.5, 1.5])), exact.around(np.array([0.25]))
    >>> [falls(weights, final, token, exact) for token in (0, 1)]
    [False, True]
    """
    error = arithmetic.error(len(weights.least))
    ends = Interval(np.cumsum(weights.least) * (1 - error), np.cumsum(weights.most) * (1 + error))
    start = ends.least[token - 1] if token else 0.0
    least, most = final.least[0] * ends.least[-1], final.most[0] * ends.most[-1]
    return bool(weights.most[token] > 0 and start <= most and least < ends.most[token])


ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
# A race of 36 is a `final` just below 1; at 38 it would round to 1, which no uniform is.
NOISE = (1e-300, 1.0, 36.0)
MIDDLE = Coins(np.full((1, 1), 0.5), np.ones((1, 4)))


def edge_coins(judge: Judge) -> Outcome:
    """Random numbers at both ends accept no draft with p = 0, and emit nothing impossible.

    At u = 0 such a draft is rejected (accept iff u < p / q, strictly). Where p = q, no coin
    rejects; where rounding makes p a little less than q everywhere, the residual is empty, and
    the last token has p > 0 all the same. What only such coins do is an edge, as rare as a coin
    on the grid of the sampler's own format; of the noise, one of V numbers is 0.
    """
    if "coins" not in judge.keywords:
        return not_applicable("does not take random numbers")
    if other := other_randomness(judge):
        return not_applicable(other)
    rare: Outcome | None = None
    for case, batch, coins in _edges(judge.capabilities.dtype):
        tokens = judge.verifier(batch, judge.rng("edge"), coins).tokens[0].tolist()
        allowed = _allowed(judge, case)
        if tokens not in allowed:
            u, race = float(coins.accept[0, 0]), coins.race[0].tolist()
            noise = race if 0 in race else race[0]
            message = (
                f"{case} for draft {batch.draft_tokens[0, 0]}, accept random number {u}, race "
                f"{noise}: {tokens}, expected one of {allowed}"
            )
            facts = {"accept": u, "race": noise, **batch.facts(0)}
            ordinary = judge.verifier(batch, judge.rng("edge"), MIDDLE).tokens[0].tolist()
            if ordinary not in allowed:
                return failed(message, **facts)
            draws = LARGE if 0 in race else None
            found = edge(message, ROUNDING[judge.capabilities.dtype], draws, **facts)
            if rare is None or rare.status == Status.PASSED:
                rare = found
    return rare or passed()


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
        for row in 1 - np.eye(4):
            yield case, batch, Coins(MIDDLE.accept, row[None])


def _allowed(judge: Judge, case: str) -> list[list[int]]:
    # A softmax may leave p > q where they were equal.
    rule = judge.declared
    one = bool(rule and rule.verify) and judge.capabilities.inputs == "probs"
    if case == "p = 0":
        return [[2, NO_TOKEN]] if one else [[2, NO_TOKEN], [1, NO_TOKEN]]
    draft = 1 if case == "p = q" else 3
    kept = [[draft, NO_TOKEN], *([draft, token] for token in (1, 2, 3))]
    other = [[token, NO_TOKEN] for token in (1, 2, 3)]
    return kept[1:] if one and case == "p = q" else [*kept, *other]


SIZE = 2_000


def expected_tokens(
    batch: Batch, coins: Coins, recovery: str, order: CoinOrder = "token by token"
) -> Ints:
    """The tokens that a rule emits under given coins, row by row, by the definition.

    The last token is drawn by the exponential race or by the inverse CDF of `coins.final`.
    """
    tokens = np.full((len(batch), batch.draft_tokens.shape[1] + 1), NO_TOKEN)
    for row in range(len(batch)):
        p, q, drafts = _row(batch, row)
        kept, weights = DECIDED[order](p, q, drafts, coins.accept[row])
        tokens[row, :kept] = drafts[:kept]
        if recovery == "race":
            tokens[row, kept] = race_winner(weights, coins.race[row])
        else:
            ends = np.cumsum(weights)
            tokens[row, kept] = (ends <= coins[row : row + 1].final[0] * ends[-1]).sum()
    return tokens


def coin_by_coin(judge: Judge) -> Outcome:
    """Random numbers decide every block, on every test case, with q and without.

    The laws are those that were given, in low precision too. Where a coin is nearer to what it is
    compared with than rounding, both outcomes pass.
    """
    claims = judge.capabilities
    if "coins" not in judge.keywords:
        return not_applicable("does not take random numbers")
    order = _order(claims)
    if claims.recovery is None or order is None:
        wanted = " or ".join(f"rule={rule.name!r}" for rule in RULES.values() if rule.coins)
        return not_applicable(f"declares no recovery ('race' or 'inverse') for {wanted}")
    if claims.inputs == "logits":
        return not_applicable("is given logits: no bound on the rounding of a softmax is known")
    blocks = near = 0
    for name, batch in _batches(judge):
        coins = draw_batch_coins(batch, judge.rng(f"coins {name}"))
        given = _given(judge, batch)
        got = judge.verifier(batch, judge.rng("replay"), coins).tokens
        expected = expected_tokens(given, coins, claims.recovery, order)
        for row in np.flatnonzero((got != expected).any(axis=1)).tolist():
            if _possible(claims, given, coins, row, got[row]):
                near += 1
                continue
            if other := other_randomness(judge):
                return not_applicable(other)
            drafts, accept = given.draft_tokens[row].tolist(), coins.accept[row]
            return failed(
                f"{name}, row {row}: {got[row].tolist()}, expected {expected[row].tolist()} from "
                f"drafts {drafts} and accept random numbers {accept.round(4).tolist()}"
                + _remedy(claims, given, coins, row, got[row]),
                row=row,
                accept=accept.tolist(),
                race=coins.race[row].tolist(),
                **given.facts(row),
            )
        blocks += len(batch)
    return passed(
        f"{blocks:,} blocks are the rule's for the same random numbers"
        + (f", but {near} that differ by rounding" if near else "")
    )


def _order(claims: Capabilities) -> CoinOrder | None:
    """How the declared rule decides by coins, if it is given drafts."""
    return None if claims.rule is None else RULES[claims.rule].coins


def _batches(judge: Judge) -> Iterator[tuple[str, Batch]]:
    for name in CHAIN_FIXTURES:
        batch = sample_batch(judge.fixture(name), SIZE, judge.rng(name))
        yield name, batch
        if judge.capabilities.one_hot:
            yield f"{name}, no draft_probs", batch.without_q()


def _given(judge: Judge, batch: Batch) -> Batch:
    """A batch with the laws as the implementation gets them: rounded, for example."""
    p, q, read = batch.target_probs, batch.draft_probs, judge.verifier.read
    q = None if q is None else read("draft_probs", q)
    return replace(batch, target_probs=read("target_probs", p), draft_probs=q)


def _possible(claims: Capabilities, batch: Batch, coins: Coins, row: int, tokens: Ints) -> bool:
    """Whether rounding can explain this block, given the coins of a row."""
    p, q, drafts = _row(batch, row)
    kept, arithmetic = int((tokens != NO_TOKEN).sum()) - 1, arithmetic_of(claims)
    accept, race, final = map(
        arithmetic.around,
        (coins.accept[row, : len(drafts)], coins.race[row], coins[row : row + 1].final),
    )
    order = _order(claims)
    assert order is not None, "only rules with random numbers are replayed"
    possible, weights = ENCLOSED[order](p, q, drafts, accept, kept, arithmetic)
    if claims.recovery == "race":
        return possible and wins(weights, race, int(tokens[kept]), arithmetic)
    return possible and falls(weights, final, int(tokens[kept]), arithmetic)


def _row(batch: Batch, row: int) -> tuple[Floats, Floats, Ints]:
    """p, q and drafts of a row; without q, one-hot rows."""
    p, drafts = batch.target_probs[row], batch.draft_tokens[row, : batch.lens[row]]
    q = one_hot_rows(drafts, p.shape[1]) if batch.draft_probs is None else batch.draft_probs[row]
    return p, q, drafts


def _remedy(claims: Capabilities, batch: Batch, coins: Coins, row: int, tokens: Ints) -> str:
    """Hint at a tolerance to declare, if arithmetic in the dtype of the laws explains a block."""
    margin = EQUIVALENCE_MARGIN.get(claims.dtype, 0.0)
    lower = replace(claims, tolerance=max(margin, claims.tolerance))
    if lower == claims or not _possible(lower, batch, coins, row, tokens):
        return ""
    return f" (if it calculates in {claims.dtype}: declare tolerance={margin})"


def permuted(judge: Judge) -> Outcome:
    """Rows permuted with their random numbers, or given in chunks, get the same blocks."""
    if "coins" not in judge.keywords:
        return not_applicable("does not take random numbers")
    claims = judge.capabilities
    if not (claims.row_seeds or claims.rule or claims.recovery):
        return not_applicable(
            "claims neither row_seeds nor how random numbers are read (rule, recovery)"
        )
    batch = sample_batch(judge.fixture("wide"), 60, judge.rng("permuted"))
    coins = draw_batch_coins(batch, judge.rng("permuted coins"))
    order = judge.rng("order").permutation(len(batch))
    whole = judge.verifier(batch, judge.rng("call"), coins).tokens
    shuffled = Coins(coins.accept[order], coins.race[order])
    moved = judge.verifier(batch[order], judge.rng("call"), shuffled).tokens
    halves = [
        judge.verifier(batch[part], judge.rng("call"), coins[part]).tokens
        for part in (slice(0, 1), slice(1, 7), slice(7, None))
    ]
    for name, other in (("permuted", moved[np.argsort(order)]), ("split", np.concatenate(halves))):
        for row in np.flatnonzero((whole != other).any(axis=1))[:1].tolist():
            got, before = other[row].tolist(), whole[row].tolist()
            return failed(
                other_randomness(judge)
                or f"row {row} is {got} when the batch is {name}, {before} otherwise",
                row=row,
                **batch.facts(row),
            )
    return passed()


CHECKS = (
    Check("replay/coin-by-coin", VerifyContract, coin_by_coin, finding=Finding.CONTRACT, law=True),
    Check("replay/edge-coins", VerifyContract, edge_coins, law=True),
    Check("replay/permuted", VerifyContract, permuted, finding=Finding.CONTRACT, law=True),
)
