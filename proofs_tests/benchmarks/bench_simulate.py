"""Iterations per second: the reference with `Sampled`, and the NumPy twin.

Run with ``python -m proofs_tests.benchmarks.bench_simulate`` or as a script.
"""

import time
from collections.abc import Callable

import numpy as np

from specref import Model, Sampled, Vocabulary
from specref.algorithms import ALGORITHMS
from specref.simulate import CHUNK, Tables, tabulate, tally
from specref.vocabulary import Tokens

LOOKAHEAD = 3
CHUNKS = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18]
REFERENCE_TRIALS, TWIN_TRIALS, REPEATS = 300, 1 << 19, 3


def softmax_model(size: int, key: int) -> Model:
    def next_token(context: Tokens) -> np.ndarray:
        rng = np.random.default_rng([key, len(context), *context])
        weights = np.exp(rng.normal(size=size))
        return weights / weights.sum()

    return Model(Vocabulary([chr(97 + token) for token in range(size)]), next_token)


def fastest(run: Callable[[], object]) -> float:
    """The least processor time of a few runs: others on this machine count less."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def reference_rate(algorithm: str, target: Model, drafter: Model) -> float:
    step, chance = ALGORITHMS[algorithm], Sampled(np.random.default_rng(1))

    def run() -> None:
        for _ in range(REFERENCE_TRIALS):
            step(target, drafter, (), LOOKAHEAD, chance)

    run()
    return REFERENCE_TRIALS / fastest(run)


def twin_rate(tables: Tables, chunk: int) -> float:
    rng = np.random.default_rng(1)
    return TWIN_TRIALS / fastest(lambda: tally(tables, TWIN_TRIALS, rng, chunk))


def print_algorithms(size: int) -> None:
    target, drafter = softmax_model(size, 1), softmax_model(size, 2)
    print(f"\niterations per second, V = {size}, lookahead = {LOOKAHEAD}, one core")
    print(f"{'algorithm':<16}{'reference':>12}{'tables [s]':>12}", end="")
    print("".join(f"{f'chunk {chunk}':>14}" for chunk in CHUNKS))
    for algorithm in ALGORITHMS:
        reference = reference_rate(algorithm, target, drafter)
        start = time.process_time()
        tables = tabulate(algorithm, target, drafter, (), LOOKAHEAD)
        built = time.process_time() - start
        print(f"{algorithm:<16}{reference:>12,.0f}{built:>12.2f}", end="")
        print("".join(f"{twin_rate(tables, chunk):>14,.0f}" for chunk in CHUNKS))


def print_lookaheads(size: int) -> None:
    target, drafter = softmax_model(size, 1), softmax_model(size, 2)
    print(f"\nstandard, V = {size}, chunk {CHUNK}, one core")
    for lookahead in (2, 3, 4):
        tables = tabulate("standard", target, drafter, (), lookahead)
        print(f"lookahead {lookahead}: {twin_rate(tables, CHUNK):>12,.0f} iterations per second")


def print_lookups(size: int, rows: int) -> None:
    """What one draw costs, for the ways to look a uniform up in the rows of a table."""
    rng = np.random.default_rng(1)
    cumulative = rng.dirichlet(np.ones(size), rows).cumsum(axis=1)
    cumulative[:, -1] = 1
    flat = (cumulative + np.arange(rows)[:, None]).ravel()
    keep, alias = rng.random(rows * size), rng.integers(0, size, rows * size)
    states, uniforms = rng.integers(0, rows, CHUNK), rng.random(CHUNK)

    def bisection() -> np.ndarray:
        cells, half = states * size, size
        while half := half // 2:
            cells += half * (uniforms >= cumulative.take(cells + (half - 1)))
        return cells

    def alias_table() -> np.ndarray:
        scaled = uniforms * size
        cells = scaled.astype(np.intp)
        scaled -= cells
        cells += states * size
        return np.where(scaled < keep.take(cells), cells, alias.take(cells))

    ways = {
        "bisection": bisection,
        "compare-sum": lambda: (cumulative[states] <= uniforms[:, None]).sum(axis=1),
        "searchsorted": lambda: np.searchsorted(flat, uniforms + states, side="right"),
        "alias table": alias_table,
        "(the uniforms)": lambda: rng.random(CHUNK),
    }
    print(f"\nnanoseconds per draw, V = {size}, {rows} rows, chunk {CHUNK}")
    for name, look_up in ways.items():
        many = fastest(lambda look_up=look_up: [look_up() for _ in range(20)])
        print(f"{name:<16}{many / (20 * CHUNK) * 1e9:>8.1f}")


def main() -> None:
    for size in (4, 8):
        print_algorithms(size)
    print_lookaheads(8)
    for size, rows in ((2, 4096), (8, 4096), (64, 64)):
        print_lookups(size, rows)


if __name__ == "__main__":
    main()
