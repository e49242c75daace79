"""Goodput of companion-guided schedulers on recorded drafts, and how far one is from the target.

Kim et al. 2025 (arXiv:2509.24328), section 5.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpu_tests.benchmarks.companion_traces import Floats, Traces
from specref.algorithms.companion.signals import companion_acceptance, similarity
from specref.speed import traces as recorded
from specref.speed.budgets import FirstDecline
from specref.speed.companion import truncated_law
from specref.speed.companion_table import AcceptanceTable
from specref.speed.schedulers import Fixed, Oracle, Profile, Schedule, Scheduler
from specref.speed.simulation import simulate_speed
from specref.speed.tallies import SpeedReport
from specref.speed.traces import Iterations

BATCHES, ROOM = (1, 8, 32, 128), 32
MEASURED, FREE = "by parameters", "drafts for nothing"
PUBLISHED = "SV as published, S and A"
REJECTING = "SV by rejection, S and A"
PREDICTABLE = "SV predictable, S alone"
NONE = "no drafts"
SHOWN = PUBLISHED, REJECTING, PREDICTABLE


@dataclass(frozen=True)
class Simulated:
    """How long to simulate, and at how many places to compare laws."""

    trials: int = 500
    steps: int = 20
    places: int = 200
    seed: int = 1


class Run(NamedTuple):
    """A scheduler on one latency profile."""

    profile: str
    batch: int
    scheduler: str
    lossless: str
    report: SpeedReport


class Distance(NamedTuple):
    """Of the published rule's first token, over places: total variation from p."""

    profile: str
    batch: int
    price: float
    mean: float
    greatest: float


@dataclass(frozen=True, eq=False)
class Plan:
    """A scheduler, what it believes, and whether all drafts and the companion come first."""

    name: str
    lossless: str
    believed: Floats
    scheduler: Scheduler
    judges: bool


@dataclass(frozen=True)
class AtPrice:
    """Verifies while the believed survival is above a price: each request by itself."""

    price: float

    def __call__(self, iterations: Iterations, profile: Profile) -> Schedule:
        """The drafts that are worth the price, which are the first ones."""
        verified = (iterations.survival > self.price).sum(axis=1).take(iterations.rows)
        return Schedule(verified, verified.sum(axis=2))


def simulated(
    found: Traces,
    table: AcceptanceTable,
    costs: tuple[float, float],
    lookahead: int,
    sizes: Simulated,
) -> Iterator[Run]:
    """Every scheduler on every profile, on the same iterations."""
    estimated = estimates(found, table)
    for name, both in ((MEASURED, costs), (FREE, (0.0, 0.0))):
        for batch in BATCHES:
            profiles = profiles_of(batch, lookahead, *both)
            published = Plan(PUBLISHED, "no", estimated[0], FirstDecline(), judges=True)
            price = run_of(published, found, profiles, batch, sizes).goodput / ROOM
            for plan in plans(*estimated, price, lookahead):
                report = run_of(plan, found, profiles, batch, sizes)
                yield Run(name, batch, plan.name, plan.lossless, report)


def run_of(
    plan: Plan, found: Traces, profiles: dict[bool, Profile], batch: int, sizes: Simulated
) -> SpeedReport:
    """One scheduler, on the half of the texts that did not profile."""
    odd = found.text % 2 == 1
    return simulate_speed(
        recorded.Traces(found.accepted[odd].astype(int), believed=plan.believed[odd]),
        plan.scheduler,
        profiles[plan.judges],
        batch=batch,
        trials=sizes.trials,
        steps=sizes.steps,
        rng=np.random.default_rng(sizes.seed),
    )


def profiles_of(batch: int, lookahead: int, draft: float, judge: float) -> dict[bool, Profile]:
    """The times by whether all drafts, and the companion, come first."""
    passes = latencies(batch * (lookahead + 1))
    return {
        False: Profile(passes, draft / batch),
        True: Profile(passes + lookahead * draft + judge),
    }


def latencies(tokens: int) -> Floats:
    """A pass over n tokens takes 1 + n / `ROOM`: to read the weights, and to compute."""
    return 1 + np.arange(tokens + 1) / ROOM


def plans(judged: Floats, prior: Floats, price: float, lookahead: int) -> Iterator[Plan]:
    """Fixed lookaheads, by (S, A), by S alone, and what no scheduler can beat."""
    for g in range(lookahead + 1):
        yield Plan(f"SD, lookahead {g}" if g else NONE, "yes", prior, Fixed(g), judges=False)
    yield Plan(PUBLISHED, "no", judged, FirstDecline(), judges=True)
    yield Plan(REJECTING, "yes", judged, AtPrice(price), judges=True)
    yield Plan(PREDICTABLE, "alone", prior, FirstDecline(), judges=True)
    yield Plan("oracle", "", prior, Oracle(), judges=False)


def estimates(found: Traces, table: AcceptanceTable) -> tuple[Floats, Floats]:
    """What the table says of every draft, from S and A, and from S alone."""
    judged = [
        map(table, *row) for row in zip(found.similarity, found.companion_acceptance, strict=True)
    ]
    prior = [map(table.before_drawing, row) for row in found.similarity]
    both = (np.array([[float(rate) for rate in row] for row in rows]) for rows in (judged, prior))
    return next(both), next(both)


def distances(
    found: Traces, table: AcceptanceTable, runs: Sequence[Run], sizes: Simulated
) -> Iterator[Distance]:
    """Of the first token as published from p, where a draft is verified iff it pays in the run.

    One more token costs 1 / `ROOM`: the walk goes on while an estimate is above the goodput of
    the pass / `ROOM`, and in a large batch that of a pass is about that of the run.
    """
    places = np.random.default_rng(sizes.seed).permutation(len(found.text))[: sizes.places]
    for run in runs:
        if run.scheduler == PUBLISHED and run.batch >= ROOM:
            price = run.report.goodput / ROOM
            away = [distance([law[i] for law in found.laws], table, price) for i in places]
            yield Distance(run.profile, run.batch, price, float(np.mean(away)), float(max(away)))


def distance(laws: Sequence[Floats], table: AcceptanceTable, price: float) -> float:
    """TV of p and the law of a token whose draft is verified iff its estimate is above `price`."""
    p, q, c = laws
    s = min(1.0, float(similarity(q, c)))
    judged = [
        q[x] > 0 and float(table(s, companion_acceptance(q, c, x))) > price for x in range(len(q))
    ]
    return float(np.abs(truncated_law(p, q, np.array(judged, dtype=float)) - p).sum() / 2)


def by_scheduler(runs: Sequence[Run], profile: str) -> dict[str, list[Run]]:
    """The runs of a profile, batch by batch for each scheduler."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        if run.profile == profile:
            found.setdefault(run.scheduler, []).append(run)
    return found


def fixed_lookaheads(labels: Iterable[str]) -> list[str]:
    """Of names of schedulers, those of fixed lookaheads, 0 too."""
    return [label for label in labels if label == NONE or label.startswith("SD")]
