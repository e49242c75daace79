"""Iterations per second: the reference with `Sampled`, the NumPy twins, and Transformers.

Run with ``python -m proofs_tests.benchmarks.bench_simulate`` or as a script. Times are processor
times of one core.
"""

import time
from collections.abc import Callable

import numpy as np

from specref import Model, Sampled, Vocabulary
from specref.rules import RULES
from specref.simulate import (
    CHUNK,
    MAX_NODES,
    Tables,
    draw_markov,
    markov_tables,
    simulate_markov,
    tabulate,
    tally,
)
from specref.simulate.markov import compiled_rows
from specref.vocabulary import Tokens

LOOKAHEAD = 3
CHUNKS = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18]
REFERENCE_TRIALS, TWIN_TRIALS, REPEATS = 300, 1 << 19, 3
MARKOV_LOOKAHEAD, TRANSFORMERS_CALLS = 4, 500


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


def reference_rate(
    algorithm: str, target: Model, drafter: Model, lookahead: int, trials: int = REFERENCE_TRIALS
) -> float:
    step, chance = RULES[algorithm].step, Sampled(np.random.default_rng(1))

    def run() -> None:
        for _ in range(trials):
            step(target, drafter, (), lookahead, chance)

    run()
    return trials / fastest(run)


def twin_rate(tables: Tables, chunk: int) -> float:
    rng = np.random.default_rng(1)
    return TWIN_TRIALS / fastest(lambda: tally(tables, TWIN_TRIALS, rng, chunk))


def print_algorithms(size: int) -> None:
    target, drafter = softmax_model(size, 1), softmax_model(size, 2)
    print(f"\niterations per second, V = {size}, lookahead = {LOOKAHEAD}, one core")
    print(f"{'algorithm':<16}{'reference':>12}{'tables [s]':>12}", end="")
    print("".join(f"{f'chunk {chunk}':>14}" for chunk in CHUNKS))
    for algorithm in (name for name, rule in RULES.items() if rule.machine):
        reference = reference_rate(algorithm, target, drafter, LOOKAHEAD)
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


def softmax_rows(size: int, key: int) -> np.ndarray:
    weights = np.exp(np.random.default_rng([key, size]).normal(size=(size + 1, size)))
    return weights / weights.sum(axis=1, keepdims=True)


def row_model(rows: np.ndarray) -> Model:
    """The first-order model with these rows, the last of them for the empty context."""
    vocabulary = Vocabulary([chr(0x4E00 + token) for token in range(rows.shape[1])])
    return Model(vocabulary, lambda context: rows[context[-1] if context else -1])


def tree_rate(p: np.ndarray, q: np.ndarray) -> float | None:
    """None where the tree of contexts is too large."""
    if p.shape[1] ** (MARKOV_LOOKAHEAD + 1) > MAX_NODES:
        return None
    tables = tabulate("standard", row_model(p), row_model(q), (), MARKOV_LOOKAHEAD)
    return twin_rate(tables, CHUNK)


def markov_rate(p: np.ndarray, q: np.ndarray) -> float:
    tables, rng = markov_tables(p, q), np.random.default_rng(1)
    return TWIN_TRIALS / fastest(
        lambda: draw_markov(tables, MARKOV_LOOKAHEAD, trials=TWIN_TRIALS, rng=rng)
    )


def transformers_rate(p: np.ndarray, q: np.ndarray) -> float | None:
    """Calls of the verifier alone, its arguments made beforehand; None if not installed."""
    try:
        import torch
        from transformers.generation.utils import _speculative_sampling
    except ImportError:
        return None
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    drafts = simulate_markov(q, q, MARKOV_LOOKAHEAD, trials=TRANSFORMERS_CALLS, rng=rng).blocks
    log_p, log_q = (torch.from_numpy(rows).log().float() for rows in (p, q))
    calls = []
    for tokens in drafts[:, :-1].tolist():
        contexts = [len(p) - 1, *tokens]
        calls.append((torch.tensor([tokens]), log_q[contexts[:-1]][None], log_p[contexts][None]))

    def run() -> None:
        for candidates, drafter_logits, target_logits in calls:
            _speculative_sampling(candidates, drafter_logits, len(candidates[0]), target_logits)

    run()
    return len(calls) / fastest(run)


def print_markov() -> None:
    print(f"\nstandard, first-order models, lookahead = {MARKOV_LOOKAHEAD}, one core, per second")
    print("Transformers is given its drafts, the others draw them. not_run: it is not installed,")
    print(f"or the tree of contexts has more than {MAX_NODES:,} nodes.")
    names = ("V", "reference", "tree twin", "markov", "transformers")
    ratios = ("markov/reference", "markov/transformers")
    print("".join(f"{name:>14}" for name in names) + "".join(f"{name:>22}" for name in ratios))
    for size, trials in ((8, REFERENCE_TRIALS), (1024, 30)):
        p, q = softmax_rows(size, 1), softmax_rows(size, 2)
        models = row_model(p), row_model(q)
        reference = reference_rate("standard", *models, MARKOV_LOOKAHEAD, trials)
        markov, transformers = markov_rate(p, q), transformers_rate(p, q)
        rates = (reference, tree_rate(p, q), markov, transformers)
        print(f"{size:>14}" + "".join(f"{shown(rate):>14}" for rate in rates), end="")
        print("".join(f"{ratio(markov, rate):>22}" for rate in (reference, transformers)))


def shown(rate: float | None) -> str:
    return "not_run" if rate is None else f"{rate:,.0f}"


def ratio(rate: float, other: float | None) -> str:
    return "not_run" if other is None else f"{rate / other:,.0f}"


def print_lookups(size: int, rows: int) -> None:
    """What one draw costs, for the ways to look a uniform up in the rows of a table."""
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(size), rows)
    guided = compiled_rows(weights)
    cumulative = weights.cumsum(axis=1)
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
        "guide table": lambda: guided.draw(states, uniforms),
        "(the uniforms)": lambda: rng.random(CHUNK),
    }
    print(f"\nnanoseconds per draw, V = {size}, {rows} rows, chunk {CHUNK}")
    for name, look_up in ways.items():
        many = fastest(lambda look_up=look_up: [look_up() for _ in range(20)])
        print(f"{name:<16}{many / (20 * CHUNK) * 1e9:>8.1f}")


def main() -> None:
    print_markov()
    for size in (4, 8):
        print_algorithms(size)
    print_lookaheads(8)
    for size, rows in ((2, 4096), (8, 4096), (64, 64), (1024, 1024)):
        print_lookups(size, rows)


if __name__ == "__main__":
    main()
