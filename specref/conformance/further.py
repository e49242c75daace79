"""What is asked of a sampler that has failed, so that its failure is explained."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from specref.conformance.beside import depends_on_others
from specref.conformance.checks.check import Check, few_threads
from specref.conformance.judge import Judge
from specref.conformance.status import (
    CheckResult,
    Finding,
    Outcome,
    Stage,
    Status,
    blocker,
)
from specref.conformance.trial import tallied
from specref.conformance.watched import asked_elsewhere
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Place
from specref.vocabulary import Tokens

Counts = Mapping[Place, Counter[Tokens]]
BLOCKS = 200_000
SECONDS = 20.0
LARGEST = 1 << 14
EXPLAINING, CHEAP = 10.0, 1.5
"""Seconds for strata that a failure blocks, and the most weight of one that is worth them."""


def explanation(result: CheckResult, judge: Judge) -> str:
    """Why the first failure of a law, or of independence, may have come about; empty if unknown.

    It is asked for once: other failures mostly have the same reason.
    """
    if judge.explained or result.status != Status.FAILED or not result.lossy:
        return ""
    judge.explained = True
    with few_threads():
        return asked_elsewhere(judge) or depends_on_others(judge)


def explains(one: Check, before: Sequence[CheckResult]) -> bool:
    """Whether a blocked check may tell in which situations a sampler fails.

    Cheap strata may, if blocks are independent: their bets take that for granted. Each has its own
    share of alpha, whether it is blocked or not. Nothing that hangs is called again.
    """
    if one.stage != Stage.STRATA or one.weight > CHEAP:
        return False
    silent = {Finding.UNANSWERED, Finding.DEPENDENCE}
    return blocker(Stage.JOINT, before) is None and not any(r.finding in silent for r in before)


def explained(
    one: Check,
    judge: Judge,
    before: Sequence[CheckResult],
    run: Callable[[Check], CheckResult],
) -> CheckResult:
    """The result of a check that a failure blocks, if `explains`; not_run if time is short.

    All of them together have 10 s. What one has drawn when they end says nothing, unless it has
    decided by then.
    """
    spent = sum(result.seconds for result in before if result.stage == Stage.STRATA)
    until, advance, late = time.perf_counter() + EXPLAINING - spent, judge.advance, False
    seconds = 0.0

    def in_time(trials: int) -> None:
        nonlocal late
        advance(trials)
        late = time.perf_counter() > until
        if late:
            raise TimeoutError(f"{EXPLAINING:g} s are over")

    if spent < EXPLAINING:
        judge.advance = in_time
        try:
            result = run(one)
        finally:
            judge.advance = advance
        if not late:
            return result
        seconds = result.seconds
    why = f"blocked by {blocker(one.stage, before)}; other strata were tried for {EXPLAINING:g} s"
    return one.result(Outcome(Status.NOT_RUN, why), seconds)


def further(judge: Judge, names: Sequence[str]) -> Mapping[str, Counts]:
    """More blocks on fixtures with a finished campaign: up to 200,000 in all, or for 20 s.

    They are drawn once and kept by the judge. Drawing stops if the sampler breaks its contract.

    Parameters
    ----------
    judge : Judge
    names : sequence of str
        Names of fixtures in `judge.memo`.
    """
    wanted = -(-BLOCKS // len(names)) if names else 0
    for name in names:
        if name not in judge.further:
            missing = wanted - judge.memo[f"blocks/{name}"].report.trials
            judge.further[name] = _drawn(judge, name, missing, SECONDS / len(names))
    return {name: judge.further[name] for name in names}


def _drawn(judge: Judge, name: str, missing: int, seconds: float) -> Counts:
    seen, places = judge.memo[f"blocks/{name}"], judge.fixture(name).places
    counts: dict[Place, Counter[Tokens]] = {place: Counter() for place in places}
    judge.further_sizes[name] = sizes = []
    sampler, rng = judge.one_iteration(name), judge.rng(f"further/{name}")
    speed, pair = seen.report.trials / max(seen.seconds, 1e-6), 2 * len(places)
    done, started, left = 0, time.perf_counter(), seconds
    while missing > done:
        size = min(missing - done, LARGEST, int(speed * left))
        if size < pair:
            break
        try:
            place, blocks, _ = sampler(size - size % pair, rng)
        except BrokenContractError:
            break
        for index, one in enumerate(places):
            counts[one] += tallied(blocks[place == index])
        sizes.append(len(place))
        done += len(place)
        spent = time.perf_counter() - started
        speed, left = done / spent, seconds - spent
    return counts
