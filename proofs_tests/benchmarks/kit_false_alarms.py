"""How often does the conformance kit fail a lossless sampler?

Each run puts every statistical check of the contract ``verify``, and the accepted lengths where
a rule is declared, to a lossless sampler (in turn: standard, and look-alikes whose accepted
lengths differ), with its own seed. A run is an alarm if any check fails. By construction at most
`alpha` of the runs are; the interval is exact (Clopper–Pearson), 99.9 %.

Run: python -m proofs_tests.benchmarks.kit_false_alarms [--runs 200] [--alpha 0.2]
     [--trials 2400] [--processes 1] [--seed 0]
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from proofs_tests.helpers.bugs.verifiers import LOOK_ALIKES, clean
from specref.conformance.checks import CHECKS
from specref.conformance.status import Status
from specref.conformance.suite import check
from specref.contracts.table import VERIFY
from specref.statistics.campaign.acceptance import binomial_interval

SAMPLERS: dict[str, Callable[..., Any]] = {"standard": clean, **LOOK_ALIKES}
ASKED = tuple(
    one.id
    for one in CHECKS
    if VERIFY in one.contracts and (one.statistical or one.id.startswith("acceptance/"))
)
SHARE = 25


def alarms(
    first: int, runs: int, alpha: float, trials: int, seed: int
) -> list[tuple[str, tuple[str, ...]]]:
    """The sampler of each run, and the checks that failed it."""
    found = []
    for index in range(first, first + runs):
        name = tuple(SAMPLERS)[index % len(SAMPLERS)]
        report = check(
            SAMPLERS[name],
            only=ASKED,
            alpha=alpha,
            trials=trials,
            seed=seed + index,
            blocking=False,
            timeout=None,
        )
        failed = tuple(r.id for r in report.results if r.status == Status.FAILED)
        found.append((name, failed))
    return found


def counted(
    runs: int, alpha: float, trials: int, processes: int, seed: int
) -> list[tuple[str, tuple[str, ...]]]:
    """Alarms of all runs; the same for every number of processes."""
    jobs = [
        (first, min(SHARE, runs - first), alpha, trials, seed) for first in range(0, runs, SHARE)
    ]
    if processes == 1:
        parts = [alarms(*job) for job in jobs]
    else:
        with ProcessPoolExecutor(processes) as pool:
            parts = list(pool.map(alarms, *zip(*jobs, strict=True)))
    return [run for part in parts for run in part]


def table(found: list[tuple[str, tuple[str, ...]]], alpha: float) -> Iterator[str]:
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
    options = parser.parse_args()
    started = time.perf_counter()
    found = counted(options.runs, options.alpha, options.trials, options.processes, options.seed)
    print("\n".join(table(found, options.alpha)))
    print(
        f"{len(ASKED)} checks, {options.trials:,} trials each, seed {options.seed}, "
        f"{time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
