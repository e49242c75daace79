"""Exact enumeration: time, paths and paths per second, by algorithm and size.

Run: make benchmark, or python -m proofs_tests.benchmarks.exact
"""

import time
from collections.abc import Callable
from fractions import Fraction

from specref import Model, Vocabulary, is_lossless
from specref.models import hashed_model
from specref.proofs import is_lossless_loop
from specref.rules import RULES
from specref.theory import psi, psi_iid

REPEATS = 5


def dense(size: int, key: str) -> Model:
    """A hashed model without zeros, so that every path is there."""
    vocabulary = Vocabulary("abcdefgh"[:size])
    sparse = hashed_model(vocabulary, key)
    floor = Fraction(1, 2 * size)
    return Model(vocabulary, lambda context: sparse.next_token(context) / 2 + floor)


def best_of(run: Callable[[], object]) -> tuple[float, object]:
    times: list[float] = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - started)
    return min(times), result


def main() -> None:
    print(f"exact proofs, best of {REPEATS}, models evaluated anew")
    print(f"{'algorithm':<15}{'V':>3}{'lookahead':>10}{'paths':>8}{'ms':>9}{'paths/s':>10}")
    for size, lookahead in ((3, 2), (4, 2), (4, 3)):
        for name, step in ((rule.name, rule.step) for rule in RULES.values() if rule.machine):
            seconds, proof = best_of(
                lambda step=step, size=size, lookahead=lookahead: is_lossless(
                    step, dense(size, "p"), dense(size, "q"), (), lookahead
                )
            )
            row = f"{name:<15}{size:>3}{lookahead:>10}{proof.paths:>8}{seconds * 1e3:>9.1f}"
            print(f"{row}{proof.paths / seconds:>10,.0f}")
    compare_loop()
    compare_psi()


def compare_loop() -> None:
    """Paths with and without merging equal contexts."""
    step, length = RULES["standard"].step, 4
    target, drafter = dense(3, "p"), dense(3, "q")
    seconds, proof = best_of(lambda: is_lossless_loop(step, target, drafter, (), 1, length))
    print(f"decode loop of {length} tokens: {proof.paths} paths, {seconds * 1e3:.1f} ms")


def compare_psi() -> None:
    """The dynamic programme against the prefix tree, for an i.i.d. drafter."""
    vocabulary = Vocabulary(["a", "b", "ab", "aab", "abab"])
    drafter = Model(Vocabulary(["a", "b", "ba"]), lambda context: ["1/2", "1/4", "1/4"])
    row = drafter.next_token(())
    for lookahead in (2, 4, 6):
        by_programme, fast = best_of(
            lambda n=lookahead: psi_iid(vocabulary, drafter.vocabulary, row, n)
        )
        started = time.perf_counter()
        slow = psi(vocabulary, drafter, (), lookahead)
        by_tree = time.perf_counter() - started
        assert (fast == slow).all()
        ratio = by_tree / by_programme
        print(f"psi, lookahead {lookahead}: programme {ratio:.1f} x faster than tree")


if __name__ == "__main__":
    main()
