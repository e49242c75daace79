"""Stage strata: the situations that engines meet, each judged by bets on the emitted tokens."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from specref.conformance.checks.check import Check, failed, inconclusive, not_applicable, passed
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.conformance.strata.calling import WAYS, Called, Changed
from specref.conformance.strata.shape import ranges
from specref.conformance.strata.stratum import NAMES, PLACES, Found, Stratum, run
from specref.conformance.strata.table import FIRST, OWN, STRATA, capped, drawn_pairs, own_stratum
from specref.contracts.capabilities import AS_TEXT
from specref.contracts.errors import BrokenContractError
from specref.contracts.verify.contract import VerifyContract
from specref.statistics.features import tokens_to_detect

CELLS = 12_000_000
USELESS, OWN_COST, PAIRS = 0.5, 40.0, 3
MOST_AS_TEXT, SLOWER_AS_TEXT = 1_000, 10


def judged(stratum: Stratum, judge: Judge) -> Outcome:
    """A campaign in one stratum."""
    claims = judge.capabilities
    if not stratum.laws and not claims.one_hot:
        return not_applicable("does not take draft_probs=None")
    verifier: Called = WAYS[stratum.way](judge.implementation, claims, judge.timeout)
    if why := verifier.refusal():
        return not_applicable(why)
    if sent_as_text(judge) and max(shape.vocabulary for shape in stratum.shapes) > MOST_AS_TEXT:
        return not_applicable("numbers are sent as text: --vocabulary judges it at such a size")
    try:
        found = campaign(stratum, verifier, judge, judge.level)
    except BrokenContractError as error:
        if not isinstance(verifier, Changed):
            raise
        return not_applicable(f"not judged {verifier.way}: {str(error).splitlines()[0]}")
    return outcome_of([found], judge)


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
    if (most := judge.capabilities.batch) and most < FIRST.shapes[0].batch:
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
        verifier = Called(judge.implementation, judge.capabilities, judge.timeout)
        shapes = capped(FIRST, judge.capabilities.batch)
        rng = judge.rng(f"strata/{FIRST.name}")
        judge.first = run(FIRST, shapes, verifier, judge.level, 0, 1, 1, rng, judge.advance)
    return judge.first


def own_shapes(judge: Judge) -> Outcome:
    """A campaign at the shapes that were asked for, in each dtype that was."""
    if not judge.options.shapes:
        return not_applicable("no shape was asked for")
    stratum, dtypes = own_stratum(judge.options.shapes), judge.options.dtypes
    found = []
    for dtype in dtypes or (judge.capabilities.dtype,):
        claims = replace(judge.capabilities, dtype=dtype)
        verifier = Called(judge.implementation, claims, judge.timeout)
        level = judge.level / max(1, len(dtypes))
        found.append(campaign(stratum, verifier, judge, level, OWN_COST))
    return outcome_of(found, judge)


def sent_as_text(judge: Judge) -> bool:
    """Whether the implementation is a program that reads numbers as text."""
    return bool(getattr(judge.implementation, AS_TEXT, False))


def campaign(
    stratum: Stratum, verifier: Called, judge: Judge, level: float, cost: float = 1.0
) -> Found:
    """The campaign of a stratum, with one way of calling."""
    shapes = capped(stratum, verifier.capabilities.batch)
    features = (len(PLACES) + len(shapes)) * len(NAMES)
    tokens = int(stratum.cost * tokens_to_detect(judge.detect_tv, level, features))
    scale = max(1.0, (0.05 / judge.detect_tv) ** 2) * stratum.cost * cost
    scale /= SLOWER_AS_TEXT if sent_as_text(judge) else 1
    rng = judge.rng(f"strata/{stratum.name}")
    wanted = judge.trials or tokens, int(CELLS * scale)
    calls, seconds = judge.calls_made, judge.seconds
    found = run(stratum, shapes, verifier, level, calls, *wanted, rng, judge.advance, seconds)
    judge.calls_made = max(judge.calls_made, stratum.after) + found.calls
    return found


def outcome_of(campaigns: Sequence[Found], judge: Judge) -> Outcome:
    """The outcome of campaigns in a stratum, one for each dtype."""
    detectable = max(found.detectable for found in campaigns)
    tokens, calls = (sum(getattr(f, n) for f in campaigns) for n in ("tokens", "calls"))
    tried = ranges(list(campaigns[0].by_shape))
    evidence = {
        "calls": calls,
        "rows": sum(found.rows for found in campaigns),
        "tokens": tokens,
        "alpha": judge.level,
        "detectable_shift": detectable,
        "tried": tried,
        "by_shape": {
            f"{shape}, {found.dtype}": shift
            for found in campaigns
            for shape, shift in found.by_shape.items()
        },
        "log10_evidence": max(found.log10_evidence for found in campaigns),
        "log10_threshold": campaigns[0].log10_threshold,
    }
    for found in campaigns:
        if found.impossible:
            return failed(f"impossible: {found.impossible}", **evidence)
        if found.lossy:
            return failed(
                f"tokens are not drawn from the target's rows: {found.worst}, by "
                f"{found.shift:+.3f} a token; evidence 10^{found.log10_evidence:.0f} after "
                f"{found.tokens:,} tokens",
                **evidence,
            )
    told = f"{tried}: {tokens:,} tokens, {calls:,} calls"
    if detectable > USELESS or not tokens:
        return inconclusive(f"{told}: too few to see much", **evidence)
    return passed(f"{told}; a shift ≥ {detectable:.2g} would have been found", **evidence)


ASKED: tuple[tuple[str, Callable[[Judge], Outcome]], ...] = (
    (FIRST.name, first_call),
    *((stratum.name, partial(judged, stratum)) for stratum in STRATA),
    *((f"pair-{index + 1}", partial(pair, index)) for index in range(PAIRS)),
    (OWN, own_shapes),
)
CHECKS = tuple(
    Check(f"strata/{name}", VerifyContract, ask, statistical=True, law=True) for name, ask in ASKED
)
