"""More blocks from a sampler that has failed, used only for its diagnosis, not for verdicts."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence

from specref.conformance.judge import Judge
from specref.conformance.trial import tallied
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Place
from specref.vocabulary import Tokens

Counts = Mapping[Place, Counter[Tokens]]
BLOCKS = 200_000
SECONDS = 20.0
LARGEST = 1 << 14


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
        done += len(place)
        spent = time.perf_counter() - started
        speed, left = done / spent, seconds - spent
    return counts
