"""What rounding does: exact laws per format and vocabulary, and how tightly coins couple.

Run: python -m proofs_tests.benchmarks.floats [--sizes 8 1024 32000] [--cells N]
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from specref.statistics.floats.coupled import coupled_replay
from specref.statistics.floats.floats import (
    EQUIVALENCE_MARGIN,
    inverse_cdf_mismatch,
    law_in,
    race_mismatch,
    round_to,
    rounding_bound,
    softmax_in,
    verify_in,
)

SIZES = (8, 1024, 32_000)
INSTANCES = 20
MOST_TRIALS = 1_000_000
Row = np.ndarray


def instances(size: int, dtype: str, count: int, scale: float = 1.0) -> Iterator[tuple[Row, Row]]:
    """Logits of p and q that a model of this format can emit: q's are p's and N(0, 1) noise."""
    for seed in range(count):
        rng = np.random.default_rng([size, seed])
        p = scale * rng.normal(size=size)
        yield round_to(p, dtype), round_to(p + rng.normal(size=size), dtype)


def distance(p: Row, w: Row) -> float:
    """Total variation of the normalised rows."""
    return float(np.abs(p / p.sum() - w / w.sum()).sum() / 2)


def cumulative_law(p: Row, dtype: str) -> Row:
    """The law of an inverse-CDF draw whose running sums are rounded at every token."""
    total, ends = 0.0, [0.0]
    for mass in round_to(p, dtype).tolist():
        total = float(round_to(total + mass, dtype))
        ends.append(total)
    return np.diff(ends) / ends[-1]


def print_laws(sizes: list[int], scale: float) -> None:
    print(f"\nexact law of one token, median (largest) of {INSTANCES}, logits N(0, {scale:g}^2)")
    print(f"{'format':<24}{'V':>8}{'TV from p':>20}{'same format':>13}{'plain':>10}{'bound':>10}")
    cases = [(dtype, None) for dtype in EQUIVALENCE_MARGIN] + [("float32", "bfloat16")]
    for dtype, drafted in cases:
        for size in sizes:
            rows: list[tuple[float, float, float]] = []
            for a, b in instances(size, drafted or dtype, INSTANCES, scale):
                p, law, low = (
                    softmax_in("float64", a),
                    law_in(dtype, a, b, drafted_in=drafted),
                    softmax_in(dtype, a),
                )
                rows.append((distance(law, p), distance(law, low), distance(low, p)))
            tv, same, plain = zip(*rows, strict=True)
            name = f"{dtype}, drafts {drafted}" if drafted else dtype
            shown = f"{statistics.median(tv):.1e} ({max(tv):.1e})"
            rest = f"{statistics.median(same):>13.1e}{statistics.median(plain):>10.1e}"
            bound = "" if drafted else f"{rounding_bound(dtype, size):>10.1e}"
            print(f"{name:<24}{size:>8}{shown:>20}{rest}{bound}")


def print_couplings(sizes: list[int]) -> None:
    print("\none draw from p in float64 and in the format, exact chance that they differ (median)")
    print(f"{'format':<10}{'V':>8}{'TV':>10}{'race':>10}{'inverse CDF':>13}")
    for dtype in EQUIVALENCE_MARGIN:
        for size in sizes:
            pairs = [
                (softmax_in("float64", a), softmax_in(dtype, a))
                for a, _ in instances(size, dtype, INSTANCES)
            ]
            tv, race, inverse = (
                statistics.median(f(p, low) for p, low in pairs)
                for f in (distance, race_mismatch, inverse_cdf_mismatch)
            )
            print(f"{dtype:<10}{size:>8}{tv:>10.1e}{race:>10.1e}{inverse:>13.1e}")


def print_replays(sizes: list[int], cells: int) -> None:
    print("\ncoupled replay, lookahead 2, float64 reference, alpha 1e-9")
    print(f"{'format':<10}{'V':>8}{'trials':>10}{'differ':>8}{'rate':>10}{'TV <=':>10}{'s':>7}")
    for dtype in EQUIVALENCE_MARGIN:
        for size in sizes:
            rows = list(instances(size, dtype, 9))
            p = softmax_in("float64", [a for a, _ in rows]).reshape(3, 3, size)
            q = softmax_in("float64", [b for _, b in rows]).reshape(3, 3, size)[:, :2]
            started = time.perf_counter()
            found = coupled_replay(
                partial(verify_in, dtype),
                p,
                q,
                trials=min(cells // size, MOST_TRIALS),
                rng=np.random.default_rng(1),
            )
            rate, seconds = found.mismatches / found.trials, time.perf_counter() - started
            cells_shown = f"{found.trials:>10,}{found.mismatches:>8}{rate:>10.1e}"
            print(f"{dtype:<10}{size:>8}{cells_shown}{found.upper_bound:>10.1e}{seconds:>7.1f}")


def print_running_sums() -> None:
    print("\ninverse-CDF draw with running sums in the format: TV from p, one instance")
    for dtype, size in (
        ("float32", 1024),
        ("float32", 32_000),
        ("float16", 1024),
        ("bfloat16", 1024),
    ):
        ((a, _),) = instances(size, dtype, 1)
        p = softmax_in("float64", a)
        print(f"{dtype:<10}{size:>8}{distance(cumulative_law(p, dtype), p):>10.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--cells", type=int, default=20_000_000, help="trials times V, at most")
    options = parser.parse_args()
    for scale in (1.0, 3.0):
        print_laws(options.sizes, scale)
    print_couplings(options.sizes)
    print_replays(options.sizes, options.cells)
    print_running_sums()


if __name__ == "__main__":
    main()
