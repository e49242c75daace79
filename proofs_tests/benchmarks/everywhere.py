"""Proofs for every p and q: seconds against the figures aimed at, and random search beside them.

Run: python -m proofs_tests.benchmarks.everywhere [--long]

Seconds are of the processor, which do not depend on what else the machine does.
"""

import argparse
import random
import time
from fractions import Fraction

from proofs_tests.helpers.bugs.everywhere.planted import PLANTED, Planted
from specref import Vocabulary, is_lossless
from specref.models import Model
from specref.proofs.everywhere import Everywhere, is_lossless_everywhere
from specref.rules import RULES

AIMS = [
    ("standard", 3, 2, 5.0),
    ("standard", 2, 3, 2.0),
    ("block", 2, 2, 2.0),
]
LONG = [("block", 3, 2, 120.0)]
BUDGET = 900.0
BUDGET_OF_A_PAIR = 60.0
PAIRS = [("a b ab", "a b"), ("a b", "a ab"), ("a b", "b a"), ("a b c", "a b")]
"""Of a target's and a drafter's vocabulary, on which union, TLI and SLRS can all be run."""
HARD = [("a b", "a b ab")]


def timed(
    rule: str, *vocabularies: object, lookahead: int, budget: float = BUDGET
) -> tuple[float, Everywhere]:
    started = time.process_time()
    found = is_lossless_everywhere(
        RULES[rule].step, *vocabularies, lookahead=lookahead, budget=budget
    )
    return time.process_time() - started, found


def searched(bug: Planted, seconds: float) -> bool:
    """Whether random rows, half of them with small denominators, show the bug in that time."""
    rng = random.Random(0)
    started = time.process_time()
    vocabulary = Vocabulary(bug.tokens)
    while time.process_time() - started < seconds:
        largest = rng.choice((3, 10**6))

        def row(context: object, most: int = largest, size: int = len(vocabulary)) -> object:
            weights = [rng.randint(0, most) for _ in range(size)]
            weights[rng.randrange(size)] += not any(weights)
            return [Fraction(weight, sum(weights)) for weight in weights]

        models = Model(vocabulary, row), Model(vocabulary, row)
        try:
            if not is_lossless(bug.step, *models, (), bug.lookahead):
                return True
        except ValueError:
            return True
    return False


def main(long: bool) -> None:
    print(f"{'rule':<12}{'tokens':>8}{'n':>3}{'s':>8}{'aim':>7}{'regions':>9}{'open':>6}"
          f"{'flips':>8}{'z3 calls':>10}{'flips/call':>12}")  # fmt: skip
    for rule, tokens, lookahead, aim in AIMS + LONG * long:
        seconds, found = timed(rule, "abcd"[:tokens], lookahead=lookahead)
        calls = found.counts.calls
        print(f"{rule:<12}{tokens:>8}{lookahead:>3}{seconds:>8.1f}{aim:>7.0f}{found.regions:>9}"
              f"{found.open:>6}{found.flips:>8}{calls:>10}"
              f"{found.flips / max(calls, 1):>12.1f}")  # fmt: skip
    total, proved, asked = 0.0, 0, 0
    for target, drafter in PAIRS + HARD:
        print(f"target {target}, drafter {drafter}, lookahead 2:", end="")
        for rule in ("union", "tli", "slrs"):
            seconds, found = timed(
                *(rule, target.split(), drafter.split()), lookahead=2, budget=BUDGET_OF_A_PAIR
            )
            print(f" {rule} {found.verdict}, {found.open} open, {seconds:.1f} s", end=";")
            if (target, drafter) in PAIRS:
                total, proved, asked = total + seconds, proved + bool(found), asked + 1
        print()
    print(f"union, TLI, SLRS on the first {len(PAIRS)} of these: {total:.1f} s (aim 60), "
          f"{proved} of {asked} proved")  # fmt: skip
    hits = found_by_search = 0
    for bug in PLANTED.values():
        started = time.process_time()
        hits += is_lossless_everywhere(
            bug.step, bug.tokens, lookahead=bug.lookahead, budget=BUDGET
        ).verdict == "lossy"  # fmt: skip
        found_by_search += searched(bug, time.process_time() - started)
    print(f"planted bugs: {hits} of {len(PLANTED)} found; by random rows, in as many seconds "
          f"each: {found_by_search}")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="also what takes minutes")
    main(parser.parse_args().long)
