"""How cost grows: CPU seconds and peak memory against V, lookahead, trials and workers.

Run: python -m proofs_tests.benchmarks.scaling [--quick]

Each figure is of a process of its own, so that its peak memory is its own. Figures of one table
are taken one after the other in one run. The last lines are arithmetic on what was measured.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from specref.conformance.status import BLOCKS, Stage

SPECREF = (sys.executable, "-m", "specref")
SAMPLER = "examples.correct:verify"
OWN = ("--only", "strata/own-shape", "--trials", "2000")
CAMPAIGN = """
import sys, time, numpy as np
from specref import Vocabulary
from specref.statistics import Campaign, run
from specref.models import hashed_model, as_float
from specref.chance import Sampled
from specref.algorithms import standard
from specref.tables import tabulate, draw_blocks
letters = Vocabulary("abcdefgh")
target, drafter = (as_float(hashed_model(letters, key)) for key in "pq")
arguments, budget = (target, drafter, (), 2), int(sys.argv[1])
tables, campaign = tabulate("standard", *arguments), Campaign(eps=None)
case = campaign.case(*arguments, mutants=MUTANTS)
draw = lambda name, trials, rng: draw_blocks(tables, trials, rng).blocks
started = time.process_time()
run(campaign, draw, budget=budget, seed=1)
both = time.process_time() - started
started = time.process_time()
draw("", budget, np.random.default_rng(1))
drawing = time.process_time() - started
chance, some = Sampled(np.random.default_rng(1)), 2_000
started = time.process_time()
for _ in range(some):
    standard.step(*arguments, chance)
print((both - drawing) / budget, drawing / budget, (time.process_time() - started) / some)
"""
PROOF = """
import sys
from fractions import Fraction
from specref import Model, Vocabulary, is_lossless
from specref.algorithms import standard
from specref.models import hashed_model
from specref.zoo import MUTANTS
letters = Vocabulary("abc")
models = [hashed_model(letters, key) for key in "pq"]
dense = [Model(letters, lambda c, m=m: m.next_token(c) / 2 + Fraction(1, 6)) for m in models]
print(is_lossless(standard.step, *dense, lookahead=int(sys.argv[1])).paths)
"""


class Cost(NamedTuple):
    """What a command took, its children included."""

    cpu: float
    wall: float
    megabytes: float
    output: str


def cost(*command: str) -> Cost:
    """Run a command.

    * raises `RuntimeError`: Its exit code is neither 0 nor 2 (inconclusive).
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = code = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if code not in (0, 2):
            raise RuntimeError(f"{' '.join(command)}: exit code {code}\n{errors.read()}")
        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
        cpu = used.ru_utime + used.ru_stime
        return Cost(cpu, wall, used.ru_maxrss / unit, output.read())


def judged(*options: str) -> tuple[Cost, list[dict]]:
    """A run of checks of a sampler that is right, and its results."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        used = cost(*SPECREF, "check", SAMPLER, *options, "--json", str(file))
        return used, json.loads(file.read_text())["results"]


def own_shapes(title: str, name: str, sizes: Sequence[int], *fixed: str) -> None:
    """Checks at shapes of one's own, with equally many tokens."""
    print(f"\n{title}\n{name:>10}{'CPU s':>9}{'ratio':>8}{'MiB':>8}{'tokens':>9}{'shift':>8}")
    first = None
    for size in sizes:
        used, results = judged(*OWN, f"--{name}", str(size), *fixed)
        found = next(r["evidence"] for r in results if r["id"] == "strata/own-shape")
        first = first or used.cpu
        told = f"{size:>10,}{used.cpu:>9.1f}{used.cpu / first:>8.1f}{used.megabytes:>8.0f}"
        print(f"{told}{found['tokens']:>9,}{found['detectable_shift']:>8.2f}", flush=True)


def proofs(lookaheads: Sequence[int]) -> None:
    """Exact proofs of `standard` over three letters."""
    print(f"\nexact proof, V = 3\n{'lookahead':>10}{'CPU s':>9}{'ratio':>8}{'MiB':>8}{'paths':>9}")
    before = None
    for lookahead in lookaheads:
        used = cost(sys.executable, "-c", PROOF, str(lookahead))
        ratio = used.cpu / (before or used.cpu)
        told = f"{lookahead:>10}{used.cpu:>9.1f}{ratio:>8.1f}{used.megabytes:>8.0f}"
        print(f"{told}{int(used.output):>9,}", flush=True)
        before = used.cpu


def trials(budgets: Sequence[int]) -> tuple[float, ...]:
    """Campaigns over the batched twin; returns the seconds of a block: judged, drawn, by step."""
    title = "campaign, V = 8, lookahead 2"
    print(f"\n{title}\n{'blocks':>10}{'CPU s':>9}{'ratio':>8}{'MiB':>8}{'judging a block':>18}")
    first, each = None, (0.0, 0.0, 0.0)
    for budget in budgets:
        used = cost(sys.executable, "-c", CAMPAIGN, str(budget))
        judging, drawing, step = map(float, used.output.split())
        first, each = first or used.cpu, (judging, drawing, step)
        told = f"{budget:>10,}{used.cpu:>9.1f}{used.cpu / first:>8.1f}{used.megabytes:>8.0f}"
        print(f"{told}{judging * 1e6:>15.2f} us", flush=True)
    return each


def workers(counts: Sequence[int], *options: str) -> list[dict]:
    """The same checks with more workers; returns the results of one."""
    title = f"check {' '.join(options)}".strip() + f", {os.cpu_count()} cores"
    print(f"\n{title}\n{'workers':>10}{'wall s':>9}{'ratio':>8}{'CPU s':>8}")
    alone: tuple[Cost, list[dict]] | None = None
    for count in counts:
        used, results = judged(*options, "--workers", str(count))
        alone = alone or (used, results)
        print(f"{count:>10}{used.wall:>9.1f}{used.wall / alone[0].wall:>8.2f}{used.cpu:>8.1f}")
    print(f"load of this machine meanwhile: {os.getloadavg()[0]:.1f}", flush=True)
    assert alone is not None
    return alone[1]


def longest(results: Sequence[dict]) -> float:
    """The seconds of the longest chain of checks that wait for each other."""
    ends: dict[Stage, float] = {}
    for one in results:
        stage = Stage(one["id"].split("/")[0])
        waits = {*BLOCKS[stage], Stage.JOINT} - {stage}
        before = max((ends.get(earlier, 0.0) for earlier in waits), default=0.0)
        ends[stage] = max(ends.get(stage, 0.0), before + one["seconds"])
    return max(ends.values())


def main(arguments: Sequence[str] = ()) -> None:
    quick, cores = "--quick" in arguments, os.cpu_count() or 1
    sizes = (8, 256) if quick else (8, 128, 2_048, 32_768, 262_144)
    own_shapes("own shape, lookahead 1, batch 4", "vocabulary", sizes, "--lookahead", "1")
    depths = (1, 3) if quick else (1, 2, 4, 8)
    size = 64 if quick else 32_768
    own_shapes(f"own shape, V = {size:,}, batch 4", "lookahead", depths, "--vocabulary", str(size))
    proofs((1, 2) if quick else (1, 3, 5, 6, 7))
    judging, drawing, step = trials((10_000,) if quick else (10_000, 100_000, 1_000_000))
    only = ("--only", "smoke", "--only", "joint/deep") if quick else ()
    results = workers([count for count in (1, 2, 4, 8, 16) if count <= cores], *only)
    total = sum(one["seconds"] for one in results)
    chain = longest(results)
    print("\non paper")
    print(f"  check: {total:.1f} s of work, the longest chain {chain:.1f} s: no number of workers")
    print(f"    makes it more than {total / chain:.0f} times as fast")
    print(f"  campaign: the main process judges {1 / judging:,.0f} blocks a second, so")
    for name, seconds in (("batched twin", drawing), ("one step after another", step)):
        print(f"    {max(1, seconds / judging):,.0f} workers with the {name} keep it busy")
    print("    a sampler of 1 ms a block: 1,000 workers draw 1,000,000 blocks a second,")
    print(f"    of which it judges {min(1.0, 1 / judging / 1e6):.0%}")


if __name__ == "__main__":
    main(sys.argv[1:])
