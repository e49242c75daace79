"""Whether a row's block depends on what is kept of other rows: it explains dependent rows.

One row is put beside rows whose drafts are all kept, since p = q, and beside rows of which none
is, since p and q exclude each other. If its block has another law there, a decision is made for
the whole batch: the shortest row ends the others, or a draft is kept if any is. Rows that share
random numbers leave it as it is. No coins are compared: a sampler may draw them in an order that
depends on the data.

Each of both is done with two kinds of neighbours. If these alone make a difference, it is no
decision: other rows' laws or drafts are read.
"""

import time
from contextlib import suppress
from itertools import cycle

import numpy as np

from specref.arrays import Floats, Ints
from specref.conformance.judge import Judge
from specref.contracts.batch import Batch
from specref.contracts.errors import BrokenContractError
from specref.contracts.verify import VerifyContract
from specref.statistics import TwoSample
from specref.statistics.campaign.verdict import Verdict

CALLS, SECONDS, ROWS, DRAFTS, SIZE = 500, 2.0, 8, 3, 6
"""Calls beside neighbours of each kind, and seconds for all; the shape of a call."""
ALPHA = 1e-6
"""The chance that one comparison finds a difference where there is none."""
KEPT, REJECTED = ("kept", "otherwise kept"), ("rejected", "otherwise rejected")


def depends_on_others(judge: Judge) -> str:
    """What of other rows a row's block depends on, in words; empty if nothing was seen."""
    claims = judge.capabilities
    if not isinstance(judge.contract, VerifyContract) or claims.batch == 1 or claims.greedy:
        return ""
    blocks = drawn(judge)
    apart = {
        pair: differ([blocks[kind] for kind in pair])
        for pair in (KEPT, REJECTED, (KEPT[0], REJECTED[0]))
    }
    calls = f"{min(map(len, blocks.values()))} calls of each"
    if apart[KEPT] or apart[REJECTED]:
        return (
            "a row's block depends on other rows' laws or drafts: beside rows with others, of "
            f"which as many are kept, it has another law ({calls})"
        )
    if apart[KEPT[0], REJECTED[0]]:
        return (
            "a row's block depends on other rows' verdicts: beside rows whose drafts are all "
            f"kept it has another law than beside rows of which none is ({calls})"
        )
    return ""


def differ(both: list[Ints]) -> bool:
    """Whether two samples of blocks have different laws."""
    least = min(map(len, both))
    if not least:
        return False
    test = TwoSample(alpha=ALPHA, eps=None)
    test.add(both[0][:least], both[1][:least])
    return test.report().verdict == Verdict.LOSSY


def drawn(judge: Judge) -> dict[str, Ints]:
    """{kind of neighbours: blocks of one row beside them}, as many as there is time for."""
    rng, verifier = judge.rng("beside"), judge.called()
    rows = min(ROWS, judge.capabilities.batch or ROWS)
    p, q = rng.dirichlet(np.full(SIZE, 2.0), (2, DRAFTS + 1))
    blocks: dict[str, list[Ints]] = {kind: [] for kind in (*KEPT, *REJECTED)}
    until = time.perf_counter() + SECONDS
    with suppress(BrokenContractError):
        for kind in cycle(blocks):
            batch = beside(kind, rows, p, q[:DRAFTS], rng)
            blocks[kind].append(verifier(batch, rng).tokens[rows // 2])
            late = time.perf_counter() > until
            if kind == REJECTED[1] and (late or len(blocks[kind]) == CALLS):
                break
    empty = np.empty((0, DRAFTS + 1), dtype=np.int64)
    return {kind: np.array(found) if found else empty for kind, found in blocks.items()}


def beside(kind: str, rows: int, p: Floats, q: Floats, rng: np.random.Generator) -> Batch:
    """One row with these laws in the middle of others of one kind."""
    ids, half = np.arange(SIZE), SIZE // 2
    low, high = (np.where(chosen, 1 / half, 0.0) for chosen in (ids < half, ids >= half))
    other_p, other_q = {
        KEPT[0]: (low, low),
        KEPT[1]: (high, high),
        REJECTED[0]: (low, high),
        REJECTED[1]: (high, low),
    }[kind]
    target, draft = (np.tile(law, (rows, n, 1)) for law, n in ((other_p, 1), (other_q, 1)))
    target, draft = target.repeat(DRAFTS + 1, axis=1), draft.repeat(DRAFTS, axis=1)
    target[rows // 2], draft[rows // 2] = p, q
    uniforms = rng.random((rows, DRAFTS, 1))
    drafts = (uniforms > draft.cumsum(axis=2)).sum(axis=2).clip(max=SIZE - 1)
    return Batch(target, draft, drafts, np.full(rows, DRAFTS), np.zeros(rows, dtype=np.int64))
