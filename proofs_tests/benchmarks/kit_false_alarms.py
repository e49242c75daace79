"""How often does the conformance kit fail a lossless sampler?

Each run puts every statistical check of the contract ``verify``, and the accepted lengths where
a rule is declared, to a lossless sampler, with its own seed. A run is an alarm if any check fails.
By construction at most `alpha` of the runs are; the interval is exact (Clopper–Pearson), 99.9 %.

The samplers are, in turn, standard and four look-alikes whose accepted lengths differ. In one of
ten rounds of these five the last token of a block is the first of exponentials to arrive; in the
others it is drawn by cumulative sums, which is cheaper for large vocabularies. The pairs of laws
of the strata of 32,000 tokens and more are drawn once for 25 runs; drafts and tokens are drawn in
each. The samplers keep nothing between two calls, so the 20,000 calls that `strata/late-calls`
makes before its own are left out: its outcome is the same (a test compares).

Run: python -m proofs_tests.benchmarks.kit_false_alarms [--runs 200] [--alpha 0.2]
     [--trials 2400] [--processes 1] [--seed 0] [--record FILE]

With a record, it goes on after the runs that the file has, and adds to it as they come.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from proofs_tests.helpers.bugs.verifiers import (
    LOOK_ALIKES,
    by_blocks,
    clean,
    look_alikes,
    verifying,
)
from specref.conformance.checks import CHECKS
from specref.conformance.options import CheckOptions
from specref.conformance.status import CheckResult, Status
from specref.conformance.strata.laws import Pool
from specref.conformance.strata.stratum import pools
from specref.conformance.strata.table import STRATA
from specref.conformance.suite import prepare
from specref.contracts.table import VERIFY
from specref.report.machine import as_json, write_json
from specref.statistics.campaign.acceptance import binomial_interval

RACED: dict[str, Callable[..., Any]] = {"standard": clean, **LOOK_ALIKES}
BY_SUMS = {"standard": verifying(pick=by_blocks), **look_alikes(by_blocks)}
NAMES = tuple(RACED)
ONE_IN = 10
ASKED = tuple(
    one.id
    for one in CHECKS
    if VERIFY in one.contracts and (one.statistical or one.id.startswith("acceptance/"))
)
SHARE = 25
LARGE = tuple(one for one in STRATA if any(shape.vocabulary >= 32_000 for shape in one.shapes))
SAMPLED = (
    "standard and four look-alikes in turn; by exponentials in one round of ten, "
    "else by cumulative sums"
)

Run = tuple[str, tuple[str, ...]]
Laws = Mapping[str, Mapping[int, Pool]]


def alarms(first: int, runs: int, alpha: float, trials: int, seed: int) -> list[Run]:
    """The sampler of each run, and the checks that failed it."""
    found = []
    for index in range(first, first + runs):
        name, sampler = sampler_of(index)
        options = CheckOptions(
            only=ASKED, alpha=alpha, trials=trials, seed=seed + index, timeout=None
        )
        results = outcomes(sampler, options, laws_of(index // SHARE, seed))
        found.append((name, tuple(r.id for r in results if r.status == Status.FAILED)))
    return found


def sampler_of(index: int) -> tuple[str, Callable[..., Any]]:
    """The sampler of a run, and its name.

    >>> [sampler_of(index)[0] for index in (0, 5, 6)]
    ['standard', 'standard', 'sample and match']
    """
    round_, turn = divmod(index, len(NAMES))
    return NAMES[turn], (BY_SUMS if round_ % ONE_IN else RACED)[NAMES[turn]]


@lru_cache(maxsize=1)
def laws_of(share: int, seed: int) -> Laws:
    """The pairs of laws over large vocabularies, the same for all runs of a share."""
    rng = np.random.default_rng([seed, share])
    asked = (one for one in LARGE if f"strata/{one.name}" in ASKED)
    return {one.name: pools(one, rng) for one in asked}


def outcomes(
    sampler: Callable[..., Any], options: CheckOptions, laws: Laws | None = None
) -> list[CheckResult]:
    """The results of all checks that are asked for, of a sampler without a memory."""
    judge, asked = prepare(sampler, options)
    judge.laws = laws or {}
    judge.calls_made = max(stratum.after for stratum in STRATA)
    return [one.run(judge) for one in asked]


def starred(job: tuple[int, int, float, int, int]) -> list[Run]:
    """The alarms of one share of the runs."""
    return alarms(*job)


def counted(
    runs: int, alpha: float, trials: int, processes: int, seed: int, record: Path | None = None
) -> list[Run]:
    """Alarms of all runs; the same for every number of processes, and for runs in parts.

    * raises `ValueError`: The record is of other runs.
    """
    settings = {
        "alpha": alpha,
        "trials": trials,
        "seed": seed,
        "checks": list(ASKED),
        "samplers": SAMPLED,
        "large_laws": f"drawn once for {SHARE} runs",
    }
    found = recorded(record, settings) if record and record.exists() else []
    jobs = [
        (first, min(SHARE, runs - first), alpha, trials, seed)
        for first in range(len(found), runs, SHARE)
    ]
    with ExitStack() as stack:
        pool = stack.enter_context(ProcessPoolExecutor(processes)) if processes > 1 else None
        for part in (pool.map if pool else map)(starred, jobs):
            found += part
            if record:
                failed = {str(i): list(ids) for i, (_, ids) in enumerate(found) if ids}
                write_json(
                    str(record), as_json({**settings, "runs": len(found), "failed": failed})
                )
    return found


def recorded(record: Path, settings: dict[str, Any]) -> list[Run]:
    """The runs of a record.

    * raises `ValueError`: They were made with other settings.
    """
    known = json.loads(record.read_text())
    for name, value in settings.items():
        if known.get(name) != value:
            raise ValueError(f"{name} = {value}: {record} has runs with {known.get(name)}")
    failed = {int(index): tuple(ids) for index, ids in known["failed"].items()}
    return [(sampler_of(i)[0], failed.get(i, ())) for i in range(known["runs"])]


def table(found: list[Run], alpha: float) -> Iterator[str]:
    """Rows of a Markdown table: sampler, runs, alarms with their interval; then checks."""
    yield f"| sampler | runs | alarms at alpha = {alpha:g} | rate |"
    yield "|---|---|---|---|"
    totals, bad = Counter(name for name, _ in found), Counter(name for name, ids in found if ids)
    for name in totals:
        yield row(name, bad[name], totals[name])
    yield row("all", sum(bad.values()), len(found))
    for id_, times in Counter(id_ for _, ids in found for id_ in ids).most_common():
        yield f"failed {times} times: {id_}"


def row(name: str, alarms: int, runs: int) -> str:
    low, high = binomial_interval(alarms, runs, 1e-3)
    return f"| {name} | {runs:,} | {alarms:,} | {alarms / runs:.4f} ({low:.4f} to {high:.4f}) |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--alpha", type=float, default=0.2)
    parser.add_argument("--trials", type=int, default=2_400, help="of each check")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    how = options.alpha, options.trials, options.processes, options.seed, options.record
    found = counted(options.runs, *how)
    print("\n".join(table(found, options.alpha)))
    print(
        f"{len(ASKED)} checks, {options.trials:,} trials each, seed {options.seed}, "
        f"{time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
