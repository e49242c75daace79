"""Stage replay: coins at the ends of their range."""

import itertools
from collections.abc import Iterator

import numpy as np

from specref.arrays import NO_TOKEN
from specref.coins import Coins
from specref.conformance.checks.check import LARGE, edge, failed, not_applicable, passed
from specref.conformance.checks.intercepting import other_randomness
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome, Status
from specref.contracts.batch import Batch

ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
# A race of 36 is a `final` just below 1; at 38 it would round to 1, which no uniform is.
NOISE = (1e-300, 1.0, 36.0)
MIDDLE = Coins(np.full((1, 1), 0.5), np.ones((1, 4)))


def edge_coins(judge: Judge) -> Outcome:
    """Coins at the ends of their range accept no draft with p = 0, and emit nothing impossible.

    At u = 0 such a draft is rejected (accept iff u < p / q, strictly). Where p = q, no coin
    rejects; where rounding makes p a little less than q everywhere, the residual is empty, and
    the last token has p > 0 all the same. What only such coins do is an edge, as rare as a coin
    on the grid of the sampler's own format; of the noise, one of V numbers is 0.
    """
    if "coins" not in judge.keywords:
        return not_applicable("does not take coins")
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
                f"{case} for draft {batch.draft_tokens[0, 0]}, accept coin {u}, race {noise}: "
                f"{tokens}, expected one of {allowed}"
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
