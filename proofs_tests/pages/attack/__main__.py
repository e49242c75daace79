"""Puts every sampler of an attack to the default checks, and writes what came of it.

A lossy sampler is judged until a check fails; nothing is diagnosed. Its distance from the target
is measured where the attack has a situation for it.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from proofs_tests.helpers.attack.situations import distance
from proofs_tests.pages.attack import page, second, third
from proofs_tests.pages.attack.attacks import ATTACKS
from specref import check
from specref.conformance.status import CheckResult, Status

PAGES = {"first": page, "second": second, "third": third}
PATIENCE = 600.0  # seconds for a call: 60 of the wall clock are too few on a machine that is busy


@dataclass(frozen=True)
class Row:
    """What became of one sampler.

    Attributes
    ----------
    expected, verdict : str
        "lossless" or "lossy"; and "passed", "failed" or another status of a check.
    failed : tuple of (str, str, str)
        Id, finding and message of each failed check: of a lossy sampler, the first alone.
    undecided : tuple of (str, str, str)
        Id, status and message of what was inconclusive or not_run.
    tv, error : float or None
        The measured distance in its situation, and the standard error of that.
    contract : str
    options : mapping
        Claims and the rule that it was judged with.
    """

    sampler: str
    expected: str
    what: str
    verdict: str
    failed: tuple[tuple[str, str, str], ...]
    undecided: tuple[tuple[str, str, str], ...]
    seconds: float
    tv: float | None = None
    error: float | None = None
    contract: str = "verify"
    options: Mapping[str, Any] = field(default_factory=dict)


class FoundError(Exception):
    """A check failed: the others need not run."""


def judged(attack: str, name: str, seed: int) -> Row:
    """The verdict of the default checks on one sampler."""
    entry = ATTACKS[attack].samplers[name]
    results: list[CheckResult] = []

    def collect(result: CheckResult) -> None:
        results.append(result)
        if entry.expected == "lossy" and result.status is Status.FAILED:
            raise FoundError

    started = time.process_time()
    with suppress(FoundError):
        check(
            entry.make(),
            contract=entry.contract,
            seed=seed,
            timeout=PATIENCE,
            on_result=collect,
            **entry.options,
        )
    seconds = time.process_time() - started
    failed = [r for r in results if r.status is Status.FAILED]
    undecided = [r for r in results if r.status in (Status.INCONCLUSIVE, Status.NOT_RUN)]
    return Row(
        name,
        entry.expected,
        entry.what,
        "failed" if failed else "undecided" if undecided else "passed",
        tuple((r.id, str(r.finding), r.message) for r in failed),
        tuple((r.id, str(r.status), r.message) for r in undecided),
        round(seconds, 1),
        contract=entry.contract,
        options=entry.options,
    )


def measured(attack: str, row: Row, seed: int) -> Row:
    """The row of a lossy sampler with its distance."""
    known = ATTACKS[attack]
    situation = known.situations[row.sampler]()
    seen = distance(known.samplers[row.sampler].make, situation, seed)
    return replace(row, tv=round(seen.tv, 4), error=round(seen.error, 4))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m proofs_tests.pages.attack", description=__doc__
    )
    parser.add_argument("--second", action="store_true", help="the attack on all contracts")
    parser.add_argument("--third", action="store_true", help="that on five contracts")
    parser.add_argument("--only", action="append", default=[], help="a sampler; repeat for more")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--json",
        type=Path,
        help="written after each sampler; samplers that it has are not run again",
    )
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--page-only", action="store_true", help="of the record as it is")
    options = parser.parse_args()
    attack = "third" if options.third else "second" if options.second else "first"
    names = list(ATTACKS[attack].samplers)
    for name in options.only:
        if name not in names:
            parser.error(f"--only = {name!r}: expected a sampler of the {attack} attack")
    wanted = [name for name in names if not options.only or name in options.only]
    if options.page_only:
        if options.json is None:
            parser.error("--page-only: expected with --json")
        found = json.loads(options.json.read_text())
    else:
        rows = earlier(options.json, options.seed, wanted)
        run(attack, rows, wanted, options)
        found = record(attack, rows, wanted, options.seed)
        if options.json:
            write(options.json, json.dumps(found, indent=1) + "\n")
    print(page.table(found["rows"]))
    if options.markdown:
        write(options.markdown, PAGES[attack].page(found))


def run(attack: str, rows: dict[str, Row], wanted: list[str], options: argparse.Namespace) -> None:
    """Judges what has no row, lossy ones first, and measures the distances that are lacking."""
    print(f"{len(wanted) - len(rows)} samplers, half a CPU minute each")
    seed, known = options.seed, ATTACKS[attack].samplers
    left = sorted((n for n in wanted if n not in rows), key=lambda n: known[n].expected != "lossy")
    with ProcessPoolExecutor(options.workers) as workers:
        waiting = {workers.submit(judged, attack, name, seed) for name in left}
        waiting |= {
            workers.submit(measured, attack, row, seed)
            for row in rows.values()
            if lacks(attack, row)
        }
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for row in (done.result() for done in finished):
                rows[row.sampler] = row
                if lacks(attack, row):
                    waiting.add(workers.submit(measured, attack, row, seed))
                said = row.verdict if row.tv is None else f"{row.verdict}, TV {row.tv}"
                print(f"{len(rows)}/{len(wanted)} {row.sampler}: {said}", flush=True)
            if options.json:
                found = record(attack, rows, wanted, seed)
                write(options.json, json.dumps(found, indent=1) + "\n")


def lacks(attack: str, row: Row) -> bool:
    """Whether its distance is still to be measured."""
    return row.sampler in ATTACKS[attack].situations and row.tv is None


def earlier(path: Path | None, seed: int, wanted: list[str]) -> dict[str, Row]:
    """Rows of an earlier run of this seed, of the same kit, that was interrupted."""
    if path is None or not path.exists():
        return {}
    known = json.loads(path.read_text())
    if (known["seed"], known["revision"]) != (seed, revision()):
        raise SystemExit(f"--json = {path}: expected a record of seed {seed} and {revision()}")
    return {row["sampler"]: Row(**row) for row in known["rows"] if row["sampler"] in wanted}


def record(attack: str, rows: dict[str, Row], wanted: list[str], seed: int) -> dict[str, Any]:
    return {
        "seed": seed,
        "revision": revision(),
        "complete": len(rows) == len(wanted) and not any(lacks(attack, r) for r in rows.values()),
        "not_judged": [name for name in wanted if name not in rows],
        "rows": [asdict(rows[name]) for name in wanted if name in rows],
    }


def write(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def revision() -> str:
    """The commit that was judged."""
    command = ["git", "log", "-1", "--format=%h", "--", "specref"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
