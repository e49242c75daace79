"""Drafter forwards of SLRS by bounds, beside those of psi in full.

python -m proofs_tests.benchmarks.lazy_slrs [--longest 3] [--runs 300]

A forward is a context whose law was asked for, drafting included, counted once per step. For toy
pairs the expectations are exact, and the output laws are asserted equal; for targets with all
words of up to m letters, where psi takes up to 2^m - 1 forwards, they are means over runs, with
the standard error of lazy. With lookahead 1 nothing can be saved: the forward that drafts is all
of the tree.
"""

import argparse
import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from specref.algorithms import lazy_slrs, slrs
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import LookaheadRule
from specref.chance import Chance, Sampled, enumerate_paths
from specref.distributions import Probabilities, Probability
from specref.models import Model, as_float, hashed_model
from specref.pairs import Pair, other_vocabulary_pairs
from specref.theory import fixed, proposals, until_determined
from specref.vocabulary import Tokens, Vocabulary

LETTERS = Vocabulary("ab")
STEPS = {
    "one token": (lazy_slrs.single_token_step, slrs.single_token_step),
    "all tokens": (lazy_slrs.step, slrs.step),
}


class Asked(Model):
    """A model that remembers in which contexts it was asked for its law."""

    def __init__(self, model: Model) -> None:
        super().__init__(model.vocabulary, model.next_token)
        self.contexts: set[Tokens] = set()

    def next_token(self, context: Sequence[int]) -> Probabilities:
        self.contexts.add(tuple(context))
        return super().next_token(context)


def forwards(
    step: Step, target: Model, drafter: Model, lookahead: int, rule: LookaheadRule
) -> tuple[dict[Tokens, Probability], Probability]:
    """The law of a block from the empty context, and the expected forwards of the drafter."""

    def program(chance: Chance) -> tuple[Tokens, int]:
        asked = Asked(drafter)
        block = step(target, asked, (), lookahead, chance, rule=rule)
        return block, len(asked.contexts)

    law: dict[Tokens, Probability] = {}
    expected: Probability = Fraction(0)
    for path in enumerate_paths(program):
        block, count = path.outcome
        law[block] = law.get(block, 0) + path.weight
        expected += path.weight * count
    return law, expected


def both(
    pairs: Sequence[Pair], steps: tuple[Step, Step], lookahead: int, rule: LookaheadRule
) -> list[Probability]:
    """Expected forwards, lazy and full, summed over the pairs."""
    sums: list[Probability] = [Fraction(0), Fraction(0)]
    for pair in pairs:
        found = [forwards(s, pair.target, pair.drafter, lookahead, rule) for s in steps]
        assert found[0][0] == found[1][0], f"{pair.name}: the output laws differ"
        sums = [total + count for total, (_, count) in zip(sums, found, strict=True)]
    return sums


def toys() -> list[Pair]:
    """The pairs of two vocabularies whose blocks are quickly enumerated."""
    pairs = (pair for pair in other_vocabulary_pairs() if pair.by_text)
    return [pair for pair in pairs if pair.longest_lookahead > 2]


def words(longest: int) -> Vocabulary:
    lengths = range(1, longest + 1)
    return Vocabulary("".join(word) for n in lengths for word in itertools.product("ab", repeat=n))


def sampled(longest: int, runs: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """The forwards, lazy and full, of runs, every one with another target and drafter."""
    counts = []
    for n in range(runs):
        target = as_float(hashed_model(words(longest), f"p {n}"))
        lazy, full = (Asked(as_float(hashed_model(LETTERS, f"q {n}"))) for _ in range(2))
        lazy_slrs.single_token_step(target, lazy, (), longest, Sampled(rng), rule=until_determined)
        proposals(target.vocabulary, full, (), longest, until_determined)
        counts.append((len(lazy.contexts), len(full.contexts)))
    return counts


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longest", type=int, default=3, help="the longest lookahead")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    lookaheads = range(1, options.longest + 1)
    row("pairs", "stop", "verified", "lookahead", "lazy", "full", "lazy / full")
    row(*["---"] * 7)
    for rule in (fixed, until_determined):
        for verified, steps in STEPS.items():
            report(toys(), rule, verified, steps, lookaheads)
    rng = np.random.default_rng(options.seed)
    for longest in range(2, 8):
        counts = np.array(sampled(longest, options.runs, rng))
        lazy, full = counts.mean(axis=0)
        error = counts[:, 0].std() / len(counts) ** 0.5
        shown = f"{lazy:.2f} ± {error:.2f}", f"{full:.2f}", f"{lazy / full:.3f}"
        row(f"words of {longest}", "until_determined", "one token", longest, *shown)


def report(
    pairs: Sequence[Pair],
    rule: LookaheadRule,
    verified: str,
    steps: tuple[Step, Step],
    lookaheads: Sequence[int],
) -> None:
    totals: list[Probability] = [Fraction(0), Fraction(0)]
    for lookahead in lookaheads:
        sums = both(pairs, steps, lookahead, rule)
        totals = [total + count for total, count in zip(totals, sums, strict=True)]
        show(rule, verified, lookahead, sums)
    if len(lookaheads) > 1:
        show(rule, verified, "all", totals)


def show(
    rule: LookaheadRule, verified: str, lookahead: object, sums: Sequence[Probability]
) -> None:
    lazy, full = map(float, sums)
    ratio = f"{lazy / full:.3f}"
    row("toys", rule.__name__, verified, lookahead, f"{lazy:.2f}", f"{full:.2f}", ratio)


if __name__ == "__main__":
    main()
