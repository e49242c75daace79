"""Programs in other languages: rows verified per second through the pipe, and a whole judgement.

Run with ``python -m proofs_tests.benchmarks.process``: every template whose compiler is found, and
the same rule as a Python function, side by side in one run. Times are wall-clock times.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from proofs_tests.helpers.programs import BY_COINS, RUNS, built
from specref import check
from specref.adapters.reference import verify
from specref.contracts.batch import Batch, draw_batch_coins
from specref.contracts.keywords import accepted_keywords
from specref.process import Process

ROWS, CASES, LOOKAHEAD, TOKENS, REPEATS = 4096, 40, 2, 6, 5


def batch() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random laws of `CASES` cases, over and over."""
    rng = np.random.default_rng(1)
    case = np.arange(ROWS) % CASES
    p = rng.dirichlet(np.ones(TOKENS), (CASES, LOOKAHEAD + 1))[case]
    q = rng.dirichlet(np.ones(TOKENS), (CASES, LOOKAHEAD))[case]
    return p, q, rng.integers(TOKENS, size=(CASES, LOOKAHEAD))[case]


def seconds(run: Callable[[], object]) -> float:
    """The least of a few runs: others on this machine count less."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def print_rates(name: str, sampler: Callable[..., object]) -> None:
    """One line of the table."""
    p, q, drafts = batch()
    rng = np.random.default_rng(2)
    if "rng" not in accepted_keywords(sampler):  # coins alone
        lens = np.full(ROWS, LOOKAHEAD)
        coins = draw_batch_coins(Batch(p, q, drafts, lens, lens), rng)
        large = seconds(lambda: sampler(p, q, drafts, coins=coins))
        small = seconds(lambda: sampler(p[:1], q[:1], drafts[:1], coins=coins[:1]))
    else:
        large = seconds(lambda: sampler(p, q, drafts, rng=rng))
        small = seconds(lambda: sampler(p[:1], q[:1], drafts[:1], rng=rng))
    start = time.perf_counter()
    report = check(sampler, timeout=None)
    judged = time.perf_counter() - start
    print(
        f"{name:<12}{ROWS / large:>12,.0f}{small * 1e3:>12.2f}{judged:>12.1f}{report.exit_code:>8}"
    )


def main() -> None:
    """Print the table."""
    print(f"rows of {CASES} cases, {LOOKAHEAD} drafts, {TOKENS} tokens; least of {REPEATS} runs")
    print(f"{'':<12}{'rows/s':>12}{'one row, ms':>12}{'check, s':>12}{'exit':>8}")
    print_rates("(function)", verify)
    with tempfile.TemporaryDirectory() as folder:
        programs = {language: (language, {}) for language in RUNS}
        for name, (language, changes) in {**programs, "cpp, coins": ("cpp", BY_COINS)}.items():
            try:
                command = built(language, Path(folder), changes, level=2)
            except pytest.skip.Exception as reason:
                print(f"{name:<12}{reason}")
                continue
            with Process(command, Path(folder)) as program:
                print_rates(name, program)


if __name__ == "__main__":
    main()
