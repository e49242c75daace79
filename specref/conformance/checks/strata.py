"""Stage strata: the situations that engines meet, each judged by bets on the emitted tokens."""

import math
import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from specref.arrays import Floats
from specref.conformance.checks.check import (
    DRAFTS,
    Check,
    failed,
    inconclusive,
    not_applicable,
    passed,
)
from specref.conformance.checks.shifts import cells_needed, outcome_of, scale, tokens_needed
from specref.conformance.checks.situations import as_far_as_possible, call_campaign, tree_campaign
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome, Status
from specref.conformance.strata.calling import BesideGreedy, Called
from specref.conformance.strata.campaign import PLACES, Found
from specref.conformance.strata.shape import Shape
from specref.conformance.strata.stratum import Stratum, run
from specref.conformance.strata.table import (
    BESIDE_GREEDY,
    FEWEST_FIRST,
    FIRST,
    ODD_TEMPERATURES,
    ONE_TEMPERATURE,
    OWN,
    STRATA,
    capped,
    drawn_pairs,
    own_calls,
    own_stratum,
    own_trees,
)
from specref.contracts.batch import Batch
from specref.contracts.capabilities import AS_TEXT, Capabilities
from specref.contracts.contract import Contract
from specref.contracts.functions import StepContract
from specref.contracts.ragged import RaggedContract
from specref.contracts.tree import TreeContract, TreeVerifier
from specref.contracts.verify import VerifyContract

CELLS = 12_000_000
OWN_COST, PAIRS = 40.0, 3
MANY_ROWS, MANY_DRAFTS, MANY_IDS = 140, 4, 32_000
MOST_AS_TEXT, SLOWER_AS_TEXT, OF_LARGE_VOCABULARIES = 1_000, 10, "vocabulary-"


def judged(stratum: Stratum, judge: Judge) -> Outcome:
    """A campaign in one stratum."""
    claims = judge.capabilities
    if (stratum.in_turn or not stratum.laws) and not claims.one_hot:
        return not_applicable("does not take draft_probs=None")
    verifier = judge.called(stratum.way)
    if why := verifier.refusal():
        return not_applicable(why)
    sent = as_sent(stratum, judge)
    if sent is None:
        return not_applicable("numbers are sent as text: ask for such a --shape V=…")
    found = campaign(sent, verifier, judge, judge.level)
    outcome = outcome_of([found], judge)
    if isinstance(verifier, BesideGreedy) and verifier.departure:
        return failed(verifier.departure, **outcome.evidence)
    if outcome.status == Status.PASSED and found.before < stratum.after:
        least = f"{found.before:,} calls came before it in time, and {stratum.after:,} should"
        return inconclusive(least, **outcome.evidence)
    return outcome


def pair(index: int, judge: Judge) -> Outcome:
    """A campaign where two strata meet; which ones depends on the seed."""
    stratum = drawn_pairs(judge.rng("strata/pairs"), PAIRS)[index]
    outcome = judged(stratum, judge)
    return replace(
        outcome,
        message=f"{stratum.name}: {outcome.message}",
        evidence={**outcome.evidence, "pair": stratum.name},
    )


def first_call(judge: Judge) -> Outcome:
    """The tokens of the first call of all, which `smoke/answers` has made before any other."""
    if (most := judge.capabilities.batch) and most < FEWEST_FIRST:
        return not_applicable(f"takes {most} rows a call: too few to judge one call")
    return outcome_of([first_answered(judge)], judge)


def first_answered(judge: Judge) -> Found:
    """What the first call has shown; makes it if there was none.

    Raises
    ------
    BrokenContractError
        It raised, or gave no valid answer.
    """
    if judge.first is None:
        verifier = judge.called()
        shapes = capped(FIRST, judge.capabilities.batch)
        rng = judge.rng(f"strata/{FIRST.name}")
        judge.first = run(FIRST, shapes, verifier, judge.level, 0, 1, 1, rng, judge.advance)
    return judge.first


def large_call(judge: Judge) -> Outcome:
    """No impossible token in one call whose laws have more than 2^24 numbers.

    Above that float32 rounds odd numbers. Drafts have odd ids, and are certain. In each row some
    of them are certain of the target, too; where the next token comes from, the neighbours of the
    draft are likely, or other ids after the last one.
    """
    if (most := judge.capabilities.batch) and most < MANY_ROWS:
        return not_applicable(f"takes {most} rows a call: too few for so many numbers")
    if sent_as_text(judge):
        return not_applicable("numbers are sent as text: too many for one call")
    rng = judge.rng("large call")
    rows, places = np.arange(MANY_ROWS)[:, None], np.arange(MANY_DRAFTS)
    none = np.zeros(MANY_ROWS, dtype=np.int64)
    ids = 1 + 2 * rng.integers(MANY_IDS // 2 - 1, size=(MANY_ROWS, MANY_DRAFTS + 1))
    kept = rng.integers(MANY_DRAFTS + 1, size=MANY_ROWS)
    drafts = ids[:, :-1]
    p, q = zeros((MANY_ROWS, MANY_DRAFTS + 1, MANY_IDS)), None
    if not judge.capabilities.one_hot:
        q = zeros((MANY_ROWS, MANY_DRAFTS, MANY_IDS))
        q[rows, places, drafts] = 1
    for side in (-1, 1):
        p[rows[:, 0], kept, ids[rows[:, 0], kept] + side] = 0.5
    before, behind = places < kept[:, None], np.arange(MANY_DRAFTS + 1) > kept[:, None]
    p[:, :-1][before, drafts[before]] = 1
    p[behind, 0] = 1
    batch = Batch(p, q, drafts, none + MANY_DRAFTS, none)
    tokens = judge.called()(batch, rng).tokens
    row, place = np.nonzero(tokens >= 0)
    token, last = tokens[row, place], kept[row]
    # Not read from `p`: that was given away, and a sampler may filter what it is given.
    off = np.where(place > last, token, np.abs(token - ids[row, place]))
    for at in np.flatnonzero(off != (place == last))[:1].tolist():
        one, position = int(row[at]), int(place[at])
        return failed(
            f"row {one}: token {tokens[one, position]} at position {position} has p = 0", row=one
        )
    shape = str(Shape(MANY_IDS, MANY_DRAFTS, MANY_ROWS))
    return passed(f"{shape}: no impossible token", tried=shape)


def zeros(shape: tuple[int, ...]) -> Floats:
    """As `numpy.zeros`; where the system can, only parts that are written take memory.

    Examples
    --------
    >>> zeros((2, 3)).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape)
    size = math.prod(shape) * np.dtype(np.float64).itemsize
    empty = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(empty).reshape(shape)


def own_shapes(judge: Judge) -> Outcome:
    """A campaign at the shapes that were asked for, in each dtype that was."""
    if not judge.options.shapes:
        return not_applicable("no shape was asked for (--shape V=…,K=…,B=…)")
    claims = own_claims(judge)
    level = judge.level / len(claims)
    outcome = outcome_of([own_campaign(judge, one, level) for one in claims], judge)
    # The header has the dtype of all other checks.
    dtypes = ", ".join(judge.options.dtypes)
    return replace(outcome, message=f"in {dtypes}: {outcome.message}") if dtypes else outcome


def own_claims(judge: Judge) -> list[Capabilities]:
    """The claims with each dtype that was asked for."""
    claims = judge.capabilities
    return [replace(claims, dtype=one) for one in judge.options.dtypes or (claims.dtype,)]


def own_campaign(judge: Judge, claims: Capabilities, level: float) -> Found:
    """A campaign at the shapes that were asked for, with these claims."""
    shapes = judge.options.shapes
    if "batch" not in judge.contract.shaped:
        return call_campaign(own_calls(shapes), judge, level, OWN_COST)
    if judge.contract.trees:
        trees = own_trees(shapes).fitted(claims)
        verifier = TreeVerifier(judge.implementation, claims, judge.timeout)
        verifier.sizes_named = True
        return tree_campaign(trees, verifier, judge, level, OWN_COST)
    called = judge.called(claims=claims)
    called.sizes_named = True
    return campaign(own_stratum(shapes), called, judge, level, OWN_COST)


def as_sent(given: Stratum, judge: Judge) -> Stratum | None:
    """The stratum, its shapes drawn, with vocabularies that can be sent; None if they cannot."""
    stratum = given.with_drawn(judge.rng(f"shapes/{given.name}"))
    if not sent_as_text(judge) or max(s.vocabulary for s in stratum.shapes) <= MOST_AS_TEXT:
        return stratum
    if stratum.name.startswith(OF_LARGE_VOCABULARIES):
        return None
    fewer = (s._replace(vocabulary=min(s.vocabulary, MOST_AS_TEXT)) for s in stratum.shapes)
    return replace(stratum, shapes=tuple(dict.fromkeys(fewer)))


def sent_as_text(judge: Judge) -> bool:
    """Whether the implementation is a program that reads numbers as text."""
    return bool(getattr(judge.implementation, AS_TEXT, False))


def campaign(
    stratum: Stratum, verifier: Called, judge: Judge, level: float, cost: float = 1.0
) -> Found:
    """The campaign of a stratum, with one way of calling."""
    shapes = capped(stratum, verifier.capabilities.batch)
    places = len(PLACES) + len(verifier.places) + len(shapes)
    tokens = tokens_needed(judge, level, places, stratum.cost)
    cells = CELLS * scale(judge) * stratum.cost * cost
    cells /= SLOWER_AS_TEXT if sent_as_text(judge) else 1
    wanted = tokens, cells_needed(cells, judge, level, places, shapes)
    calls, seconds = judge.calls_made, judge.seconds
    known = judge.laws.get(stratum.name)
    times = seconds, judge.options.seconds

    def at(shapes: Sequence[Shape]) -> Found:
        rng = judge.rng(f"strata/{stratum.name}")
        return run(
            stratum, shapes, verifier, level, calls, *wanted, rng, judge.advance, *times, known
        )

    found = as_far_as_possible(judge, verifier, shapes, at)
    judge.calls_made = found.before + found.calls
    return found


ASKED: tuple[tuple[str, Callable[[Judge], Outcome]], ...] = (
    (FIRST.name, first_call),
    *((stratum.name, partial(judged, stratum)) for stratum in STRATA),
    *((f"pair-{index + 1}", partial(pair, index)) for index in range(PAIRS)),
    (OWN, own_shapes),
)
KINDS: Mapping[str, tuple[type[Contract], ...]] = {
    OWN: (VerifyContract, TreeContract, StepContract),
    ONE_TEMPERATURE: (RaggedContract,),
    BESIDE_GREEDY: (RaggedContract,),
    ODD_TEMPERATURES: (RaggedContract,),
}
WEIGHTS = {one.name: max(1.0, one.cost / 2, one.after / 10_000) for one in STRATA}
CHECKS = (
    *(
        Check(
            f"strata/{name}",
            KINDS.get(name, VerifyContract),
            ask,
            statistical=True,
            law=True,
            weight=WEIGHTS.get(name, 1.0),
        )
        for name, ask in ASKED
    ),
    Check("strata/large-call", DRAFTS, large_call),
)
