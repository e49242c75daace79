"""Rows of the scoreboard for real servers, by `specref check URL`.

    python -m proofs_tests.benchmarks.servers [--path NAME] [--minutes N] [--record FILE]

llama.cpp's server (by the package xllamacpp) and mlx-lm's, each with a draft model, on a pair of
checkpoints with a known law. A path takes some N minutes; its row is written at once.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from shlex import join
from typing import Any

from proofs_tests.benchmarks.engines import RECORD, Board, write_page
from proofs_tests.helpers import servers
from specref.contrib.engines.board_report import KNOWN, NOT_RUN, PASSED, Row

PROMPTS = ("ab", "abcabc", "dcba")
NEUTRAL = ("--field", "min_p=0", "--top-k", "0", "--top-p", "1")
NUCLEUS = ("--field", "min_p=0", "--top-k", "0", "--top-p", "0.75", "--temperature", "0.8")
LOGPROBS = "wrong log-probabilities"
KNOWN_LOSSY = {"mlx-lm"}
"""Whose page of findings says why."""


@dataclass(frozen=True)
class Server:
    """A server with a draft model, and how it is asked."""

    engine: str
    package: str
    model: str
    options: tuple[str, ...]

    def start(self, folder: Path, stack: ExitStack) -> list[str]:
        """Start two, and say where the one with a draft model is and where the one without.

        A switch on one server would hide what its cache of prompts does to both sides.
        """
        if self.engine == "llama-cpp":
            on = stack.enter_context(servers.llama(folder, "draft-simple", True))
            return [on, "--plain", stack.enter_context(servers.llama(folder, None))]
        on = stack.enter_context(servers.mlx(folder, True))
        return [on, "--plain", stack.enter_context(servers.mlx(folder, False))]


ALL = {
    f"{engine}-server{name}": Server(engine, package, model, options)
    for engine, package, model in (
        ("llama-cpp", "xllamacpp", "m"),
        ("mlx-lm", "mlx-lm", "default_model"),
    )
    for name, options in (("", NEUTRAL), ("-top-p", NUCLEUS))
}


def judged(path: str, minutes: float, run: str) -> Row:
    """The row of one path."""
    server, started = ALL[path], time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        place = Path(scratch)
        (place / "prompts").write_text("\n".join(PROMPTS))
        where = server.start(servers.pair(place / "pair"), stack)
        options = ["--model", server.model, "--logprobs", "raw", *server.options]
        options += ["--minutes", f"{minutes:g}"]
        command = [sys.executable, "-m", "specref", "check", *where, *options]
        command += ["--prompts", "prompts", "--folder", "texts", "--json", "report.json"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        file = place / "report.json"
        if not file.exists():
            raise RuntimeError(done.stderr or done.stdout)
        found = json.loads(file.read_text())
        endings = [_endings(place / "texts" / f"{side}.jsonl") for side in ("on", "off")]
    told = ["http://ON/v1", "--plain", "http://OFF/v1"]
    return Row(
        server.engine, path, "server", _verdict(found, server.engine), _evidence(found, endings),
        power=_power(found), violated=False,
        version=f"{server.package} {version(server.package)}",
        seconds=round(time.monotonic() - started, 1),
        command=join(["specref", "check", *told, *options]),
        package=f"{server.package} {version(server.package)}",
        date=datetime.now(UTC).date().isoformat(), run=run,
    )  # fmt: skip


def _verdict(found: Mapping[str, Any], engine: str) -> str:
    """Of texts first, then of what else is violated, then of what is not known."""
    if found["verdict"] == "LOSSY":
        return KNOWN if engine in KNOWN_LOSSY else "LOSSY"
    if found["greedy"]["apart"]:
        return "greedy texts differ"
    wrong = [one for one in found["reported"] if one["faults"]]
    if wrong or found["logprobs"]["apart"] or found["logprobs"]["above"]:
        return LOGPROBS
    if found["speculation"]["exercised"] != "yes":
        return "not_exercised" if found["speculation"]["exercised"] == "no" else NOT_RUN
    return PASSED if found["verdict"].startswith("LOSSLESS") else "inconclusive"


def _power(found: Mapping[str, Any]) -> str:
    """What the test of first tokens would have found, and what is left of all that is bounded."""
    first = next(one for one in found["tests"] if one["name"] == "position 1")
    most = max(one["most"] for one in found["bounds"])
    return f"TV ≥ {first['detectable']:.2g}; TV ≤ {most:.2g} left in what is listed"


def _evidence(found: Mapping[str, Any], endings: list[str]) -> str:
    drafted = [("no count" if x is None else f"{x:,}") for x in found["speculation"]["drafted"]]
    greedy, seeds = found["greedy"], found["seeds"]
    parts = [
        f"texts {found['verdict']}: {found['pairs']:,} pairs",
        f"drafted tokens {drafted[0]}, without speculation {drafted[1]}",
        f"finish reasons {endings[0]}, without {endings[1]}",
        f"at temperature 0 {greedy['equal']} of {greedy['texts']} equal",
        f"seeds obeyed {seeds[0]['equal']} of {seeds[0]['texts']}, {seeds[1]['equal']} of "
        f"{seeds[1]['texts']}",
    ]
    if found["logprobs"] is not None:
        apart = found["logprobs"]["apart"]
        parts.append(f"log-probabilities apart at {apart:,} tokens")
    parts += [
        f"{Path(one['name']).stem}: {kind} in {count:,} of {one['texts']:,}"
        for one in found["reported"]
        for kind, count in one["faults"].items()
    ]
    return "; ".join(parts)


def _endings(file: Path) -> str:
    kinds = Counter(json.loads(line)["finish_reason"] for line in file.read_text().splitlines())
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))


def main() -> None:
    """Judge what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--path", action="append", choices=tuple(ALL), help="repeat for more")
    parser.add_argument("--minutes", type=float, default=8.0, help="for a path")
    parser.add_argument("--record", type=Path, default=RECORD, help="the JSON; the page is beside")
    asked = parser.parse_args()
    run = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, `servers --minutes {asked.minutes:g}`"
    for path in asked.path or ALL:
        row = judged(path, asked.minutes, run)
        print(f"{row.path}: {row.verdict}, {row.seconds:.0f} s; {row.evidence}", flush=True)
        Board(asked.record).add(row)
        write_page(asked.record)


if __name__ == "__main__":
    main()
