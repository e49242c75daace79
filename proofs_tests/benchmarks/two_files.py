"""What `specref compare` says of two files, with the time and the memory that it takes.

    python -m proofs_tests.benchmarks.two_files [--large | --power]

Texts have 8 of 50 tokens. --large adds two files of a million texts in all, with
log-probabilities. Memory is that of all processes together, looked up in /proc every 50 ms.
--power counts instead how many of 40 pairs are found whose first tokens all differ a little.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2

from specref.arrays import Floats, Ints
from specref.contrib.compare.judging import compare
from specref.contrib.compare.records import Texts
from specref.statistics.campaign.levels import ALPHA
from specref.statistics.campaign.verdict import Verdict

TOKENS, LENGTH, PROMPTS = 50, 8, 100
UNIFORM = np.full(TOKENS, 1 / TOKENS)
LAWS = np.random.default_rng(7).dirichlet(np.ones(TOKENS), PROMPTS)
"""Of the tokens of each prompt."""
EVERYWHERE = 0.0156
"""The share of a token moved at each position for a total variation of 0.1 of whole texts."""
Draw = Callable[[np.random.Generator, bool], tuple[Ints, Ints]]


@dataclass(frozen=True)
class Case:
    """Two files: what they differ by, and how the texts and prompts of one are drawn."""

    name: str
    draw: Draw
    logprobs: bool = False


def _moved(law: Floats, token: int, share: float) -> Floats:
    return np.asarray((1 - share) * law + share * (np.arange(TOKENS) == token))


def _of_one_prompt(texts: int, first: Floats, later: Floats) -> Draw:
    """Texts of a system whose first and later tokens have these distributions, and of uniform."""

    def draw(rng: np.random.Generator, spec: bool) -> tuple[Ints, Ints]:
        laws = [first if spec else UNIFORM] + [later if spec else UNIFORM] * (LENGTH - 1)
        rows = np.stack([rng.choice(TOKENS, texts, p=law) for law in laws], axis=1)
        return rows, np.zeros(texts, dtype=np.int64)

    return draw


def _of_prompts(each: int, token: Callable[[Floats, int], int]) -> Draw:
    """Texts of prompts with distributions of their own; a token of each is more frequent."""

    def draw(rng: np.random.Generator, spec: bool) -> tuple[Ints, Ints]:
        moved = [_moved(p, token(p, i), 0.02 if spec else 0) for i, p in enumerate(LAWS)]
        rows = np.concatenate([rng.choice(TOKENS, (each, LENGTH), p=law) for law in moved])
        return rows, np.repeat(np.arange(PROMPTS), each)

    return draw


MORE = _moved(UNIFORM, 3, EVERYWHERE)
SPREAD = UNIFORM * (1 + 0.2 * (-1.0) ** np.arange(TOKENS))
SMALL = (
    Case(
        "TV 0.1: a token more frequent everywhere",
        _of_one_prompt(5_000, MORE, MORE),
    ),
    Case(
        "TV 0.1: one first token",
        _of_one_prompt(5_000, _moved(UNIFORM, 3, 0.1 / 0.98), UNIFORM),
    ),
    Case("TV 0.1: all first tokens a little", _of_one_prompt(5_000, SPREAD, UNIFORM)),
    Case("100 prompts: their argmax", _of_prompts(200, lambda p, _: int(p.argmax()))),
    Case("100 prompts: their rarest token", _of_prompts(200, lambda p, _: int(p.argmin()))),
    Case("100 prompts: one token", _of_prompts(200, lambda p, _: 3)),
    Case("100 prompts: a token each", _of_prompts(200, lambda p, i: 7 * i % TOKENS)),
    Case("equal", _of_one_prompt(40_000, UNIFORM, UNIFORM)),
)
EVERY = 0.05
"""Seconds between two looks at the memory."""
SEEDS, POWER = 40, (4_500, 5_000, 5_500, 6_000)
LARGE = Case("equal, log-probabilities", _of_prompts(5_000, lambda p, _: int(p.argmax())), True)


def write(case: Case, folder: Path, seed: int) -> int:
    """Write both files; how many texts each has."""
    for name in ("spec", "plain"):
        rng = np.random.default_rng([seed, name == "spec"])
        rows, prompts = case.draw(rng, name == "spec" and not case.logprobs)
        logs = np.log(LAWS).astype(np.float32) if case.logprobs else None  # as servers do
        with (folder / f"{name}.jsonl").open("w") as file:
            for i, row in enumerate(rows):
                record: dict[str, Any] = {"prompt_id": f"p{prompts[i]}", "token_ids": row.tolist()}
                if logs is not None:
                    record["logprobs"] = logs[prompts[i], row].tolist()
                file.write(json.dumps(record) + "\n")
    return len(rows)


def compared(case: Case, seed: int) -> str:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as scratch:
        texts = write(case, Path(scratch), seed)
        command = [sys.executable, "-m", "specref", "compare", "spec.jsonl", "plain.jsonl"]
        started, memory = time.monotonic(), 0
        with (
            (Path(scratch) / "said").open("w+") as out,
            subprocess.Popen([*command, "-q"], cwd=scratch, stdout=out) as process,
        ):
            while process.poll() is None:
                memory = max(memory, memory_of(process.pid))
                time.sleep(EVERY)
            wall = time.monotonic() - started
            out.seek(0)
            said = out.read()
    verdict = said.partition(":")[0].partition(", and")[0]
    return f"{case.name:42}{texts:>10,} {verdict:14}{wall:5.0f} s, {memory / 2**20:.2f} GiB"


def memory_of(process: int) -> int:
    """KiB that a process and all that it has started have in memory."""
    found = 0
    with suppress(OSError):  # it has ended
        status = Path(f"/proc/{process}/status").read_text()
        found = next((int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line), 0)
        for task in Path(f"/proc/{process}/task").iterdir():
            children = (task / "children").read_text().split()
            found += sum(memory_of(int(child)) for child in children)
    return found


def texts_of(draw: Draw, seed: int, spec: bool) -> Texts:
    """What a file would have."""
    rows, prompts = draw(np.random.default_rng([seed, spec]), spec)
    starts = np.arange(0, rows.size + 1, LENGTH)
    name, endings = ("plain", "spec")[spec], [None] * len(rows)
    return Texts(name, rows.ravel(), starts, prompts, ["a"], [*endings], None, 0)


def power(texts: int) -> str:
    """How many of `SEEDS` pairs are found, and by chi-square tests of first tokens at alpha."""
    found = by_square = 0
    for seed in range(SEEDS):
        draw = _of_one_prompt(texts, SPREAD, UNIFORM)
        sides = [texts_of(draw, seed, spec) for spec in (True, False)]
        found += compare(sides[0], sides[1]).verdict == Verdict.LOSSY
        one, other = (
            np.bincount(side.tokens[::LENGTH], minlength=TOKENS).astype(float) for side in sides
        )
        square = float(((one - other) ** 2 / (one + other)).sum())
        by_square += chi2.sf(square, TOKENS - 1) <= ALPHA
    return f"{texts:,} texts a side: {found} of {SEEDS} found, by chi-square {by_square}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also a million texts in two files")
    parser.add_argument("--power", action="store_true", help="how many of 40 pairs are found")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.power:
        for texts in POWER:
            print(power(texts), flush=True)
        return
    for case in [*SMALL, *[LARGE] * asked.large]:
        print(compared(case, asked.seed), flush=True)


if __name__ == "__main__":
    main()
