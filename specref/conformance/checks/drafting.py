"""Stage joint for drafters: whether drafts are drawn from the declared q."""

import itertools
import math
import time
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from specref.arrays import Floats
from specref.conformance.checks.check import Check, failed, inconclusive, passed
from specref.conformance.checks.joint import USELESS
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.conformance.strata.calls import CallPlace, hashed_pair, vocabulary_of
from specref.conformance.strata.laws import drawn_pool
from specref.conformance.strata.shape import call_shapes
from specref.conformance.strata.stratum import most_pairs
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES, Fixture, Place
from specref.contracts.functions import DrafterContract
from specref.contracts.sampling import giver
from specref.contracts.timeout import Deadline, within
from specref.models import as_float
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.planning import typical_trials, typical_tv

LOOK = 100
SIZE = 8
SHAPES = call_shapes([SIZE], [0, 3, 41, 300, 1_100], [1, 5, 9, 17])


def on_fixture(name: str, judge: Judge) -> Outcome:
    """Bet on every drafted token with the q that was declared for it."""
    return declared(judge.fixture(name).drafted(), judge)


def in_situations(judge: Judge) -> Outcome:
    """The same, for up to 17 drafts after up to 1,100 tokens, which q depends on, all of them."""
    rng = judge.rng("drafter/situations")
    models = hashed_pair(drawn_pool(rng, SIZE, most_pairs(SIZE)), vocabulary_of(SIZE, ends=False))
    places = (
        CallPlace(tuple(rng.integers(SIZE, size=shape.context).tolist()), shape.asked, shape)
        for shape in SHAPES
    )
    return declared(Fixture("situations", *models, tuple(places)), judge)


def declared(fixture: Fixture, judge: Judge) -> Outcome:
    """The outcome of bets on drafts at all places of a fixture."""
    tolerance, alpha = judge.capabilities.tolerance, judge.level
    campaign, deadline = Campaign(alpha=alpha, eps=None, tolerance=tolerance), Deadline()
    drafts = within(judge.timeout, partial(observed, fixture, judge, campaign, deadline), deadline)
    evidence = campaign.peak / math.log(10)
    if campaign.impossible:
        return failed(f"a draft that its declared q excludes: {campaign.impossible}")
    if campaign.decided_lossy:
        return failed(f"drafts do not follow their declared q: evidence 10^{evidence:.0f}")
    limited = judge.seconds is not None and drafts > 0
    tv = min(USELESS, typical_tv(drafts)) if limited else judge.detect_tv
    needed = drafts if limited and tv < USELESS else typical_trials(tv)
    if drafts < needed:
        return inconclusive(
            f"{drafts:,} drafts would not find TV {tv:g} ({needed:,} usually do); "
            f"evidence 10^{evidence:z.1f}, where 10^{-math.log10(alpha / 2):.1f} decides",
            needed=needed,
            log10_evidence=evidence,
        )
    return passed(
        f"{drafts:,} drafts follow their declared q; TV of about {tv:.2g} is usually found",
        trials=drafts,
        usual_tv=tv,
    )


def observed(fixture: Fixture, judge: Judge, campaign: Campaign, deadline: Deadline) -> int:
    """Draft and bet until the law is decided or there are enough drafts; their number."""
    rng = judge.rng(f"drafter/{fixture.name}")
    models, give, drafts = as_float(fixture.drafter), giver(judge.implementation), 0
    until = None if judge.seconds is None else time.perf_counter() + judge.seconds
    wanted = judge.trials or typical_trials(judge.detect_tv)
    for trial in itertools.count():
        # Who drafts nothing is called as often as would do with one draft a call.
        enough = max(trial, drafts) >= wanted
        if enough if until is None else time.perf_counter() > until:
            break
        place = fixture.places[trial % len(fixture.places)]
        raw = give((models, place.context, place.lookahead), rng)
        try:
            for position, (token, law) in enumerate(read_drafts(raw, fixture, place)):
                campaign.observe(law, token, position=position)
                drafts += 1
        except (TypeError, ValueError) as error:
            raise BrokenContractError(f"at {place.name}: {error}") from error
        deadline.restart()
        if trial % LOOK == 0 and campaign.decided_lossy:
            break
    return drafts


def read_drafts(raw: Any, fixture: Fixture, place: Place) -> list[tuple[int, Floats]]:
    """Drafts with their declared laws."""
    if not isinstance(raw, (tuple, list)) or len(raw) != 2:
        raise TypeError(f"returned a {type(raw).__name__}: expected a pair (tokens, q rows)")
    size = len(fixture.drafter.vocabulary)
    tokens, laws = (x.tolist() if hasattr(x, "tolist") else x for x in raw)
    q = np.asarray(laws, dtype=np.float64)
    for index, token in enumerate(tokens):
        known = isinstance(token, Integral) and not isinstance(token, bool)
        if not known or not 0 <= token < size:
            raise ValueError(f"token {index} is {token!r}: expected 0 <= id < {size}")
    if len(tokens) > place.lookahead:
        raise ValueError(f"{len(tokens)} drafts: expected at most {place.lookahead}")
    if q.shape != (len(tokens), size) and len(tokens) + q.size:
        raise ValueError(f"q has shape {q.shape}: expected {(len(tokens), size)}")
    return list(zip(tokens, q, strict=True))


ASKED: dict[str, Callable[[Judge], Outcome]] = {
    **{name: partial(on_fixture, name) for name in CHAIN_FIXTURES},
    "long": in_situations,
}
CHECKS = tuple(
    Check(f"joint/declared-q-{name}", DrafterContract, ask, statistical=True)
    for name, ask in ASKED.items()
)
