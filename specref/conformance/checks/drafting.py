"""Stage joint for drafters: is the declared q the law that drafts are drawn from?"""

import math
from functools import partial
from typing import Any

import numpy as np

from specref.conformance.batch import BrokenContractError
from specref.conformance.calling import global_randomness, within
from specref.conformance.checks.check import Check, failed, inconclusive, passed
from specref.conformance.contract import Contract
from specref.conformance.fixtures import TEETH, Place, Teeth
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.losslessness.campaign import Campaign
from specref.losslessness.planning import typical_trials
from specref.models import as_float

DRAFTER = frozenset({Contract.DRAFTER})


def declared(name: str, judge: Judge) -> Outcome:
    """Bet on every drafted token with the q that was declared for it."""
    teeth, rng = judge.teeth(name), judge.rng(f"drafter/{name}")
    trials = judge.trials or typical_trials(judge.detect_tv)
    campaign = Campaign(alpha=judge.alpha / judge.checks, eps=None, tolerance=_tolerance(judge))
    for trial in range(trials):
        place = teeth.places[trial % len(teeth.places)]
        tokens, laws = within(judge.patience, partial(drafted, judge, teeth, place, rng))
        for position, (token, law) in enumerate(zip(tokens, laws, strict=True)):
            campaign.observe(law, token, position=position)
        if campaign.decided_lossy:
            break
    return _outcome(judge, campaign, trials)


def _tolerance(judge: Judge) -> float:
    return judge.capabilities.tolerance


def _outcome(judge: Judge, campaign: Campaign, trials: int) -> Outcome:
    evidence = campaign.peak / math.log(10)
    if campaign.impossible:
        return failed(f"a draft that its declared q excludes: {campaign.impossible}")
    if campaign.decided_lossy:
        return failed(f"drafts do not follow their declared q: evidence 10^{evidence:.0f}")
    if trials < typical_trials(judge.detect_tv):
        return inconclusive(f"{trials:,} drafts would not find TV {judge.detect_tv:g}")
    return passed(f"{trials:,} drafts follow their declared q (TV about {judge.detect_tv:g})")


def drafted(
    judge: Judge, teeth: Teeth, place: Place, rng: np.random.Generator
) -> tuple[list[int], np.ndarray[Any, Any]]:
    """The drafts at a place and their declared laws, checked."""
    arguments = (as_float(teeth.drafter), place.context, place.lookahead)
    if "rng" in judge.keywords:
        raw = judge.implementation(*arguments, rng)
    else:
        with global_randomness(rng):
            raw = judge.implementation(*arguments)
    try:
        tokens, laws = raw
        ids, q = [int(token) for token in tokens], np.asarray(laws, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BrokenContractError(f"expected a pair (tokens, q rows): {error}") from None
    size = len(teeth.drafter.vocabulary)
    if q.shape != (len(ids), size) or len(ids) > place.lookahead:
        shape = f"({len(ids)}, {size})"
        raise BrokenContractError(
            f"q has shape {q.shape} for {len(ids)} drafts: expected {shape}, "
            f"at most {place.lookahead} drafts"
        )
    return ids, q


CHECKS = tuple(
    Check(f"joint/declared-q-{name}", DRAFTER, partial(declared, name), statistical=True)
    for name in TEETH
)
